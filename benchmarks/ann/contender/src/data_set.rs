//! The files of a data set as the contenders read them: raw, little-endian and memory-mapped.
//!
//! | file | content |
//! | --- | --- |
//! | `description.json` | a [`Description`]; written last, so that a folder with it is whole |
//! | `base.f32` | the vectors to be indexed; the id of each is its row |
//! | `queries.f32` | the queries |
//! | `neighbours.u32` | ids of the [`NEIGHBOURS`] nearest vectors of each query, nearest first |

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, ensure};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

/// The number of true neighbours that are known of each query.
pub const NEIGHBOURS: usize = 100;

const DESCRIPTION: &str = "description.json";
const BASE: &str = "base.f32";
const QUERIES: &str = "queries.f32";
const NEIGHBOUR_IDS: &str = "neighbours.u32";

/// The distance of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// `1 - cos`
    Cosine,
    /// The squared Euclidean distance.
    Euclidean,
}

/// The description of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The name in the benchmark's arguments and results.
    pub name: String,
    /// Elements of a vector.
    pub dimensions: usize,
    /// The distance by which its neighbours are the nearest.
    pub metric: Metric,
    /// The number of vectors to be indexed.
    pub vectors: usize,
    /// The kinds of queries, one after the other. All queries together are all rows.
    pub kinds: Vec<Kind>,
    /// A remark for readers of the results, such as a measured intrinsic dimension.
    pub remark: String,
}

/// Queries that have something in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// The name of the kind; empty if there is only one.
    pub name: String,
    /// The number of queries of this kind.
    pub queries: usize,
}

impl Description {
    /// The number of queries of all kinds.
    pub fn queries(&self) -> usize {
        self.kinds.iter().map(|kind| kind.queries).sum()
    }

    /// Writes the description into `folder`, whose other files must be whole.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(folder.join(DESCRIPTION), text).context("the description of a data set")
    }
}

/// Vectors as rows of floats.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    floats: &'a [f32],
    dimensions: usize,
}

impl<'a> Vectors<'a> {
    /// Makes rows of `dimensions` elements each. Panics if the last row is not whole.
    pub fn new(floats: &'a [f32], dimensions: usize) -> Vectors<'a> {
        assert_eq!(floats.len() % dimensions, 0, "rows are whole");
        Vectors { floats, dimensions }
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.floats.len() / self.dimensions
    }

    /// The number of elements of a row.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The row with the number `row`.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.floats[row * self.dimensions..][..self.dimensions]
    }

    /// All rows, one after the other.
    pub fn floats(&self) -> &'a [f32] {
        self.floats
    }
}

/// An opened data set.
pub struct DataSet {
    description: Description,
    base: Mmap,
    queries: Mmap,
    neighbours: Mmap,
}

impl DataSet {
    /// Opens the data set in `folder`. Returns `None` if there is no whole data set.
    pub fn open(folder: &Path) -> anyhow::Result<Option<DataSet>> {
        let path = folder.join(DESCRIPTION);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        let description: Description = serde_json::from_slice(&text)?;
        let (vectors, queries) = (description.vectors, description.queries());
        let dimensions = description.dimensions;
        Ok(Some(DataSet {
            base: map(&folder.join(BASE), vectors * dimensions)?,
            queries: map(&folder.join(QUERIES), queries * dimensions)?,
            neighbours: map(&folder.join(NEIGHBOUR_IDS), queries * NEIGHBOURS)?,
            description,
        }))
    }

    /// The description of the data set.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The vectors to be indexed.
    pub fn base(&self) -> Vectors<'_> {
        Vectors::new(
            bytemuck::cast_slice(&self.base),
            self.description.dimensions,
        )
    }

    /// The queries, by kind.
    pub fn queries(&self) -> Vectors<'_> {
        Vectors::new(
            bytemuck::cast_slice(&self.queries),
            self.description.dimensions,
        )
    }

    /// The ids of the `k` nearest vectors to a query, nearest first.
    pub fn neighbours(&self, query: usize, k: usize) -> &[u32] {
        let ids: &[u32] = bytemuck::cast_slice(&self.neighbours);
        &ids[query * NEIGHBOURS..][..k]
    }
}

/// Writes the vectors (`queries` false) or the queries of a data set.
pub fn write_floats(folder: &Path, queries: bool, floats: &[f32]) -> anyhow::Result<()> {
    let path = folder.join(if queries { QUERIES } else { BASE });
    fs::write(&path, bytemuck::cast_slice(floats)).with_context(|| path.display().to_string())
}

/// Writes the true neighbours of a data set.
pub fn write_ids(folder: &Path, ids: &[u32]) -> anyhow::Result<()> {
    let path = folder.join(NEIGHBOUR_IDS);
    fs::write(&path, bytemuck::cast_slice(ids)).with_context(|| path.display().to_string())
}

/// Maps a file of `words` words of four bytes. Fails if it has another size.
fn map(path: &Path, words: usize) -> anyhow::Result<Mmap> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    // SAFETY: the benchmark writes these files before it opens them and never changes them after.
    let map = unsafe { Mmap::map(&file) }.with_context(|| path.display().to_string())?;
    let expected = words * size_of::<u32>();
    ensure!(
        map.len() == expected,
        "{} has {} bytes instead of {expected}: delete its folder and run again",
        path.display(),
        map.len()
    );
    Ok(map)
}
