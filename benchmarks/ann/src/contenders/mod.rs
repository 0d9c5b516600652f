//! The contenders by their names, and the processes they run in.

pub mod annulus;
mod process;
mod usearch;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use contender::{Contender, DataSet, Description};

pub use process::Process;

/// The list of contenders' names, for `--help`.
pub const NAMES: &str = "\
  usearch-f32, -bf16, -f16, -i8  HNSW by the usearch crate with its SIMD kernels; f32 is what all ratios refer to
  diskann-f32, -4bit, -1bit      Vamana by the diskann crates: full vectors, or spherical codes and f16 rescoring
  hnswlib, faiss                 HNSW by these libraries for Python, a call for all queries of a turn
  pgvector, clickhouse           HNSW of PostgreSQL and of ClickHouse, both from PyPI; the server's processor time
  cassandra                      Cassandra's SAI on a running node (benchmarks/experiments/peers starts one)
  annulus                        this product, with the options that an index gets by default
  annulus-PART-PART...           the same with other options, in any order:
      nibbles, bytes, floats         the codes that searches walk on
      memory                         full vectors in RAM instead of a file
      mN, bN                         most neighbours of a vector, beam width while building
      avx2, scalar                   the kernels to use (ANN_KERNELS)";

/// The contender that ratios refer to.
pub const BASELINE: &str = "usearch-f32";
/// The beginning of the names of the contenders of the `diskann` crates.
const DISKANN: &str = "diskann";
/// The program of the `diskann` contenders, as a path from the folder that has this program's
/// profile folder.
const DISKANN_PROGRAM: &str = "diskann/release/diskann-contender";

/// The environment variable that tells Annulus which kernels to use.
const KERNELS_VARIABLE: &str = "ANN_KERNELS";

/// The contenders that are Python scripts, in an environment that `benchmarks/experiments/peers`
/// makes. The two paths below are from the root of the repository.
const PEERS: [&str; 5] = ["hnswlib", "faiss", "pgvector", "clickhouse", "cassandra"];
const PEERS_PROGRAM: &str = "target/peers-venv/bin/python";
const PEERS_SCRIPT: &str = "benchmarks/ann/peers/peer.py";

/// A contender, parsed from its name.
pub struct Rival {
    /// The name in arguments and results.
    pub name: String,
    kind: Rivalry,
}

enum Rivalry {
    Annulus(annulus::Settings),
    Usearch(usearch::Scalar),
    Diskann,
    Peer,
}

impl Rival {
    /// Parses a name. Fails if [`NAMES`] does not list it.
    pub fn parse(name: &str) -> anyhow::Result<Rival> {
        let unknown = || anyhow!("there is no contender {name}; --help lists them");
        let kind = match name.split('-').next() {
            Some(annulus::NAME) => annulus::Settings::of_name(name).map(Rivalry::Annulus),
            Some(usearch::NAME) => usearch::Scalar::of_name(name).map(Rivalry::Usearch),
            Some(DISKANN) => Some(Rivalry::Diskann),
            _ if PEERS.contains(&name) => Some(Rivalry::Peer),
            _ => None,
        }
        .ok_or_else(unknown)?;
        Ok(Rival {
            name: name.into(),
            kind,
        })
    }

    /// The value of `ANN_KERNELS` for the contender's process.
    fn kernels(&self) -> Option<&str> {
        match &self.kind {
            Rivalry::Annulus(settings) => settings.kernels.as_deref(),
            _ => None,
        }
    }

    /// The command that starts the contender's process.
    pub fn command(&self) -> anyhow::Result<Command> {
        let mut command = Command::new(self.program()?);
        if let Rivalry::Peer = self.kind {
            command.arg(PEERS_SCRIPT);
        }
        if let Some(kernels) = self.kernels() {
            command.env(KERNELS_VARIABLE, kernels);
        }
        Ok(command)
    }

    /// The program of the contender's process. It is this one for libraries that Rust links without
    /// further ado.
    fn program(&self) -> anyhow::Result<PathBuf> {
        let own = std::env::current_exe()?;
        match self.kind {
            Rivalry::Diskann => {
                let builds = own.ancestors().nth(2).context("the folder of builds")?;
                Ok(builds.join(DISKANN_PROGRAM))
            }
            Rivalry::Peer => Ok(PEERS_PROGRAM.into()),
            _ => Ok(own),
        }
    }

    /// Whether searches take a number of candidates to rescore.
    pub fn rescores(&self) -> bool {
        matches!(self.kind, Rivalry::Annulus(_))
    }

    /// Whether the contender's program has been built.
    pub fn is_there(&self) -> bool {
        self.program().is_ok_and(|program| program.exists())
    }

    /// Makes an empty index in this process. A built `usearch` index is kept under `reuse` and
    /// loaded from there the next time.
    pub fn index(
        &self,
        data: &Description,
        reuse: Option<&Path>,
    ) -> anyhow::Result<Box<dyn Contender>> {
        match &self.kind {
            Rivalry::Annulus(settings) => Ok(Box::new(annulus::Annulus::new(data, settings)?)),
            Rivalry::Usearch(scalar) => {
                let file = reuse.map(|folder| folder.join(format!("{}.usearch", self.name)));
                Ok(Box::new(usearch::Usearch::new(data, *scalar, file)?))
            }
            Rivalry::Diskann | Rivalry::Peer => bail!("{} runs in a program of its own", self.name),
        }
    }
}

/// Runs a contender in this process and answers requests (see [`contender::serve`]).
pub fn serve(name: &str, data: &DataSet, reuse: Option<&Path>) -> anyhow::Result<()> {
    let rival = Rival::parse(name)?;
    contender::serve(data, || rival.index(data.description(), reuse))
}
