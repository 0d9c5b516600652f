//! The steps of a run, each made in the index and in the oracle.

use ann::{
    AccessPath, IdFilter, IdSet, IndexError, NeighbourIndex, NeighbourIndexOptions, SearchOptions,
    VectorPlacement, VectorsState,
};
use tempfile::TempDir;

use super::scenario::Scenario;
use crate::data::Rng;
use crate::oracle::Oracle;

/// The error of a distance, beside the larger of it and 1.
const TOLERANCE: f64 = 1e-6;

/// The trend of the number of vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trend {
    Up,
    Level,
    Down,
}

/// Number of steps before the trend may change.
const TREND_STEPS: usize = 250;

/// A run under way.
pub struct Driver {
    scenario: Scenario,
    /// The vectors that most are drawn from.
    vectors: Vec<Vec<f32>>,
    index: NeighbourIndex,
    oracle: Oracle,
    rng: Rng,
    trend: Trend,
    steps: usize,
    recall: Recall,
    /// The last snapshot that was opened.
    snapshot: Option<TempDir>,
}

/// Sums of recall for each way to search, and the number of searches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall {
    walks: (f64, usize),
    scans_of_codes: (f64, usize),
    scans: (f64, usize),
}

impl Drop for Driver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at step {} of {:?}", self.steps, self.scenario);
        }
    }
}

impl Driver {
    pub fn new(scenario: Scenario) -> Driver {
        let mut driver = Driver {
            scenario,
            vectors: scenario.vectors(),
            index: NeighbourIndex::new(scenario.options).expect("valid options"),
            oracle: Oracle::new(scenario.options.metric),
            rng: Rng(scenario.seed),
            trend: Trend::Up,
            steps: 0,
            recall: Recall::default(),
            snapshot: None,
        };
        // The index begins shortly before it trains, where one change more or less makes the
        // difference.
        for id in 0..scenario.ids.min(480) as u32 {
            let vector = scenario.draw(&driver.vectors, &mut driver.rng);
            driver.index.insert(id, &vector).expect("a new id");
            driver.oracle.vectors.insert(id, vector);
        }
        driver
    }

