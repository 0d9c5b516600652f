//! The index: the graph behind a lock, what the graph cannot hold, and the way of each call.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::code::{Code, Form};
use crate::graph::Graph;
use crate::id_set::IdSet;
use crate::nearest::Nearest;
use crate::permits::Permits;
use crate::plan::Plan;
use crate::renewal::{RenewedGraph, STEPS_PER_CHANGE};
use crate::score::{Scorer, UNDIRECTED};
use crate::{Error, Neighbour, Options};

/// Vectors a scan measures before it lets waiting changes through: about the time of one insert.
const SCANNED_BETWEEN_PAUSES: usize = 1_024;

/// A concurrent index: every method takes `&self` and may be called from any thread.
///
/// Searches run side by side, as many at a time as there are cores. Changes take turns, and a
/// change waits for the searches under way; neither kind can keep the other waiting for long. A
/// search sees all changes that had returned when it was called.
pub struct Index {
    options: Options,
    form: Form,
    searches: Permits,
    /// A lock that lets waiting threads pass every half a millisecond, whoever else comes: a thread
    /// that inserts without pause would otherwise take it again before a sleeping search is awake.
    contents: RwLock<Contents>,
    /// `contents.ids.len()`, to be read without waiting for a change to end.
    len: AtomicUsize,
}

/// What the index holds.
struct Contents {
    vectors: RenewedGraph,
    /// Every id held.
    ids: IdSet,
    /// Those of vectors without a direction where only directions are kept. Being as far from each
    /// other as from anything else they would only mislead walks, so they stay out of the graph.
    undirected: IdSet,
}

impl Index {
    /// An empty index. Refuses options that are out of range.
    pub fn new(options: Options) -> Result<Index, Error> {
        options.validate()?;
        let options = options.in_effect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let contents = Contents {
            vectors: RenewedGraph::new(Graph::new(&options, cores)?),
            ids: IdSet::default(),
            undirected: IdSet::default(),
        };
        Ok(Index {
            options,
            form: Form::of(&options),
            searches: Permits::new(cores),
            contents: RwLock::new(contents),
            len: AtomicUsize::new(0),
        })
    }

    /// What the index was made with, and [`crate::Metric::Hamming`] where that was forced.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a vector under an id that the index does not hold.
    pub fn insert(&self, id: u32, vector: &[f32]) -> Result<(), Error> {
        let code = self.encode(vector)?;
        self.change(|contents| contents.insert(id, code))
    }

    /// Gives an id that the index holds another vector. No search sees the id without a vector.
    pub fn replace(&self, id: u32, vector: &[f32]) -> Result<(), Error> {
        let code = self.encode(vector)?;
        self.change(|contents| contents.replace(id, code))
    }

    /// Takes an id out; the id may be used again.
    pub fn remove(&self, id: u32) -> Result<(), Error> {
        self.change(|contents| contents.remove(id))
    }

    /// The up to `k` nearest vectors, nearest first and by id among equals. There are always as
    /// many as `k` or the index holds, whichever is less. With `k` at or above the count every
    /// vector is returned.
    ///
    /// A search that has to look at every vector lets changes happen in between; it returns each
    /// vector as it was at some moment of the search.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, Error> {
        self.check(query)?;
        if k == 0 {
            return Ok(Vec::new());
        }
        let code = self.form.encode(query);
        let mut scorer = Scorer::new(self.options.metric, query);

