//! HNSW by the `usearch` crate as a contender. ScyllaDB's Vector Store uses this crate; the
//! parameters are the product's defaults.

use std::path::PathBuf;

use anyhow::Context;
use contender::{Contender, Description, Memory, Metric, Vectors, Width, insert_all};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

/// The beginning of the names of these contenders.
pub const NAME: &str = "usearch";
/// `m` of the product's defaults.
const CONNECTIVITY: usize = 16;
/// `ef_construction` of the product's defaults.
const EXPANSION_ADD: usize = 128;

/// The number type in which vectors are kept.
#[derive(Clone, Copy)]
pub enum Scalar {
    F32,
    Bf16,
    F16,
    I8,
}

impl Scalar {
    /// The number type in a contender's name; `None` if it is not a name of these contenders.
    pub fn of_name(name: &str) -> Option<Scalar> {
        let (NAME, scalar) = name.split_once('-')? else {
            return None;
        };
        match scalar {
            "f32" => Some(Scalar::F32),
            "bf16" => Some(Scalar::Bf16),
            "f16" => Some(Scalar::F16),
            "i8" => Some(Scalar::I8),
            _ => None,
        }
    }
}

/// An index of the library.
pub struct Usearch {
    index: Index,
    /// The file that keeps a built index for the next time.
    file: Option<PathBuf>,
}

impl Usearch {
    /// Makes an empty index for a data set.
    pub fn new(
        data: &Description,
        scalar: Scalar,
        file: Option<PathBuf>,
    ) -> anyhow::Result<Usearch> {
        let options = IndexOptions {
            dimensions: data.dimensions,
            metric: match data.metric {
                Metric::Cosine => MetricKind::Cos,
                Metric::Euclidean => MetricKind::L2sq,
            },
            quantization: match scalar {
                Scalar::F32 => ScalarKind::F32,
                Scalar::Bf16 => ScalarKind::BF16,
                Scalar::F16 => ScalarKind::F16,
                Scalar::I8 => ScalarKind::I8,
            },
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            expansion_search: 0,
            multi: false,
        };
        let index = Index::new(&options).context("usearch")?;
        Ok(Usearch { index, file })
    }
}

impl Contender for Usearch {
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()> {
        if let Some(file) = self.file.as_deref().filter(|file| file.exists()) {
            let path = file.to_str().context("a path that is not UTF-8")?;
            return self.index.load(path).context("usearch");
        }
        self.index
            .reserve_capacity_and_threads(base.count(), threads)
            .context("usearch")?;
        insert_all(base, threads, |row, vector| {
            self.index.add(row as u64, vector).context("usearch")
        })?;
        match self.file.as_deref().map(|file| file.to_str()) {
            None => Ok(()),
            Some(path) => self
                .index
                .save(path.context("a path that is not UTF-8")?)
                .context("usearch"),
        }
    }

    fn search(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()> {
        self.index.change_expansion_search(width.beam);
        let matches = self.index.search(query, k).context("usearch")?;
        found.clear();
        found.extend(matches.keys.iter().map(|&key| key as u32));
        Ok(())
    }

    fn memory(&self) -> Option<Memory> {
        Some(Memory {
            anonymous: self.index.memory_usage() as u64,
            mapped: 0,
        })
    }

    fn kernels(&self) -> String {
        self.index.hardware_acceleration()
    }
}
