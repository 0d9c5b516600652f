//! Random changes by several threads while others search. After every search the model checks
//! whether its answer was possible.
//!
//! Each id has one writer, who notes before a change that it is under way, and afterwards its
//! outcome. A searcher reads the notes before and after its search. An id that no one changed in
//! between has to be where it was, with its exact distance, or not at all; an id that somebody
//! changed may have any of the vectors that it had meanwhile.
//!
//! The number of vectors stays around that at which an index trains, and slots are used again all
//! the time. For a long run set `ANN_MODEL_ROUNDS`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use ann::{
    CodeChoice, DistanceMetric, IdFilter, Neighbour, NeighbourIndex, NeighbourIndexOptions,
    SearchOptions, VectorPlacement,
};

use crate::concurrency::Raise;
use crate::data::{Rng, of_some_kind};
use crate::model::setting;
use crate::oracle::distance;

const WRITERS: usize = 3;
const SEARCHERS: usize = 2;
/// Number of changes of a writer in a round.
const CHANGES: usize = 400;
/// Every number of ids that never change, with every number of those that do.
const ROUNDS_DEFAULT: usize = 18;

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Note {
    /// The number of changes so far. The vector follows from it.
    version: u64,
    held: bool,
    /// Whether the next change is under way.
    unsettled: bool,
}

impl Note {
    fn word(self) -> u64 {
        self.version << 2 | u64::from(self.held) << 1 | u64::from(self.unsettled)
    }

    fn of(word: u64) -> Note {
        Note {
            version: word >> 2,
            held: word & 2 != 0,
            unsettled: word & 1 != 0,
        }
    }
}

/// Number of vectors that those of a round are drawn from.
const VECTORS: usize = 4_000;

/// An index and the states of its ids.
struct Round {
    seed: u64,
    /// The vectors of a kind that most are drawn from.
    vectors: Vec<Vec<f32>>,
    options: NeighbourIndexOptions,
    index: NeighbourIndex,
    notes: Vec<AtomicU64>,
    /// Ids below this one are never changed.
    stable: usize,
    done: AtomicBool,
}

impl Round {
    fn numbered(number: usize) -> Round {
        let mut rng = Rng(7_000 + number as u64);
        let metric = [
            DistanceMetric::Cosine,
            DistanceMetric::Euclidean,
            DistanceMetric::DotProduct,
        ][rng.below(3)];
        let codes = [CodeChoice::Nibbles, CodeChoice::Bytes, CodeChoice::Floats][number % 3];
        let options = NeighbourIndexOptions {
            metric,
            codes,
            placement: VectorPlacement::Memory,
            max_connections: 8,
            build_beam_width: 32,
            ..NeighbourIndexOptions::new([3, 8, 20, 70][rng.below(4)])
        };
        // The number of ids goes from far below the size at which an index trains to a little
        // above.
        let stable = [0, 5, 400, 480, 511, 520][number % 6];
        let ids = stable + WRITERS * [10, 40, 200][number / 6 % 3];
        let round = Round {
            seed: rng.next(),
            vectors: of_some_kind(number, VECTORS, options.dimensions),
            options,
            index: NeighbourIndex::new(options).expect("valid options"),
            notes: (0..ids).map(|_| AtomicU64::new(0)).collect(),
            stable,
            done: AtomicBool::new(false),
        };
        (0..stable).for_each(|id| round.change(id, Change::Insert));
        round
    }

    /// The vector that an id has in a version. Now and then it has no direction, and often another
    /// id has the same.
    fn vector(&self, id: usize, version: u64) -> Vec<f32> {
        let mut rng = Rng(self.seed ^ (id as u64) << 40 ^ version);
        rng.next();
        match rng.below(15) {
            0 if id >= self.stable => vec![0.0; self.options.dimensions],
            1..5 => {
                let mut shared = Rng(self.seed ^ rng.below(12) as u64);
                self.vectors[shared.below(VECTORS)].clone()
            }
            _ => self.vectors[rng.below(VECTORS)].clone(),
        }
    }

