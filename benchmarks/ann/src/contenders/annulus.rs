//! Annulus' own engine. All that the benchmark knows of the crate `ann` is in this file.

use ann::{Index, Options};
use contender::{Contender, Description, Memory, Metric, Vectors, Width, insert_all};

/// Options by their parts of a contender's name.
#[derive(Default)]
pub struct Settings {
    connections: Option<usize>,
    build_beam: Option<usize>,
    /// The kernels asked for; they are chosen when the process starts.
    pub kernels: Option<String>,
}

impl Settings {
    /// None for a part that means nothing.
    pub fn parse(parts: &str) -> Option<Settings> {
        let mut settings = Settings::default();
        for part in parts.split('-').filter(|part| !part.is_empty()) {
            match (part, part.split_at(1)) {
                ("avx2" | "scalar", _) => settings.kernels = Some(part.into()),
                (_, ("m", number)) => settings.connections = Some(number.parse().ok()?),
                (_, ("b", number)) => settings.build_beam = Some(number.parse().ok()?),
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// An index of the engine.
pub struct Annulus {
    index: Index,
}

impl Annulus {
    pub fn new(data: &Description, settings: &Settings) -> anyhow::Result<Annulus> {
        let mut options = Options {
            metric: match data.metric {
                Metric::Cosine => ann::Metric::Cosine,
                Metric::Euclidean => ann::Metric::Euclidean,
            },
            ..Options::new(data.dimensions)
        };
        if let Some(connections) = settings.connections {
            options.max_connections = connections;
        }
        if let Some(beam) = settings.build_beam {
            options.build_beam_width = beam;
        }
        Ok(Annulus {
            index: Index::new(options)?,
        })
    }
}

impl Contender for Annulus {
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()> {
        insert_all(base, threads, |row, vector| {
            Ok(self.index.insert(row as u32, vector)?)
        })
    }

    fn search(
        &self,
        query: &[f32],
        k: usize,
        _width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()> {
        found.clear();
        found.extend(
            self.index
                .search(query, k)?
                .iter()
                .map(|neighbour| neighbour.id),
        );
        Ok(())
    }

    fn memory(&self) -> Memory {
        Memory {
            anonymous: self.index.memory_bytes() as u64,
            mapped: 0,
        }
    }

    fn kernels(&self) -> String {
        "usearch".into()
    }
}
