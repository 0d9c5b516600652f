//! The arguments that name a data set, and the reading of its vectors, queries and true neighbours.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::array::{TrueNeighbours, VectorRows};
use super::exact::{self, SimilarityMetric};
use super::locate::{self, ArrayFiles, required};
use super::source::{ArrayRole, ArraySource, extension};
use super::{cache, hdf5};

/// The least number of neighbours that are computed for each query, so that a later command with
/// another limit finds them stored.
const COMPUTED_NEIGHBOURS: usize = 100;

/// The arguments that name a data set.
#[derive(Args, Clone, Debug, Default)]
pub struct DataArguments {
    /// The data set: a directory (train, test, neighbors), an HDF5 file, or the beginning of the
    /// names of its files
    ///
    /// Files that are found: DIR/train.parquet with test.parquet and neighbors.parquet
    /// (VectorDBBench), base.npy with query.npy and gt.npy, SET_base.fvecs with SET_query.fvecs and
    /// SET_groundtruth.ivecs, and the like. A single file is the base.
    #[arg(long, value_name = "SET")]
    pub data: Option<PathBuf>,
    /// The vectors to be searched: FILE, or FILE:PART for a column or an HDF5 dataset
    #[arg(long, value_name = "FILE[:PART]")]
    pub base: Option<ArraySource>,
    /// The queries
    #[arg(long, value_name = "FILE[:PART]")]
    pub queries: Option<ArraySource>,
    /// The ids of the queries' true neighbours; they are computed if there are none
    #[arg(long, value_name = "FILE[:PART]")]
    pub neighbours: Option<ArraySource>,
    /// Use only the first N vectors; the true neighbours are computed for them
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// Take the last N vectors out of the base, as queries
    #[arg(long, value_name = "N", conflicts_with = "queries")]
    pub hold_out: Option<usize>,
    /// The metric of the true neighbours [default: that of the data set, else cosine]
    ///
    /// True neighbours from a file are taken as they are. They are computed again if the data set
    /// is an HDF5 file that names another metric.
    #[arg(long, value_enum)]
    pub metric: Option<SimilarityMetric>,
}

/// The queries of a data set, with the rows that each should find.
#[derive(Clone, Debug)]
pub struct SearchSet {
    /// The queries.
    pub queries: VectorRows,
    /// The ids of each query's true neighbours.
    pub neighbours: TrueNeighbours,
    /// The metric of the true neighbours, if it is known. Most files of neighbours don't name it.
    pub metric: Option<SimilarityMetric>,
}

impl DataArguments {
    fn located(&self) -> anyhow::Result<ArrayFiles> {
        let found = match &self.data {
            Some(set) => locate::locate(set)?,
            None => ArrayFiles::default(),
        };
        Ok(ArrayFiles {
            base: self.base.clone().or(found.base),
            queries: self.queries.clone().or(found.queries),
            neighbours: self.neighbours.clone().or(found.neighbours),
        })
    }

