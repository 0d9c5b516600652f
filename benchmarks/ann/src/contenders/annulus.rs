//! Annulus' own engine as a contender. The other files of the benchmark
//! that use the crate `ann` take from it only names for filters.

use std::path::Path;

use ann::{
    CodeChoice, Explanation, IdFilter, IdSet, NeighbourIndex, NeighbourIndexOptions, VectorPlacement, SnapshotSummary, SearchOptions,
    VectorsState,
};
use anyhow::bail;
use contender::{Contender, Description, Effort, Memory, Metric, Vectors, Width, insert_all};

/// The beginning of the names of these contenders.
pub const NAME: &str = "annulus";

/// The options that the parts of a contender's name give.
#[derive(Default)]
pub struct Settings {
    codes: Option<CodeChoice>,
    placement: Option<VectorPlacement>,
    connections: Option<usize>,
    build_beam: Option<usize>,
    /// The kernels asked for. They take effect when the process starts.
    pub kernels: Option<String>,
}

impl Settings {
    /// The settings of a contender's name; `None` if it is not a name of these contenders.
    pub fn of_name(name: &str) -> Option<Settings> {
        let mut parts = name.split('-');
        let ours = parts.next() == Some(NAME);
        let mut settings = Settings::default();
        for part in parts {
            match (part, part.split_at_checked(1)?) {
                ("nibbles", _) => settings.codes = Some(CodeChoice::Nibbles),
                ("bytes", _) => settings.codes = Some(CodeChoice::Bytes),
                ("floats", _) => settings.codes = Some(CodeChoice::Floats),
                ("memory", _) => settings.placement = Some(VectorPlacement::Memory),
                ("avx2" | "scalar", _) => settings.kernels = Some(part.into()),
                (_, ("m", number)) => settings.connections = Some(number.parse().ok()?),
                (_, ("b", number)) => settings.build_beam = Some(number.parse().ok()?),
                _ => return None,
            }
        }
        ours.then_some(settings)
    }
}

/// An index of the engine.
pub struct Annulus {
    index: NeighbourIndex,
}

impl Annulus {
    /// Makes an empty index for a data set.
    pub fn new(data: &Description, settings: &Settings) -> anyhow::Result<Annulus> {
        Ok(Annulus {
            index: NeighbourIndex::new(options(data, settings))?,
        })
    }

    /// Opens a saved index.
    pub fn open(data: &Description, settings: &Settings, path: &Path) -> anyhow::Result<Annulus> {
        Ok(Annulus {
            index: NeighbourIndex::open(path, options(data, settings))?,
        })
    }

    /// Writes the index into a directory.
    pub fn save(&self, path: &Path) -> anyhow::Result<SnapshotSummary> {
        Ok(self.index.save(path)?)
    }

    /// Verifies the full vectors of an opened index.
    pub fn verify(&self) -> anyhow::Result<()> {
        match self.index.verify_vectors(|| true) {
            VectorsState::Verified => Ok(()),
            state => bail!("{state}"),
        }
    }

    /// Adds a vector under a new id.
    pub fn insert(&self, id: u32, vector: &[f32]) -> anyhow::Result<()> {
        Ok(self.index.insert(id, vector)?)
    }

    /// Gives an id another vector.
    pub fn replace(&self, id: u32, vector: &[f32]) -> anyhow::Result<()> {
        Ok(self.index.replace(id, vector)?)
    }

    /// Returns the ids of the `k` nearest vectors. Without `beam` the index takes its own.
    pub fn find(&self, query: &[f32], k: usize, beam: Option<usize>) -> anyhow::Result<Vec<u32>> {
        let options = SearchOptions {
            beam,
            ..SearchOptions::new(k)
        };
        let found = self.index.search_with(query, &options)?;
        Ok(found.iter().map(|neighbour| neighbour.id).collect())
    }

    /// Returns the ids of the `k` nearest vectors of those that a filter admits, and the work that
    /// the search did.
    pub fn explain(
        &self,
        query: &[f32],
        k: usize,
        filter: Option<&IdSet>,
    ) -> anyhow::Result<(Vec<u32>, Explanation)> {
        let options = SearchOptions {
            filter: filter.map(IdFilter::Ids),
            ..SearchOptions::new(k)
        };
        let (found, explanation) = self.index.explain(query, &options)?;
        let ids = found.iter().map(|neighbour| neighbour.id).collect();
        Ok((ids, explanation))
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The bytes that the index says it takes.
    pub fn bytes(&self) -> Memory {
        let memory = self.index.memory();
        Memory {
            anonymous: memory.anonymous() as u64,
            mapped: memory.mapped() as u64,
        }
    }
}

/// The options of an index of a data set.
fn options(data: &Description, settings: &Settings) -> NeighbourIndexOptions {
    let defaults = NeighbourIndexOptions::new(data.dimensions);
    NeighbourIndexOptions {
        metric: match data.metric {
            Metric::Cosine => ann::DistanceMetric::Cosine,
            Metric::Euclidean => ann::DistanceMetric::Euclidean,
        },
        codes: settings.codes.unwrap_or(defaults.codes),
        placement: settings.placement.unwrap_or(defaults.placement),
        max_connections: settings.connections.unwrap_or(defaults.max_connections),
        build_beam_width: settings.build_beam.unwrap_or(defaults.build_beam_width),
        ..defaults
    }
}

/// The options of a search with this width.
fn of_width(k: usize, width: Width) -> SearchOptions<'static> {
    SearchOptions {
        beam: Some(width.beam),
        rescored: width.rescored,
        ..SearchOptions::new(k)
    }
}

impl Contender for Annulus {
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()> {
        insert_all(base, threads, |row, vector| self.insert(row as u32, vector))
    }

    fn search(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()> {
        found.clear();
        let neighbours = self.index.search_with(query, &of_width(k, width))?;
        found.extend(neighbours.iter().map(|neighbour| neighbour.id));
        Ok(())
    }

    fn effort(&self, query: &[f32], k: usize, width: Width) -> anyhow::Result<Option<Effort>> {
        let (_, explanation) = self.index.explain(query, &of_width(k, width))?;
        Ok(Some(Effort {
            hops: explanation.hops as f64,
            distances: explanation.distances as f64,
            distances_p99: None,
            rescored: Some(explanation.rescored as f64),
            bytes: Some(explanation.bytes as f64),
        }))
    }

    fn memory(&self) -> Option<Memory> {
        Some(self.bytes())
    }

    fn components(&self) -> Vec<(&'static str, u64)> {
        let memory = self.index.memory();
        let all = [
            ("graph and codes", memory.graph),
            ("ids", memory.ids),
            ("workspaces", memory.workspaces),
            ("vectors in memory", memory.vectors_pinned),
            ("vectors mapped", memory.vectors_mapped),
        ];
        all.map(|(name, bytes)| (name, bytes as u64)).to_vec()
    }

    fn kernels(&self) -> String {
        ann::kernels_name().into()
    }
}