    fn note(&self, id: usize) -> Note {
        Note::of(self.notes[id].load(Ordering::SeqCst))
    }

    fn change(&self, id: usize, change: Change) {
        let before = self.note(id);
        let under_way = Note {
            unsettled: true,
            ..before
        };
        self.notes[id].store(under_way.word(), Ordering::SeqCst);
        let version = before.version + 1;
        let vector = self.vector(id, version);
        let result = match change {
            Change::Insert => self.index.insert(id as u32, &vector),
            Change::Replace => self.index.replace(id as u32, &vector),
            Change::Remove => self.index.remove(id as u32),
        };
        assert_eq!(result, Ok(()), "{change:?} {id}");
        let after = Note {
            version,
            held: change != Change::Remove,
            unsettled: false,
        };
        self.notes[id].store(after.word(), Ordering::SeqCst);
    }

    /// Changes the ids of one writer.
    fn write(&self, writer: usize) {
        let mut rng = Rng(self.seed + writer as u64);
        let own = (self.notes.len() - self.stable) / WRITERS;
        let first = self.stable + writer * own;
        for _ in 0..CHANGES {
            let id = first + rng.below(own);
            let change = match (self.note(id).held, rng.below(3)) {
                (false, _) => Change::Insert,
                (true, 0) => Change::Remove,
                (true, _) => Change::Replace,
            };
            self.change(id, change);
        }
    }

    /// Searches until the writers are done, and a few times more.
    fn search(&self, searcher: usize) {
        let mut rng = Rng(self.seed + 1_000 + searcher as u64);
        let mut left = 10;
        while left > 0 {
            left -= usize::from(self.done.load(Ordering::Relaxed));
            let about = rng.below(self.notes.len());
            let query = self.vector(about, self.note(about).version);
            let is_even = |id: u32| id.is_multiple_of(2);
            let search = SearchOptions {
                k: [1, 3, 10, 40, usize::MAX][rng.below(5)],
                beam: [None, Some(64)][rng.below(2)],
                filter: [None, Some(IdFilter::Predicate(&is_even))][rng.below(2)],
                ..SearchOptions::new(1)
            };
            self.search_once(&query, &search);
        }
    }

    fn search_once(&self, query: &[f32], search: &SearchOptions<'_>) {
        let notes = || (0..self.notes.len()).map(|id| self.note(id));
        let before: Vec<Note> = notes().collect();
        let found = self.index.search_with(query, search).expect("search");
        let after: Vec<Note> = notes().collect();

        let mut answered = vec![false; self.notes.len()];
        for neighbour in &found {
            let id = neighbour.id as usize;
            assert!(!answered[id], "{id} is answered twice, by {search:?}");
            answered[id] = true;
            assert!(crate::oracle::admits(search, neighbour.id));
            self.check(neighbour, query, before[id], after[id]);
        }
        assert!(found.is_sorted_by(|a, b| (a.distance, a.id) < (b.distance, b.id)));
        // These ids were there all the time, and may be in the answer.
        let is_there = |id: &usize| {
            let same = before[*id] == after[*id] && !before[*id].unsettled;
            same && before[*id].held && crate::oracle::admits(search, *id as u32)
        };
        let there = (0..self.notes.len()).filter(is_there);
        let farthest = found.last().map_or(f32::NEG_INFINITY, |n| n.distance);
        let mut count = 0;
        for id in there {
            count += 1;
            if found.len() < search.k {
                assert!(answered[id], "{id} is missing, by {search:?}");
            }
        }
        assert!(found.len() >= search.k.min(count), "{search:?}");
        assert!(found.is_empty() || farthest.is_finite());
    }

