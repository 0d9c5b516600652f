//! The width of walks that the data need, learned from samples.
//!
//! How wide a walk has to be depends on the data: where they fill many dimensions, a walk of the
//! default width finds three of four neighbours. So one change in so many takes a sample: the true
//! neighbours of a vector are found by a scan, and walks of growing width are compared with them.
//! The vectors of one half of the samples are those of the changes, before they get into the index
//! or after they have left it: they are no part of the graph, as the query of a user is none. Those
//! of the other half are held: they come from all of the data, in whatever order these are written.
//!
//! The index walks as wide as it takes to find [`RECALL`] of the neighbours of either half in the
//! mean, up to [`WIDTHS_MAX`] times the default width. Where a scan of the codes takes less time
//! than such a walk, the [plan](crate::plan) takes the scan.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// Share of the true neighbours that a walk of the learned width finds in the mean.
const RECALL: f32 = 0.99;

/// The widths that are tried, as multiples of the default one.
const WIDTHS: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, WIDTHS_MAX];

/// The widest walk, as a multiple of the default width.
pub(crate) const WIDTHS_MAX: f64 = 12.0;

/// Numbers of neighbours that samples look for.
const SAMPLED_KS: [usize; 2] = [10, 100];

/// Number of neighbours from which on the width is that of the second of [`SAMPLED_KS`].
const MANY: usize = 32;

/// Number of vectors below which nothing is sampled: they are scanned.
const HELD_MIN: usize = 8_192;

/// One change in this share of the vectors held is a sample. A sample takes about as long as a
/// scan.
const SAMPLED_SHARE: usize = 192;

/// The fewest changes from one sample to the next.
const CHANGES_MIN: usize = 64;

/// Number of samples before they are believed.
const SAMPLES_MIN: u32 = 8;

/// The most samples that count, as the data may change.
const SAMPLES_MAX: u32 = 64;

/// The findings of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The width of a walk, as a multiple of the default width.
    pub width: f32,
    /// The share of the ten true neighbours that a walk of that width has found in the mean; None
    /// as long as there are too few samples.
    pub recall: Option<f32>,
    /// Whether the widest walk finds less than an index aims at.
    pub is_bounded: bool,
}

/// The samples of an index.
#[derive(Debug, Default)]
pub(crate) struct RecallSamples {
    kinds: Mutex<SampleKinds>,
    /// Number of changes since the last sample.
    changes: AtomicU32,
    turns: AtomicU64,
    /// The place in [`WIDTHS`] of the width in use, for each of [`SAMPLED_KS`].
    chosen: [AtomicU32; 2],
}

/// The samples of each kind: of held vectors or of others, for each of [`SAMPLED_KS`].
#[derive(Debug, Default)]
struct SampleKinds {
    means: [[RecallMeans; 2]; 2],
    /// Number of samples taken of all kinds.
    taken: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct RecallMeans {
    /// The mean recall of each of [`WIDTHS`].
    recalls: [f32; WIDTHS.len()],
    samples: u32,
}

/// A sample to be taken.
pub(crate) struct RecallSample<'a> {
    kinds: MutexGuard<'a, SampleKinds>,
    samples: &'a RecallSamples,
    /// Whether the sample is of a vector that is held.
    pub is_held: bool,
    k: usize,
}

impl RecallSamples {
    /// Counts a change of an index of so many vectors. Returns the sample to take with it, if there
    /// is one.
    pub(crate) fn count(&self, held: usize) -> Option<RecallSample<'_>> {
        if held < HELD_MIN {
            return None;
        }
        let changes = self.changes.fetch_add(1, Ordering::Relaxed) as usize;
        if changes < (held / SAMPLED_SHARE).max(CHANGES_MIN) {
            return None;
        }
        self.changes.store(0, Ordering::Relaxed);
        let mut kinds = self.kinds.try_lock()?;
        let kind = kinds.taken % 4;
        kinds.taken += 1;
        Some(RecallSample {
            kinds,
            samples: self,
            is_held: kind % 2 == 1,
            k: kind / 2,
        })
    }

    /// A number that grows with each call.
    pub(crate) fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// The width to walk for `k` neighbours, as a multiple of the default one.
    pub(crate) fn width(&self, k: usize) -> f64 {
        let chosen = &self.chosen[usize::from(k >= MANY)];
        WIDTHS[chosen.load(Ordering::Relaxed) as usize]
    }

    /// The findings for `k` neighbours.
    pub(crate) fn calibration(&self, k: usize) -> Calibration {
        let of_k = usize::from(k >= MANY);
        let kinds = self.kinds.lock();
        let chosen = self.chosen[of_k].load(Ordering::Relaxed) as usize;
        let means = kinds.means.iter().map(|of_source| of_source[of_k]);
        let known = means.filter(|means| means.samples >= SAMPLES_MIN);
        let recall = known.map(|means| means.recalls[chosen]).reduce(f32::min);
        Calibration {
            width: WIDTHS[chosen] as f32,
            recall,
            is_bounded: recall.is_some_and(|recall| recall < RECALL) && chosen == WIDTHS.len() - 1,
        }
    }

    /// The widths in use, for a snapshot.
    pub(crate) fn widths(&self) -> [f32; 2] {
        SAMPLED_KS.map(|k| self.width(k) as f32)
    }

    /// Takes over the widths that an index had learned.
    pub(crate) fn restore(&mut self, widths: [f32; 2]) {
        for (chosen, width) in self.chosen.iter_mut().zip(widths) {
            let at_least = WIDTHS.iter().position(|known| *known as f32 >= width);
            *chosen.get_mut() = at_least.unwrap_or(WIDTHS.len() - 1) as u32;
        }
    }
}

impl RecallSample<'_> {
    /// Number of neighbours that the sample looks for.
    pub(crate) fn k(&self) -> usize {
        SAMPLED_KS[self.k]
    }

    /// Takes the sample. `recall` is that of a walk of so many times the default width.
    pub(crate) fn take(mut self, mut recall: impl FnMut(f64) -> f32) {
        let of_source = &mut self.kinds.means[usize::from(self.is_held)];
        of_source[self.k].learn(&mut recall);
        let enough = self.kinds.means.iter();
        let enough = enough.map(|of_source| of_source[self.k].enough()).max();
        self.samples.chosen[self.k].store(enough.unwrap_or(0) as u32, Ordering::Relaxed);
    }
}

impl RecallMeans {
    fn learn(&mut self, recall: &mut impl FnMut(f64) -> f32) {
        self.samples = (self.samples + 1).min(SAMPLES_MAX);
        let share = 1.0 / self.samples as f32;
        let mut found = 0.0f32;
        for (mean, width) in self.recalls.iter_mut().zip(WIDTHS) {
            if found < 1.0 {
                found = recall(width).max(found);
            }
            *mean += (found - *mean) * share;
        }
    }

    /// The place of the narrowest width that finds enough; the first as long as there are too few
    /// samples.
    fn enough(&self) -> usize {
        if self.samples < SAMPLES_MIN {
            return 0;
        }
        let enough = self.recalls.iter().position(|recall| *recall >= RECALL);
        enough.unwrap_or(WIDTHS.len() - 1)
    }
}
