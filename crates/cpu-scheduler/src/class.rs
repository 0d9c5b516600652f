//! The classes of work, and the limits and shares of each.

/// A class of work on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkClass {
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

impl WorkClass {
    /// All classes.
    pub const ALL: [WorkClass; 5] = [
        WorkClass::Query,
        WorkClass::Read,
        WorkClass::Write,
        WorkClass::Ingest,
        WorkClass::Background,
    ];

    /// The name of the class in metrics.
    pub fn name(self) -> &'static str {
        match self {
            WorkClass::Query => "query",
            WorkClass::Read => "read",
            WorkClass::Write => "write",
            WorkClass::Ingest => "ingest",
            WorkClass::Background => "background",
        }
    }
}

/// The weights of the two sides that compete for the processors. Only their ratio matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingWeights {
    /// The weight of [`WorkClass::Query`] and of [`WorkClass::Read`] each, at least 1.
    pub search: u32,
    /// The weight of [`WorkClass::Write`] and of [`WorkClass::Ingest`] each, at least 1. A class
    /// that has nothing to do leaves its part to the others.
    pub ingest: u32,
}

impl Default for SchedulingWeights {
    fn default() -> SchedulingWeights {
        SchedulingWeights {
            search: 1,
            ingest: 1,
        }
    }
}

/// The limit and the share of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkClassOptions {
    /// The largest number of turns that the class has at once, at least 1. `None` for no limit.
    pub at_once_max: Option<usize>,
    /// The weight of the class against others that wait, at least 1. It has an effect only under
    /// [`SchedulerOptions::at_once_max`].
    pub share: u32,
}

/// The limits and shares of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// The largest number of turns of all classes together, at least 1. With `None` no class waits
    /// for another, and shares have no effect.
    pub at_once_max: Option<usize>,
    /// The limit and share of [`WorkClass::Query`].
    pub query: WorkClassOptions,
    /// The limit and share of [`WorkClass::Read`].
    pub read: WorkClassOptions,
    /// The limit and share of [`WorkClass::Write`].
    pub write: WorkClassOptions,
    /// The limit and share of [`WorkClass::Ingest`].
    pub ingest: WorkClassOptions,
    /// The limit and share of [`WorkClass::Background`].
    pub background: WorkClassOptions,
}

impl SchedulerOptions {
    /// At most `threads` searches, as many reads and as many pieces of builds run at once; 0 means
    /// the number of cores. The operating system shares the cores between the classes.
    pub fn of_threads(threads: usize) -> SchedulerOptions {
        let threads = match threads {
            0 => cores(),
            threads => threads,
        };
        let limited = |at_once_max| WorkClassOptions {
            at_once_max,
            share: 1,
        };
        SchedulerOptions {
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

    /// As [`SchedulerOptions::of_threads`], but all classes together take no more turns at once
    /// than there are cores, or `threads` if that is more, and the sides get them by their shares.
    /// Work in the background weighs a quarter of ingest. As it waits for the disk, it has half of
    /// the turns at most.
    pub fn of_shares(threads: usize, shares: SchedulingWeights) -> SchedulerOptions {
        let options = SchedulerOptions::of_threads(threads);
        let at_once_max = cores().max(threads);
        // In quarters, as the least weight is 1.
        let weighed = |of: WorkClassOptions, quarters: u32| WorkClassOptions {
            share: quarters,
            ..of
        };
        let (search, ingest) = (shares.search.max(1), shares.ingest.max(1));
        SchedulerOptions {
            at_once_max: Some(at_once_max),
            query: weighed(options.query, search.saturating_mul(4)),
            read: weighed(options.read, search.saturating_mul(4)),
            write: weighed(options.write, ingest.saturating_mul(4)),
            ingest: weighed(options.ingest, ingest.saturating_mul(4)),
            background: WorkClassOptions {
                at_once_max: Some((at_once_max / 2).max(1)),
                share: ingest,
            },
        }
    }

    /// The limit and share of a class.
    pub fn of(&self, class: WorkClass) -> WorkClassOptions {
        match class {
            WorkClass::Query => self.query,
            WorkClass::Read => self.read,
            WorkClass::Write => self.write,
            WorkClass::Ingest => self.ingest,
            WorkClass::Background => self.background,
        }
    }

    /// The largest number of turns that a class can have at once; the number of cores where no
    /// limit is set.
    pub(crate) fn concurrency_limit(&self, class: WorkClass) -> usize {
        let limits = [self.of(class).at_once_max, self.at_once_max];
        let limit = limits.into_iter().flatten().min();
        limit.unwrap_or_else(cores).max(1)
    }
}

impl Default for SchedulerOptions {
    fn default() -> SchedulerOptions {
        SchedulerOptions::of_threads(0)
    }
}

/// The number of cores that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
