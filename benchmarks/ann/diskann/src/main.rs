//! The `diskann` crates (Microsoft's DiskANN 3) as a contender of the benchmark.
//!
//! The index is Vamana in memory, with full vectors, or with spherical codes (their RaBitQ) and
//! half floats from which every candidate is rescored. The parameters are those of the other
//! contenders: 32 neighbours as on the lowest level of HNSW with `m` 16, and a beam of 128 while
//! building. Indexes are filled one vector at a time, like those of all contenders.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use contender::{Contender, DataSet, Effort, Memory, Metric, Vectors, Width, insert_all};
use diskann::graph::config::{Builder, MaxDegree as Degree};
use diskann::graph::index::SearchStats;
use diskann::graph::search::Knn;
use diskann::graph::{Config, DiskANNIndex};
use diskann::neighbor::{BackInserter, Neighbor};
use diskann_inmem::num::{Capacity, MaxDegree};
use diskann_inmem::repr::Full;
use diskann_inmem::repr::quantized::spherical::Spherical;
use diskann_inmem::repr::quantized::{Backend, Quantized, Rerank};
use diskann_inmem::{Context, Provider, Strategy};
use diskann_quantization::algorithms::transforms::{TargetDim, TransformKind};
use diskann_quantization::alloc::GlobalAllocator;
use diskann_quantization::spherical::{PreScale, SphericalQuantizer};
use diskann_utils::sampling::medoid::ComputeMedoid;
use diskann_utils::views::rowmajor;
use diskann_vector::distance::Metric as Distance;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The number of neighbours of a vector after pruning.
const NEIGHBOURS: usize = 32;
/// The beam width while building.
const BUILD_BEAM: usize = 128;
/// How much longer a path may be before an edge is pruned; the value of the paper and of the
/// crates' tests.
const ALPHA: f32 = 1.2;
/// The seed of the random rotation.
const SEED: u64 = 1;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The benchmark starts all contenders with these arguments. This one has nothing to reuse.
    let [command, name, folder, ..] = arguments.as_slice() else {
        bail!("bench-ann starts this program");
    };
    if command != "contend" {
        bail!("bench-ann starts this program");
    }
    let codes = match name.as_str() {
        "diskann-f32" => Codes::Full,
        "diskann-4bit" => Codes::FourBits,
        "diskann-1bit" => Codes::OneBit,
        _ => bail!("there is no contender {name}"),
    };
    let data =
        DataSet::open(&PathBuf::from(folder))?.context("there is no data set in the folder")?;
    let metric = data.description().metric;
    contender::serve(&data, || {
        Ok(Box::new(DiskAnn {
            metric,
            codes,
            index: None,
        }))
    })
}

/// The representation that searches walk on.
#[derive(Clone, Copy)]
enum Codes {
    Full,
    FourBits,
    OneBit,
}

struct DiskAnn {
    metric: Metric,
    codes: Codes,
    /// The index, which is made with the vectors, as it is trained on them.
    index: Option<Box<dyn Index>>,
}

/// An index of any representation.
trait Index: Send + Sync {
    fn insert(&self, id: u32, vector: &[f32]) -> anyhow::Result<()>;
    fn search(
        &self,
        query: &[f32],
        beam: usize,
        into: &mut [Neighbor<u32>],
    ) -> anyhow::Result<SearchStats>;
}

macro_rules! index_of {
    ($representation:ty) => {
        impl Index for DiskANNIndex<Provider<$representation, u32>> {
            fn insert(&self, id: u32, vector: &[f32]) -> anyhow::Result<()> {
                pollster::block_on(self.insert(&Strategy, &Context, &id, vector))?;
                Ok(())
            }

            fn search(
                &self,
                query: &[f32],
                beam: usize,
                into: &mut [Neighbor<u32>],
            ) -> anyhow::Result<SearchStats> {
                let knn = Knn::new(beam, None)?;
                let mut into = BackInserter::new(into);
                let stats = self.search(knn, &Strategy, &Context, query, &mut into);
                Ok(pollster::block_on(stats)?)
            }
        }
    };
}

