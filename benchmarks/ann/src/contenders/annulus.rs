//! Annulus' own engine. All that the benchmark knows of the crate `ann` is in this file.

use ann::{Codes, Index, Options, Placement, SearchOptions};
use contender::{Contender, Description, Memory, Metric, Vectors, Width, insert_all};

/// Options by their parts of a contender's name.
#[derive(Default)]
pub struct Settings {
    connections: Option<usize>,
    build_beam: Option<usize>,
    codes: Option<Codes>,
    placement: Option<Placement>,
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
                ("nibbles", _) => settings.codes = Some(Codes::Nibbles),
                ("bytes", _) => settings.codes = Some(Codes::Bytes),
                ("floats", _) => settings.codes = Some(Codes::Floats),
                ("pinned", _) => settings.placement = Some(Placement::Memory),
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
        options.codes = settings.codes.unwrap_or(options.codes);
        options.placement = settings.placement.unwrap_or(options.placement);
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
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()> {
        let search = SearchOptions {
            beam: Some(width.beam),
            rescored: width.rescored,
            ..SearchOptions::new(k)
        };
        let near = self.index.search_with(query, &search)?;
        found.clear();
        found.extend(near.iter().map(|neighbour| neighbour.id));
        Ok(())
    }

    fn memory(&self) -> Memory {
        Memory {
            anonymous: self.index.memory().anonymous() as u64,
            mapped: self.index.memory().mapped() as u64,
        }
    }

    fn kernels(&self) -> String {
        ann::kernels_name().into()
    }
}
