//! The data sets: real ones from Parquet files, and recipes for those that no file can be had of.
//!
//! Each is decoded or made once, its true neighbours are computed exactly, and the result is kept
//! as raw files (see [`contender::DataSet`]) that later runs open at once.

mod clustered;
mod exact;
mod films;
mod intrinsic;
mod lifted;
mod mnist;
mod parallel;
mod parquet_file;
pub mod random;
mod texts;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow};
use contender::{DataSet, Description, Kind, Metric, NEIGHBOURS, Vectors};

/// Vectors and queries, before their neighbours are known.
struct Made {
    dimensions: usize,
    metric: Metric,
    base: Vec<f32>,
    queries: Vec<f32>,
    kinds: Vec<Kind>,
    remark: String,
}

/// A data set by name.
pub struct Source {
    /// As arguments and results have it.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    make: fn() -> anyhow::Result<Made>,
}

/// All data sets.
pub const SOURCES: &[Source] = &[
    Source {
        name: "texts50k",
        about: "50,000 x 384 dictionary senses (all-MiniLM-L6-v2), cosine; 1,000 queries of the same kind, 1,000 of another",
        make: texts::make,
    },
    Source {
        name: "mnist20k",
        about: "20,000 x 784 handwritten digits, Euclidean",
        make: mnist::make,
    },
    Source {
        name: "movies",
        about: "9,500 x 384 film plots (all-MiniLM-L6-v2), cosine",
        make: films::make,
    },
    Source {
        name: "lifted1536-20k",
        about: "20,000 x 1536, the texts lifted and blurred until they are as hard as OpenAI's vectors, cosine",
        make: || lifted::make(20_000),
    },
    Source {
        name: "lifted1536-50k",
        about: "50,000 x 1536 of the same recipe",
        make: || lifted::make(50_000),
    },
    Source {
        name: "clustered768-100k",
        about: "100,000 x 768 in clusters of intrinsic dimension 32, cosine",
        make: || clustered::make(&clustered::WIDE),
    },
    Source {
        name: "clustered96-100k",
        about: "100,000 x 96 in clusters of intrinsic dimension 16, Euclidean",
        make: || clustered::make(&clustered::NARROW_SAMPLE),
    },
    Source {
        name: "clustered96-1m",
        about: "1,000,000 x 96 of the same recipe",
        make: || clustered::make(&clustered::NARROW),
    },
];

/// Opens a data set, and makes it first where `cache` does not hold it yet.
pub fn open(name: &str, cache: &Path) -> anyhow::Result<DataSet> {
    let source = SOURCES.iter().find(|source| source.name == name);
    let source = source.ok_or_else(|| anyhow!("there is no data set {name}"))?;
    let folder = cache.join(name);
    if let Some(data) = DataSet::open(&folder)? {
        return Ok(data);
    }
    make(source, &folder).with_context(|| format!("making the data set {name}"))?;
    DataSet::open(&folder)?.context("a data set just made is gone")
}

fn make(source: &Source, folder: &Path) -> anyhow::Result<()> {
    eprintln!(
        "{}: making the data set and its true neighbours",
        source.name
    );
    let start = Instant::now();
    let made = (source.make)()?;
    let base = Vectors::new(&made.base, made.dimensions);
    let queries = Vectors::new(&made.queries, made.dimensions);
    let neighbours = exact::neighbours(base, queries, made.metric, NEIGHBOURS);
    let intrinsic = intrinsic::dimension(base, queries, made.metric, &neighbours);
    let description = Description {
        name: source.name.into(),
        dimensions: made.dimensions,
        metric: made.metric,
        vectors: base.count(),
        kinds: made.kinds,
        remark: format!(
            "{}; intrinsic dimension around the queries {intrinsic:.1}",
            made.remark
        ),
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    contender::write_floats(folder, false, &made.base)?;
    contender::write_floats(folder, true, &made.queries)?;
    contender::write_ids(folder, &neighbours)?;
    description.save(folder)?;
    eprintln!(
        "{}: made in {:.1} s",
        source.name,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Queries of one kind.
fn one_kind(queries: usize) -> Vec<Kind> {
    vec![Kind {
        name: String::new(),
        queries,
    }]
}
