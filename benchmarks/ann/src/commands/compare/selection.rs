//! Selects the contenders for each data set.

use super::Size;
use crate::contenders::BASELINE;

/// The contenders on one data set.
pub struct Selection {
    pub data_set: String,
    /// The contenders that build and search.
    pub contenders: Vec<String>,
    /// The contenders that only build, to measure the build and its memory.
    pub only_built: Vec<String>,
    /// Whether the data set stands for a real one whose recall is known.
    pub calibrated: bool,
}

const QUICK_SETS: &[&str] = &["texts50k", "mnist20k", "lifted1536-20k"];
const FULL_SETS: &[&str] = &[
    "texts50k",
    "mnist20k",
    "movies",
    "lifted1536-20k",
    "lifted1536-50k",
    "clustered768-100k",
    "clustered96-1m",
];

/// The contenders of a quick run. The others take most of the time of a full run.
const QUICK: &[&str] = &[BASELINE, "annulus", "annulus-avx2"];
const FULL: &[&str] = &[
    BASELINE,
    "usearch-bf16",
    "usearch-f16",
    "diskann-f32",
    "diskann-4bit",
    "diskann-1bit",
    "annulus",
    "annulus-bytes",
    "annulus-avx2",
];
/// The contenders on large sets, where a build takes many minutes.
const LARGE: &[&str] = &[
    BASELINE,
    "usearch-bf16",
    "diskann-4bit",
    "annulus",
    "annulus-avx2",
];
/// The sets of a million vectors and more.
const LARGE_SETS: &[&str] = &["clustered96-1m"];
/// The contender that keeps everything in RAM.
const PINNED: &str = "annulus-memory";

/// The selections of a size, or those for the named data sets with the contenders of that size.
pub fn of(size: Size, data_sets: &[String]) -> Vec<Selection> {
    let (sets, contenders) = match size {
        Size::Quick => (QUICK_SETS, QUICK),
        Size::Full => (FULL_SETS, FULL),
    };
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.into())
            .collect::<Vec<String>>()
    };
    let sets = match data_sets {
        [] => owned(sets),
        named => named.to_vec(),
    };
    let selection = |data_set: String| {
        let large = LARGE_SETS.contains(&data_set.as_str());
        Selection {
            contenders: owned(if large { LARGE } else { contenders }),
            only_built: owned(&[PINNED]),
            calibrated: data_set.starts_with("lifted1536"),
            data_set,
        }
    };
    sets.into_iter().map(selection).collect()
}

impl Selection {
    /// Removes all contenders but the named ones and the baseline.
    pub fn only(&mut self, contenders: &[String]) {
        let named = contenders.iter().filter(|&name| name != BASELINE).cloned();
        self.contenders = std::iter::once(BASELINE.into()).chain(named).collect();
        self.only_built.clear();
    }
}
