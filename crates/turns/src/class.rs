//! The classes of work, and the limits and shares of each.

/// A class of work on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Searches, for which a client waits.
    Query,
    /// Reads of rows for clients, a slice of one at a time. A read holds rows while it has a turn,
    /// and lets the large ones go before it gives the turn back. So the limit of the class bounds
    /// the rows that are in memory for reads, too.
    Read,
    /// The committer's batches, for which clients wait, too.
    Write,
    /// Changes of an index that follow writes or a scan.
    Ingest,
    /// Work for which no one waits at this moment: the pages of a scan or a repair that the storage
    /// reads, and what changes leave to do in an index.
    Background,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 5] = [
        Class::Query,
        Class::Read,
        Class::Write,
        Class::Ingest,
        Class::Background,
    ];

    /// The name of the class in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Class::Query => "query",
            Class::Read => "read",
            Class::Write => "write",
            Class::Ingest => "ingest",
            Class::Background => "background",
        }
    }
}

/// The weights of the two sides that compete for the processors. Only their ratio matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The weight of [`Class::Query`] and of [`Class::Read`] each, at least 1.
    pub search: u32,
    /// The weight of [`Class::Write`] and of [`Class::Ingest`] each, at least 1. A class that has
    /// nothing to do leaves its part to the others.
    pub ingest: u32,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares {
            search: 1,
            ingest: 1,
        }
    }
}

/// The limit and the share of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOptions {
    /// The largest number of turns that the class has at once, at least 1. `None` for no limit.
    pub at_once_max: Option<usize>,
    /// The weight of the class against others that wait, at least 1. It has an effect only under
    /// [`TurnsOptions::at_once_max`].
    pub share: u32,
}

/// The limits and shares of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnsOptions {
    /// The largest number of turns of all classes together, at least 1. With `None` no class waits
    /// for another, and shares have no effect.
    pub at_once_max: Option<usize>,
    /// The limit and share of [`Class::Query`].
    pub query: ClassOptions,
    /// The limit and share of [`Class::Read`].
    pub read: ClassOptions,
    /// The limit and share of [`Class::Write`].
    pub write: ClassOptions,
    /// The limit and share of [`Class::Ingest`].
    pub ingest: ClassOptions,
    /// The limit and share of [`Class::Background`].
    pub background: ClassOptions,
}

impl TurnsOptions {
    /// At most `threads` searches, as many reads and as many pieces of builds run at once; 0 means
    /// the number of cores. The operating system shares the cores between the classes.
    pub fn of_threads(threads: usize) -> TurnsOptions {
        let threads = match threads {
            0 => cores(),
            threads => threads,
        };
        let limited = |at_once_max| ClassOptions {
            at_once_max,
            share: 1,
        };
        TurnsOptions {
            at_once_max: None,
            query: limited(Some(threads)),
            read: limited(Some(threads)),
            // A storage has one committer.
            write: limited(Some(1)),
            ingest: limited(Some(threads)),
            // A scan bounds the ranges that it reads at a time by itself.
            background: limited(None),
        }
    }

    /// As [`TurnsOptions::of_threads`], but all classes together take no more turns at once than
    /// there are cores, or `threads` if that is more, and the sides get them by their shares. Work
    /// in the background weighs a quarter of ingest. As it waits for the disk, it has half of the
    /// turns at most.
    pub fn of_shares(threads: usize, shares: Shares) -> TurnsOptions {
        let options = TurnsOptions::of_threads(threads);
        let at_once_max = cores().max(threads);
        // In quarters, as the least weight is 1.
        let weighed = |of: ClassOptions, quarters: u32| ClassOptions {
            share: quarters,
            ..of
        };
        let (search, ingest) = (shares.search.max(1), shares.ingest.max(1));
        TurnsOptions {
            at_once_max: Some(at_once_max),
            query: weighed(options.query, search.saturating_mul(4)),
            read: weighed(options.read, search.saturating_mul(4)),
            write: weighed(options.write, ingest.saturating_mul(4)),
            ingest: weighed(options.ingest, ingest.saturating_mul(4)),
            background: ClassOptions {
                at_once_max: Some((at_once_max / 2).max(1)),
                share: ingest,
            },
        }
    }

    /// The limit and share of a class.
    pub fn of(&self, class: Class) -> ClassOptions {
        match class {
            Class::Query => self.query,
            Class::Read => self.read,
            Class::Write => self.write,
            Class::Ingest => self.ingest,
            Class::Background => self.background,
        }
    }

    /// The largest number of turns that a class can have at once; the number of cores where no
    /// limit is set.
    pub(crate) fn at_once(&self, class: Class) -> usize {
        let limits = [self.of(class).at_once_max, self.at_once_max];
        let limit = limits.into_iter().flatten().min();
        limit.unwrap_or_else(cores).max(1)
    }
}

impl Default for TurnsOptions {
    fn default() -> TurnsOptions {
        TurnsOptions::of_threads(0)
    }
}

/// The number of cores that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