    /// The name of the set in reports.
    pub fn name(&self) -> String {
        let path = self
            .data
            .as_deref()
            .or(self.base.as_ref().map(|base| base.path.as_path()));
        path.and_then(|path| path.file_stem())
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The requested metric, or that of the data set.
    pub fn metric(&self) -> anyhow::Result<SimilarityMetric> {
        Ok(self.known_metric()?.unwrap_or(SimilarityMetric::Cosine))
    }

    /// The requested metric, or that of the data set if it names one.
    fn known_metric(&self) -> anyhow::Result<Option<SimilarityMetric>> {
        match self.metric {
            Some(metric) => Ok(Some(metric)),
            None => self.metric_of_files(),
        }
    }

    fn metric_of_files(&self) -> anyhow::Result<Option<SimilarityMetric>> {
        match self.located()?.base {
            Some(base) if matches!(extension(&base.path).as_str(), "hdf5" | "h5") => {
                hdf5::metric(&base.path).with_context(|| base.to_string())
            }
            _ => Ok(None),
        }
    }

    /// Whether the true neighbours in the data set's own file are by another metric than the
    /// requested one.
    fn asks_for_another_metric(&self) -> bool {
        if self.metric.is_none() || self.neighbours.is_some() {
            return false;
        }
        match self.metric_of_files() {
            Ok(of_files) => of_files.is_some() && of_files != self.metric,
            // The file names a metric that is not known here.
            Err(_) => true,
        }
    }

    /// Reads the vectors to be searched.
    pub fn read_base(&self) -> anyhow::Result<VectorRows> {
        Ok(self.split()?.0)
    }

    /// Reads the queries.
    pub fn read_queries(&self) -> anyhow::Result<VectorRows> {
        if self.hold_out.is_some() {
            let held_out = self.split()?.1;
            return held_out.context("--hold-out takes queries out of the base");
        }
        read_queries(self.located()?.queries)
    }

    /// Reads the base, and takes the queries out of it if `--hold-out` says so.
    fn split(&self) -> anyhow::Result<(VectorRows, Option<VectorRows>)> {
        ensure!(self.rows != Some(0), "--rows must be at least 1");
        let source = required(self.located()?.base, "vectors", "--base")?;
        let rows_max = match (self.hold_out, self.rows) {
            (None, Some(rows)) => rows,
            _ => usize::MAX,
        };
        let mut base = source.read_first(ArrayRole::Base, rows_max)?.into_vectors();
        let held_out = self.hold_out.map(|count| {
            ensure!(
                count > 0 && count < base.len(),
                "--hold-out must be between 1 and {}",
                base.len() - 1
            );
            Ok(base.split_off(count))
        });
        let held_out = held_out.transpose()?;
        if let Some(rows) = self.rows {
            base.truncate(rows.min(base.len()));
        }
        Ok((base, held_out))
    }

    /// Reads the queries with at least `k` true neighbours each. The base is read only when the
    /// neighbours must be computed.
    pub fn read_search_set(&self, k: usize) -> anyhow::Result<SearchSet> {
        let located = self.located()?;
        let changed =
            self.rows.is_some() || self.hold_out.is_some() || self.asks_for_another_metric();
        if !changed && let Some(source) = &located.neighbours {
            let queries = read_queries(located.queries.clone())?;
            let neighbours = source.read(ArrayRole::Neighbours)?;
            let neighbours = neighbours.into_neighbours().context(source.to_string())?;
            ensure!(
                neighbours.len() == queries.len(),
                "{source} has the neighbours of {} queries, and there are {}",
                neighbours.len(),
                queries.len()
            );
            if neighbours.per_query >= k {
                return Ok(SearchSet {
                    queries,
                    neighbours,
                    metric: self.known_metric()?,
                });
            }
        }
        let (base, held_out) = self.split()?;
        let queries = match held_out {
            Some(queries) => queries,
            None => read_queries(located.queries)?,
        };
        let neighbours = self.compute(located.base.as_ref(), &base, &queries, k)?;
        Ok(SearchSet {
            queries,
            neighbours,
            metric: Some(self.metric()?),
        })
    }

    fn compute(
        &self,
        source: Option<&ArraySource>,
        base: &VectorRows,
        queries: &VectorRows,
        k: usize,
    ) -> anyhow::Result<TrueNeighbours> {
        ensure!(
            base.dimensions == queries.dimensions,
            "the vectors have {} elements, the queries {}",
            base.dimensions,
            queries.dimensions
        );
        ensure!(
            k <= base.len(),
            "{k} neighbours are more than the {} vectors",
            base.len()
        );
        for (name, vectors) in [("vectors", base), ("queries", queries)] {
            ensure!(
                vectors.values.iter().all(|value| value.is_finite()),
                "some {name} are not finite (`data describe` counts them); clean them first"
            );
        }
        let metric = self.metric()?;
        let k = k.max(COMPUTED_NEIGHBOURS.min(base.len()));
        let file = source.map(|source| source.path.as_path());
        let kept = file.map(|file| cache::path(file, base, queries, metric, k));
        let positions = match &kept {
            Some(path) => cache::read(path, queries.len(), k)?,
            None => None,
        };
        let positions = match positions {
            Some(positions) => positions,
            None => {
                eprintln!(
                    "computing the true neighbours of {} queries among {} vectors, by {} (--metric)",
                    queries.len(),
                    base.len(),
                    metric.name()
                );
                let bar = progress(queries.len())?;
                let positions = exact::nearest(base, queries, metric, k, &bar);
                bar.finish_and_clear();
                if let Some(path) = &kept
                    && let Err(error) = cache::write(path, &positions, k)
                {
                    eprintln!(
                        "the true neighbours can't be kept at {}: {error}",
                        path.display()
                    );
                }
                positions
            }
        };
        Ok(TrueNeighbours {
            per_query: k,
            ids: positions
                .into_iter()
                .map(|position| base.id(position as usize))
                .collect(),
        })
    }
}

fn read_queries(located: Option<ArraySource>) -> anyhow::Result<VectorRows> {
    let source = required(located, "queries", "--queries or --hold-out")?;
    Ok(source.read(ArrayRole::Queries)?.into_vectors())
}

fn progress(queries: usize) -> anyhow::Result<ProgressBar> {
    let template = "True neighbours {bar:40} {pos}/{len} queries {eta}";
    Ok(ProgressBar::new(queries as u64).with_style(ProgressStyle::with_template(template)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(rows: usize, columns: usize, values: &[f32]) -> Vec<u8> {
        let header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns})}}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        values.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        bytes
    }

    #[test]
    fn neighbours_that_are_missing_are_computed_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let values: Vec<f32> = (0..12).map(|x| x as f32).collect();
        std::fs::write(directory.path().join("base.npy"), npy(6, 2, &values)).unwrap();
        std::fs::write(directory.path().join("query.npy"), npy(1, 2, &[10.1, 11.1])).unwrap();
        let arguments = DataArguments {
            data: Some(directory.path().to_owned()),
            metric: Some(SimilarityMetric::Euclidean),
            ..DataArguments::default()
        };
        for _ in 0..2 {
            let set = arguments.read_search_set(2).unwrap();
            assert_eq!(set.neighbours.of(0), [5, 4, 3, 2, 1, 0]);
        }
        let files = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(files.count(), 3);
        let fewer = DataArguments {
            rows: Some(3),
            ..arguments.clone()
        };
        let set = fewer.read_search_set(2).unwrap();
        assert_eq!(set.neighbours.of(0), [2, 1, 0]);
        assert_eq!(set.metric, Some(SimilarityMetric::Euclidean));
    }

    #[test]
    fn held_out_vectors_are_queries_and_not_in_the_base() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let arguments = DataArguments {
            data: Some(path.join("ann-benchmarks.hdf5")),
            hold_out: Some(2),
            rows: Some(15),
            ..DataArguments::default()
        };
        assert_eq!(arguments.metric().unwrap(), SimilarityMetric::Euclidean);
        assert!(!arguments.asks_for_another_metric());
        let of = |metric| DataArguments {
            metric: Some(metric),
            ..arguments.clone()
        };
        assert!(!of(SimilarityMetric::Euclidean).asks_for_another_metric());
        assert!(of(SimilarityMetric::Cosine).asks_for_another_metric());
        let (base, queries) = arguments.split().unwrap();
        assert_eq!((base.len(), queries.unwrap().row(0)[0]), (15, 18.0));
    }
}