index_of!(Full<f32>);
index_of!(Quantized);

impl DiskAnn {
    fn distance(&self) -> Distance {
        match self.metric {
            Metric::Cosine => Distance::Cosine,
            Metric::Euclidean => Distance::L2,
        }
    }

    fn config(&self) -> anyhow::Result<Config> {
        let degree = Degree::default_slack();
        let alpha = |builder: &mut Builder| {
            builder.alpha(ALPHA);
        };
        let builder = Builder::new_with(
            NEIGHBOURS,
            degree,
            BUILD_BEAM,
            self.distance().into(),
            alpha,
        );
        Ok(builder.build()?)
    }

    /// Makes an empty index for these vectors.
    fn index(&self, base: Vectors<'_>) -> anyhow::Result<Box<dyn Index>> {
        let config = self.config()?;
        let capacity = Capacity::new(base.count());
        let degree = MaxDegree::new(config.max_degree().get());
        let vectors = rowmajor::Ref::try_from_data(base.floats(), base.count(), base.dimensions())
            .map_err(|error| error.as_static())?;
        let start = rowmajor::Owned::row_vector(Box::from(f32::compute_medoid(vectors)));
        if let Codes::Full = self.codes {
            let full = Full::config(capacity, degree, self.distance(), start)?;
            return Ok(Box::new(DiskANNIndex::new(
                config,
                Provider::new(full)?,
                None,
            )));
        }
        let quantizer = SphericalQuantizer::train(
            vectors,
            TransformKind::DoubleHadamard {
                target_dim: TargetDim::Same,
            },
            self.distance().try_into()?,
            PreScale::ReciprocalMeanNorm,
            &mut StdRng::seed_from_u64(SEED),
            GlobalAllocator,
        )?;
        let backend = match self.codes {
            Codes::OneBit => Backend::new(Spherical::new(quantizer.as_quantizer_impl::<1>()?)),
            _ => Backend::new(Spherical::new(quantizer.as_quantizer_impl::<4>()?)),
        };
        let rescoring = Rerank::F16 {
            metric: self.distance().into(),
        };
        let quantized = Quantized::config(backend, capacity, degree, start, rescoring)?;
        Ok(Box::new(DiskANNIndex::new(
            config,
            Provider::new(quantized)?,
            None,
        )))
    }

    fn find(
        &self,
        query: &[f32],
        width: Width,
        into: &mut [Neighbor<u32>],
    ) -> anyhow::Result<SearchStats> {
        let index = self
            .index
            .as_deref()
            .context("the index has not been built")?;
        index.search(query, width.beam, into)
    }
}

impl Contender for DiskAnn {
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()> {
        let index = self.index(base)?;
        insert_all(base, threads, |row, vector| {
            index.insert(row as u32, vector)
        })?;
        self.index = Some(index);
        Ok(())
    }

    fn search(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()> {
        let mut nearest = vec![Neighbor::default(); k];
        self.find(query, width, &mut nearest)?;
        found.clear();
        found.extend(nearest.iter().map(|neighbour| *neighbour.id()));
        Ok(())
    }

    fn effort(&self, query: &[f32], k: usize, width: Width) -> anyhow::Result<Option<Effort>> {
        let stats = self.find(query, width, &mut vec![Neighbor::default(); k])?;
        Ok(Some(Effort {
            hops: stats.hops.into(),
            distances: stats.cmps.into(),
            ..Effort::default()
        }))
    }

    fn memory(&self) -> Option<Memory> {
        None
    }

    fn kernels(&self) -> String {
        let v3 = cfg!(all(target_feature = "avx2", target_feature = "fma"));
        if v3 {
            "compiled for x86-64-v3"
        } else {
            "compiled for any processor"
        }
        .into()
    }
}