    pub fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(TREND_STEPS) {
            self.trend = [Trend::Up, Trend::Level, Trend::Down][self.rng.below(3)];
        }
        match self.rng.below(12) {
            0 => self.search(),
            1 if self.rng.below(10) == 0 => self.search_for_all(),
            2 if self.rng.below(400) == 0 => self.remove_all(),
            3 if self.rng.below(15) == 0 => self.reopen(),
            _ => self.change(),
        }
        assert_eq!(self.index.len(), self.oracle.vectors.len());
    }

    /// Checks at the end of a run that what is left is as it should be.
    pub fn finish(mut self) -> Recall {
        self.search_for_all();
        self.recall
    }

    /// Makes a change, legal or not.
    fn change(&mut self) {
        let id = self.rng.below(self.scenario.ids) as u32;
        let removes = match self.trend {
            Trend::Up => 1,
            Trend::Level => 3,
            Trend::Down => 7,
        };
        match self.rng.below(10) {
            step if step < removes => self.remove(id),
            step if step < (removes + 10) / 2 => self.insert(id),
            _ => self.replace(id),
        }
    }

    fn insert(&mut self, id: u32) {
        let vector = self.scenario.draw(&self.vectors, &mut self.rng);
        let expected = match self.oracle.vectors.contains_key(&id) {
            true => Err(IndexError::Exists(id)),
            false => Ok(()),
        };
        assert_eq!(self.index.insert(id, &vector), expected);
        self.oracle.vectors.entry(id).or_insert(vector);
    }

    fn replace(&mut self, id: u32) {
        // Now and then the vector is that of the id itself, or of another one.
        let (index, rng) = (&self.oracle.vectors, &mut self.rng);
        let vector = match rng.below(12) {
            0 => index.get(&id).cloned(),
            1 => index.range(id + 1..).next().map(|(_, v)| v.clone()),
            _ => None,
        };
        let vector = vector.unwrap_or_else(|| self.scenario.draw(&self.vectors, rng));
        let held = self.oracle.vectors.contains_key(&id);
        assert_eq!(self.index.replace(id, &vector), only_if(held, id));
        if held {
            self.oracle.vectors.insert(id, vector);
        }
    }

    fn remove(&mut self, id: u32) {
        let held = self.oracle.vectors.remove(&id).is_some();
        assert_eq!(self.index.remove(id), only_if(held, id));
    }

    fn remove_all(&mut self) {
        for id in std::mem::take(&mut self.oracle.vectors).into_keys() {
            self.index.remove(id).expect("held");
        }
        self.search_for_all();
        self.trend = Trend::Up;
    }

    /// Takes a snapshot and goes on from it, with the same placement or the other.
    fn reopen(&mut self) {
        self.search_for_all();
        let snapshot = tempfile::tempdir().expect("a directory");
        let saved = self.index.save(snapshot.path()).expect("save");
        assert_eq!(saved.vectors, self.oracle.vectors.len());
        let placement = match self.rng.below(3) {
            0 => VectorPlacement::Memory,
            _ => VectorPlacement::File,
        };
        let options = NeighbourIndexOptions {
            placement,
            ..self.scenario.options
        };
        let opened = NeighbourIndex::open(snapshot.path(), options).expect("a sound snapshot");
        let query = self.query();
        let answers = |index: &NeighbourIndex| index.explain(&query, &SearchOptions::new(20));
        assert_eq!(answers(&opened), answers(&self.index));
        self.index = opened;
        if self.rng.below(2) == 0 {
            let state = self.index.verify_vectors(|| true);
            assert!(matches!(state, VectorsState::Verified), "{state}");
        }
        // The snapshot before goes; what is still used of it is mapped or linked.
        self.snapshot = Some(snapshot);
        self.search_for_all();
    }

    /// A query like the vectors, or one of them.
    fn query(&mut self) -> Vec<f32> {
        let from = self.rng.below(self.scenario.ids) as u32;
        match self.oracle.vectors.range(from..).next() {
            Some((_, vector)) if self.rng.below(3) == 0 => vector.clone(),
            _ => self.scenario.draw(&self.vectors, &mut self.rng),
        }
    }

    fn search(&mut self) {
        let query = self.query();
        let k = 1 + self.rng.below(30);
        let (modulus, rest) = (1 + self.rng.below(8) as u32, self.rng.below(8) as u32);
        let is_wanted = |id: u32| id % modulus == rest % modulus;
        let mut ids = IdSet::default();
        (0..self.scenario.ids as u32)
            .filter(|id| is_wanted(*id))
            .for_each(|id| {
                ids.insert(id);
            });
        let filter = match self.rng.below(4) {
            0 => Some(IdFilter::Ids(&ids)),
            1 => Some(IdFilter::Predicate(&is_wanted)),
            _ => None,
        };
        let beam = match self.rng.below(3) {
            0 => None,
            _ => Some(100 + self.rng.below(200)),
        };
        self.check(
            &query,
            &SearchOptions {
                beam,
                filter,
                ..SearchOptions::new(k)
            },
        );
        // This is the least that can be asked for. The answer is complete, but not necessarily the
        // nearest.
        let narrow = SearchOptions {
            beam: Some(1),
            rescored: Some(1),
            filter,
            ..SearchOptions::new(k)
        };
        self.oracle
            .check_with(&self.index, &query, &narrow, TOLERANCE);
    }

    fn search_for_all(&mut self) {
        let query = self.query();
        for k in [self.oracle.vectors.len(), usize::MAX] {
            self.check(&query, &SearchOptions::new(k));
        }
    }

    fn check(&mut self, query: &[f32], search: &SearchOptions<'_>) {
        let answer = self.index.explain(query, search);
        let (found, told) = answer.expect("a valid query");
        let share = self.oracle.judge(&found, query, search, TOLERANCE);
        assert!(told.hops <= told.distances, "{told:?}");
        let sum = match told.way {
            AccessPath::Walk => &mut self.recall.walks,
            AccessPath::ScanOfCodes => &mut self.recall.scans_of_codes,
            AccessPath::Scan => &mut self.recall.scans,
        };
        *sum = (sum.0 + share, sum.1 + 1);
    }
}

/// The result of a replace or a remove.
fn only_if(held: bool, id: u32) -> Result<(), IndexError> {
    match held {
        true => Ok(()),
        false => Err(IndexError::Missing(id)),
    }
}

impl Recall {
    pub fn add(&mut self, other: Recall) {
        let sum = |a: (f64, usize), b: (f64, usize)| (a.0 + b.0, a.1 + b.1);
        self.walks = sum(self.walks, other.walks);
        self.scans_of_codes = sum(self.scans_of_codes, other.scans_of_codes);
        self.scans = sum(self.scans, other.scans);
    }

    /// Checks that searches took every way, and found what there was to find.
    pub fn check(&self, walks_min: f64) {
        for ((sum, searches), least) in [
            (self.walks, walks_min),
            (self.scans_of_codes, 0.98),
            (self.scans, 1.0),
        ] {
            assert!(searches > 0, "{self:?}");
            assert!(sum / searches as f64 >= least, "{self:?}");
        }
    }
}
