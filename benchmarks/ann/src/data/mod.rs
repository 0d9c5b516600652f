//! The data sets: real ones from Parquet files, and recipes for those that have no file.
//!
//! Each set is decoded or made once, and its true neighbours are computed exactly. The result is
//! kept as raw files (see [`contender::DataSet`]) that later runs open at once.

mod clustered;
mod files;
mod films;
mod intrinsic;
mod lifted;
pub mod mnist;
pub mod parallel;
pub mod random;
pub mod texts;

use std::fs;
use std::path::Path;
use std::time::Instant;

use annulus_bench::data::{self, VectorRows};
use anyhow::{Context, anyhow};
use contender::{DataSet, Description, Kind, Metric, NEIGHBOURS};
use indicatif::ProgressBar;

/// Vectors and queries of a set whose true neighbours are not known yet.
struct Made {
    dimensions: usize,
    metric: Metric,
    base: Vec<f32>,
    queries: Vec<f32>,
    kinds: Vec<Kind>,
    remark: String,
}

/// A data set and the way to make it.
pub struct Source {
    /// The name in arguments and results.
    pub name: &'static str,
    /// A description of one line for `--help`.
    pub about: &'static str,
    make: fn() -> anyhow::Result<Made>,
}

/// The beginnings of the names of the sets that [`clustered::growing`] makes, and their dimensions.
/// The number of vectors follows.
const GROWING: [(&str, usize); 2] = [("mixture96-", 96), ("mixture48-", 48)];

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
    Source {
        name: "mixture96-100k",
        about: "100,000 x 96 of 20 wide clusters of intrinsic dimension 32, Euclidean; in any other number too, as mixture96-3m",
        make: || clustered::make(&clustered::growing(96, 100_000)),
    },
    Source {
        name: "mixture48-100k",
        about: "100,000 x 48 of the same recipe, of intrinsic dimension 16; in any other number too",
        make: || clustered::make(&clustered::growing(48, 100_000)),
    },
];

/// Opens a data set. It is made first if `cache` does not have it yet.
pub fn open(name: &str, cache: &Path) -> anyhow::Result<DataSet> {
    let folder = cache.join(name);
    if let Some(data) = DataSet::open(&folder)? {
        return Ok(data);
    }
    make(name, &folder).with_context(|| format!("making the data set {name}"))?;
    DataSet::open(&folder)?.context("a data set just made is gone")
}

/// The name of the set of `vectors` vectors in 96 dimensions of one distribution. A smaller set is
/// the beginning of a larger one, and the queries are the same.
pub fn growing(vectors: usize) -> String {
    let (prefix, _) = GROWING[0];
    match vectors {
        n if n.is_multiple_of(1_000_000) => format!("{prefix}{}m", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!("{prefix}{}k", n / 1_000),
        n => format!("{prefix}{n}"),
    }
}

/// The dimensions and the number of vectors of a set whose name begins as one of [`GROWING`];
/// `None` for other names.
fn size_of_growing(name: &str) -> Option<(usize, usize)> {
    let beginning = |&(prefix, dimensions)| Some((dimensions, name.strip_prefix(prefix)?));
    let (dimensions, number) = GROWING.iter().find_map(beginning)?;
    let (digits, unit) = match number.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => number
            .strip_suffix('m')
            .map_or((number, 1), |digits| (digits, 1_000_000)),
    };
    let vectors = digits.parse::<usize>().ok()?.checked_mul(unit)?;
    // A set of fewer vectors has no hundred neighbours to find.
    (vectors >= NEIGHBOURS).then_some((dimensions, vectors))
}

fn make_vectors(name: &str) -> anyhow::Result<Made> {
    match SOURCES.iter().find(|source| source.name == name) {
        Some(source) => (source.make)(),
        None => {
            let size = size_of_growing(name);
            let (dimensions, vectors) =
                size.ok_or_else(|| anyhow!("there is no data set {name}"))?;
            clustered::make(&clustered::growing(dimensions, vectors))
        }
    }
}

fn make(name: &str, folder: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    eprintln!("{name}: making the data set and its true neighbours");
    let made = make_vectors(name)?;
    let vectors = |values| VectorRows {
        dimensions: made.dimensions,
        values,
        ids: None,
    };
    let (base, queries) = (vectors(made.base), vectors(made.queries));
    let metric = match made.metric {
        Metric::Cosine => data::SimilarityMetric::Cosine,
        Metric::Euclidean => data::SimilarityMetric::Euclidean,
    };
    let hidden = ProgressBar::hidden();
    let neighbours = data::nearest(&base, &queries, metric, NEIGHBOURS, &hidden);
    let intrinsic = intrinsic::dimension(&base, &queries, metric, &neighbours);
    let description = Description {
        name: name.into(),
        dimensions: made.dimensions,
        metric: made.metric,
        vectors: base.len(),
        kinds: made.kinds,
        remark: format!(
            "{}; intrinsic dimension around the queries {intrinsic:.1}",
            made.remark
        ),
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    contender::write_floats(folder, false, &base.values)?;
    contender::write_floats(folder, true, &queries.values)?;
    contender::write_ids(folder, &neighbours)?;
    description.save(folder)?;
    eprintln!("{name}: made in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The kinds of a set with queries of one kind.
fn one_kind(queries: usize) -> Vec<Kind> {
    vec![Kind {
        name: String::new(),
        queries,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_number_of_vectors() {
        for vectors in [100, 1_500, 30_000, 1_000_000, 2_500_000] {
            assert_eq!(size_of_growing(&growing(vectors)), Some((96, vectors)));
        }
        assert_eq!(growing(30_000), "mixture96-30k");
        assert_eq!(size_of_growing("mixture48-1m"), Some((48, 1_000_000)));
        for name in ["mixture96-", "mixture96-99", "mixture96-1g", "texts50k"] {
            assert_eq!(size_of_growing(name), None, "{name}");
        }
    }

    #[test]
    fn a_smaller_set_is_the_beginning_of_a_larger_one() {
        let small = clustered::make(&clustered::growing(96, 200)).unwrap();
        let large = clustered::make(&clustered::growing(96, 300)).unwrap();
        assert_eq!(small.base, large.base[..small.base.len()]);
        assert_eq!(small.queries, large.queries);
    }
}