    /// Saves until the writers are done, and checks what was saved.
    fn save(&self) {
        while !self.done.load(Ordering::Relaxed) {
            let snapshot = tempfile::tempdir().expect("a directory");
            let notes = || (0..self.notes.len()).map(|id| self.note(id));
            let before: Vec<Note> = notes().collect();
            let saved = self.index.save(snapshot.path()).expect("save");
            let after: Vec<Note> = notes().collect();
            let opened =
                NeighbourIndex::open(snapshot.path(), self.options).expect("a sound snapshot");
            assert_eq!(opened.len(), saved.vectors);
            let query = vec![0.7; self.options.dimensions];
            let found = opened.search(&query, usize::MAX).expect("search");
            assert_eq!(found.len(), saved.vectors);
            let mut answered = vec![false; self.notes.len()];
            for neighbour in &found {
                let id = neighbour.id as usize;
                assert!(!std::mem::replace(&mut answered[id], true), "{id} twice");
                self.check(neighbour, &query, before[id], after[id]);
            }
            for (id, (before, after)) in before.iter().zip(&after).enumerate() {
                if before == after && !before.unsettled {
                    assert_eq!(answered[id], before.held, "{id}");
                }
            }
            self.search_saved(&opened, &before, &after);
        }
    }

    /// Searches an opened snapshot. Its links may never have been all there at once, but are good
    /// enough.
    fn search_saved(&self, opened: &NeighbourIndex, before: &[Note], after: &[Note]) {
        let mut missed = 0;
        for id in 0..self.stable.min(40) {
            let query = self.vector(id, before[id].version);
            let walk = SearchOptions {
                beam: Some(64),
                ..SearchOptions::new(3)
            };
            let found = opened.search_with(&query, &walk).expect("search");
            for neighbour in &found {
                let id = neighbour.id as usize;
                self.check(neighbour, &query, before[id], after[id]);
            }
            missed += usize::from(!found.iter().any(|found| found.id as usize == id));
        }
        // By the dot product others may be nearer to a vector than itself.
        let by_distance = self.options.metric != DistanceMetric::DotProduct;
        assert!(missed <= 2 || !by_distance, "{missed} missed");
        // Every id can be found again, replaced and removed.
        for id in 0..self.stable.min(10) as u32 {
            let vector = self.vector(id as usize, 1_000_000);
            opened.replace(id, &vector).expect("held");
            opened.remove(id).expect("held");
        }
    }

    /// Checks that a neighbour was a possible answer between the notes.
    fn check(&self, neighbour: &Neighbour, query: &[f32], before: Note, after: Note) {
        let (id, told) = (neighbour.id as usize, f64::from(neighbour.distance));
        let unchanged = before == after && !before.unsettled;
        assert!(!unchanged || before.held, "{id} has been removed");
        // The change under way at the end may have happened already.
        let last = after.version + u64::from(after.unsettled);
        let possible = (before.version..=last).any(|version| {
            let vector = self.vector(id, version);
            let real = distance(self.options.metric, query, &vector);
            (told - real).abs() <= 1e-6 * real.abs().max(1.0)
        });
        assert!(possible, "{neighbour:?} between {before:?} and {after:?}");
    }

    /// Checks that everything is where it should be when all is quiet.
    fn finish(&self) {
        let held: Vec<usize> = (0..self.notes.len())
            .filter(|id| self.note(*id).held)
            .collect();
        assert_eq!(self.index.len(), held.len());
        for &id in &held {
            let query = self.vector(id, self.note(id).version);
            self.search_once(&query, &SearchOptions::new(1));
        }
        self.search_once(
            &vec![0.5; self.options.dimensions],
            &SearchOptions::new(usize::MAX),
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Insert,
    Replace,
    Remove,
}

#[test]
fn answers_are_possible_whatever_others_do() {
    for number in 0..setting("ANN_MODEL_ROUNDS", ROUNDS_DEFAULT) {
        let round = Round::numbered(number);
        thread::scope(|scope| {
            let raise = Raise(&round.done);
            let round = &round;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || round.write(writer)))
                .collect();
            for searcher in 0..SEARCHERS {
                scope.spawn(move || round.search(searcher));
            }
            scope.spawn(move || round.save());
            for writer in writers {
                writer.join().expect("a writer");
            }
            drop(raise);
        });
        round.finish();
    }
}