        let _permit = self.searches.take();
        let contents = self.contents.read();
        if let Some(code) = code
            && let Plan::Walk { beam } = contents.plan(k, &self.options)
        {
            let graph = contents.vectors.graph();
            let near = graph.walk(&code, beam)?;
            if near.len() >= k.min(graph.len()) {
                return contents.rank(&near, &mut scorer, k);
            }
            // The graph has come apart: the walk could not reach as many as there are.
        }
        scan(contents, &mut scorer, k)
    }

    /// Vectors held.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether no vector is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory the index holds: vectors, links and tables, those of replaced and removed
    /// vectors included until they are cleared away. The scratch space of searches does not count.
    pub fn memory_bytes(&self) -> usize {
        let contents = self.contents.read();
        let sets = contents.ids.memory_bytes() + contents.undirected.memory_bytes();
        size_of::<Index>() + contents.vectors.memory_bytes() + sets
    }

    /// Refuses what is not a vector of this index.
    fn check(&self, vector: &[f32]) -> Result<(), Error> {
        let (expected, actual) = (self.options.dimensions, vector.len());
        if actual != expected {
            return Err(Error::Dimensions { expected, actual });
        }
        match vector.iter().position(|x| !x.is_finite()) {
            Some(position) => Err(Error::NotFinite { position }),
            None => Ok(()),
        }
    }

    fn encode(&self, vector: &[f32]) -> Result<Option<Code>, Error> {
        self.check(vector)?;
        Ok(self.form.encode(vector))
    }

    /// Makes a change, and then its share of what changes leave to do.
    fn change(&self, change: impl FnOnce(&mut Contents) -> Result<(), Error>) -> Result<(), Error> {
        let (result, mut wants_renewal) = self.exclusively(|contents| {
            let result = change(contents);
            (result, contents.vectors.wants_renewal())
        });
        // A turn for each step, so that nobody waits for all of them.
        for _ in 0..STEPS_PER_CHANGE {
            if !wants_renewal {
                break;
            }
            let retired;
            (retired, wants_renewal) = self.exclusively(|contents| {
                let retired = contents.vectors.renew(&contents.ids);
                (retired, contents.vectors.wants_renewal())
            });
            drop(retired);
        }
        result
    }

    /// Acts while nobody else looks.
    fn exclusively<R>(&self, act: impl FnOnce(&mut Contents) -> R) -> R {
        let mut contents = self.contents.write();
        let result = act(&mut contents);
        self.len.store(contents.ids.len(), Ordering::Release);
        result
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("options", &self.options)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Contents {
    fn insert(&mut self, id: u32, code: Option<Code>) -> Result<(), Error> {
        if self.ids.contains(id) {
            return Err(Error::Exists(id));
        }
        self.put(id, code.as_ref())?;
        self.ids.insert(id);
        Ok(())
    }

    fn replace(&mut self, id: u32, code: Option<Code>) -> Result<(), Error> {
        if !self.ids.contains(id) {
            return Err(Error::Missing(id));
        }
        if self.code(id)? == code {
            // Rows are often written again with the vector they had.
            return Ok(());
        }
        self.put(id, code.as_ref())
    }

    fn remove(&mut self, id: u32) -> Result<(), Error> {
        if !self.ids.remove(id) {
            return Err(Error::Missing(id));
        }
        self.undirected.remove(id);
        self.vectors.take(id);
        Ok(())
    }

    /// Puts a vector where vectors of its kind are kept, and nowhere else.
    fn put(&mut self, id: u32, code: Option<&Code>) -> Result<(), Error> {
        match code {
            Some(code) => {
                self.vectors.put(id, code)?;
                self.undirected.remove(id);
            }
            None => {
                self.vectors.take(id);
                self.undirected.insert(id);
            }
        }
        Ok(())
    }

    /// What is kept for an id that is held; less exact than what was put where floats were narrowed.
    fn code(&self, id: u32) -> Result<Option<Code>, Error> {
        match self.undirected.contains(id) {
            true => Ok(None),
            false => self.vectors.graph().code(id).map(Some),
        }
    }

    fn plan(&self, k: usize, options: &Options) -> Plan {
        let held = self.ids.len();
        let nodes = self.vectors.graph().nodes() + self.undirected.len();
        Plan::new(k, options.search_beam_width, held, nodes)
    }

    /// The nearest `k` of what a walk found and of what is not in the graph.
    fn rank(&self, near: &[u32], scorer: &mut Scorer, k: usize) -> Result<Vec<Neighbour>, Error> {
        let mut nearest = Nearest::new(k, self.ids.len());
        for &id in near.iter().take(k) {
            nearest.show(id, scorer.distance(self.vectors.graph(), id)?);
        }
        for id in self.undirected.iter().take(k) {
            nearest.show(id, UNDIRECTED);
        }
        Ok(nearest.into_sorted())
    }

    fn distance(&self, scorer: &mut Scorer, id: u32) -> Result<f32, Error> {
        match self.undirected.contains(id) {
            true => Ok(UNDIRECTED),
            false => scorer.distance(self.vectors.graph(), id),
        }
    }
}

/// The nearest `k` of everything.
fn scan(
    mut contents: RwLockReadGuard<'_, Contents>,
    scorer: &mut Scorer,
    k: usize,
) -> Result<Vec<Neighbour>, Error> {
    let mut nearest = Nearest::new(k, contents.ids.len());
    let mut next = contents.ids.next_from(0);
    let mut until_pause = SCANNED_BETWEEN_PAUSES;
    while let Some(id) = next {
        nearest.show(id, contents.distance(scorer, id)?);
        until_pause -= 1;
        if until_pause == 0 {
            RwLockReadGuard::bump(&mut contents);
            until_pause = SCANNED_BETWEEN_PAUSES;
        }
        // Ids are passed in ascending order, whatever comes and goes meanwhile: none is seen twice,
        // and none that stays is missed.
        next = id
            .checked_add(1)
            .and_then(|from| contents.ids.next_from(from));
    }
    Ok(nearest.into_sorted())
}
