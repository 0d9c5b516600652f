//! The baseline: the graphs that one thread builds from fixed vectors, and the answers they give,
//! as text in `baseline.txt`.
//!
//! A change of the algorithm, wanted or not, shows as a difference of that file: links, recall,
//! work of a search, distances, memory. The test prints the lines that differ. If the change is
//! wanted, the following command renews the file, and the commit shows what the change does:
//!
//! ```text
//! ANN_BASELINE=write cargo test -p ann --lib baseline
//! ```
//!
//! # The text is the same on every machine
//!
//! Sums of `f32` differ between instruction sets in their last bits ([`crate::kernels`]), and so
//! graphs may differ in a few links. So the text is written with the scalar kernels on every
//! machine: the test starts itself as a process with `ANN_KERNELS=scalar`, as the set is chosen
//! once in a process. The vectors are made from integers by multiplications and additions only. The
//! system's mathematics library has a part in one factor, which ends walks
//! ([`crate::graph::Spread`]), and its last bit does not decide any line.

#[path = "../../tests/behaviours/data.rs"]
#[allow(dead_code, reason = "the behaviours' tests use the rest")]
mod data;
mod differences;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use data::{Rng, SPREAD, clustered, heaps};
use differences::differences;

use crate::{
    CodeChoice, DistanceMetric, Neighbour, NeighbourIndex, NeighbourIndexOptions, SearchOptions,
    VectorQuantization,
};

/// The variable that renews the baseline if its value is [`WRITE`].
const RENEWAL: &str = "ANN_BASELINE";
const WRITE: &str = "write";
/// The command that renews the baseline.
const RENEWAL_COMMAND: &str = "ANN_BASELINE=write cargo test -p ann --lib baseline";

/// The variable that names the file that [`text_of_the_scalar_kernels`] writes.
const OUTPUT: &str = "ANN_BASELINE_OUTPUT";

const VECTORS: usize = 2_000;
const QUERIES: usize = 100;
/// Number of queries whose neighbours are shown.
const QUERIES_SHOWN: usize = 3;
const NEIGHBOURS_SHOWN: usize = 5;
const K: usize = 10;
const BEAMS: [usize; 2] = [12, 64];
/// Number of degrees that one column of the histogram counts.
const DEGREES_A_COLUMN: usize = 8;

/// Made vectors.
#[derive(Clone, Copy, Debug)]
enum DataSet {
    /// 60 wide clusters in 48 dimensions, as embeddings of related texts are.
    Clusters,
    /// 20 heaps in 96 dimensions, each of which spreads along 32 directions of its own.
    Heaps,
}

impl DataSet {
    /// Makes the queries, and the vectors to be indexed.
    fn make(self) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
        let count = QUERIES + VECTORS;
        let mut queries = match self {
            DataSet::Clusters => clustered(&mut Rng(31), count, 48, 60, SPREAD),
            DataSet::Heaps => heaps(&mut Rng(32), count, 96, 20, 32),
        };
        let base = queries.split_off(QUERIES);
        (queries, base)
    }
}

/// An index of the baseline.
struct Case {
    data: DataSet,
    metric: DistanceMetric,
    quantization: VectorQuantization,
    codes: CodeChoice,
    /// Whether a third of the vectors is replaced, and another third removed, after the build.
    changed: bool,
}

/// Every metric, every quantization and every kind of codes at least once.
const CASES: [Case; 9] = {
    use {CodeChoice::*, DataSet::*, DistanceMetric::*, VectorQuantization::*};
    const fn built(
        data: DataSet,
        metric: DistanceMetric,
        quantization: VectorQuantization,
        codes: CodeChoice,
    ) -> Case {
        Case {
            data,
            metric,
            quantization,
            codes,
            changed: false,
        }
    }
    [
        built(Clusters, Cosine, F32, Floats),
        built(Heaps, Cosine, F32, Nibbles),
        built(Heaps, Cosine, I8, Bytes),
        built(Clusters, Euclidean, F32, Floats),
        built(Heaps, Euclidean, F16, Bytes),
        Case {
            changed: true,
            ..built(Heaps, Euclidean, F16, Bytes)
        },
        built(Heaps, Euclidean, Bf16, Nibbles),
        built(Clusters, DotProduct, F32, Nibbles),
        built(Heaps, Hamming, B1, Auto),
    ]
};

impl Case {
    /// Builds the index, in one thread.
    fn build(&self, base: &[Vec<f32>]) -> NeighbourIndex {
        let index = NeighbourIndex::new(NeighbourIndexOptions {
            metric: self.metric,
            quantization: self.quantization,
            codes: self.codes,
            ..NeighbourIndexOptions::new(base[0].len())
        });
        let index = index.expect("valid options");
        for (id, vector) in (0..).zip(base) {
            index.insert(id, vector).expect("a new id");
        }
        if self.changed {
            for id in (0..base.len()).step_by(3) {
                let other = &base[(id + base.len() / 2) % base.len()];
                let vector: Vec<f32> = other.iter().map(|x| 0.75 * x).collect();
                index.replace(id as u32, &vector).expect("a held id");
                index.remove(id as u32 + 1).unwrap_or_default();
            }
        }
        index
    }

    /// Describes the index and its answers.
    fn describe(&self, text: &mut String) -> std::fmt::Result {
        let (queries, base) = self.data.make();
        let index = self.build(&base);
        let changes = if self.changed { ", changed" } else { "" };
        writeln!(
            text,
            "{:?} {:?}, codes {:?}, {:?} of {} dimensions{changes}",
            self.metric,
            self.quantization,
            self.codes,
            self.data,
            base[0].len()
        )?;
        describe_graph(&index, text)?;
        let exact: Vec<_> = queries.iter().map(|query| exact(&index, query)).collect();
        for beam in BEAMS {
            describe_searches(&index, beam, &queries, &exact, text)?;
        }
        for (number, nearest) in exact.iter().take(QUERIES_SHOWN).enumerate() {
            write!(text, "  query {number}:")?;
            for Neighbour { id, distance } in &nearest[..NEIGHBOURS_SHOWN] {
                write!(text, "  {id} at {distance:.5}")?;
            }
            writeln!(text)?;
        }
        writeln!(text)
    }
}

/// The nearest by a scan of all vectors, as they are stored.
fn exact(index: &NeighbourIndex, query: &[f32]) -> Vec<Neighbour> {
    let mut all = index.search(query, index.len()).expect("a valid query");
    all.truncate(K);
    all
}

fn describe_graph(index: &NeighbourIndex, text: &mut String) -> std::fmt::Result {
    let graph = &index.graph;
    let blocks = (0..graph.slots().end()).map(|slot| graph.block(slot));
    let degrees: Vec<usize> = blocks
        .filter(|block| block.is_linked())
        .map(|block| {
            let mut degree = 0;
            block.for_each_link(|_| degree += 1);
            degree
        })
        .collect();
    let edges: usize = degrees.iter().sum();
    let max = degrees.iter().max().copied().unwrap_or_default();
    writeln!(
        text,
        "  {} vectors, {edges} edges, degree {:.2} on average and {max} at most",
        index.len(),
        edges as f64 / degrees.len() as f64
    )?;
    let mut columns = vec![0; max / DEGREES_A_COLUMN + 1];
    for degree in degrees {
        columns[degree / DEGREES_A_COLUMN] += 1;
    }
    write!(text, "  degrees:")?;
    for (column, slots) in columns.iter().enumerate() {
        let first = column * DEGREES_A_COLUMN;
        write!(text, "  {first}-{}: {slots}", first + DEGREES_A_COLUMN - 1)?;
    }
    let memory = index.memory();
    let a_vector = |bytes: usize| bytes as f64 / index.len() as f64;
    writeln!(
        text,
        "\n  bytes a vector: {:.1} of the graph, {:.1} of the file",
        a_vector(memory.graph + memory.codes),
        a_vector(memory.vectors_mapped)
    )
}

fn describe_searches(
    index: &NeighbourIndex,
    beam: usize,
    queries: &[Vec<f32>],
    exact: &[Vec<Neighbour>],
    text: &mut String,
) -> std::fmt::Result {
    let search = SearchOptions {
        beam: Some(beam),
        ..SearchOptions::new(K)
    };
    let (mut found, mut hops, mut distances, mut rescored) = (0, 0, 0, 0);
    for (query, exact) in queries.iter().zip(exact) {
        let (answer, work) = index.explain(query, &search).expect("a valid query");
        // A vector that is as far as the last of the nearest is as good.
        let farthest = exact.last().map_or(0.0, |neighbour| neighbour.distance);
        let near = answer.iter().filter(|n| n.distance <= farthest);
        found += near.count();
        hops += work.hops;
        distances += work.distances;
        rescored += work.rescored;
    }
    let a_query = |count: u64| count as f64 / queries.len() as f64;
    writeln!(
        text,
        "  beam {beam}: recall@{K} {:.3}; a query takes {:.2} hops, {:.2} distances, {:.2} rescored",
        found as f64 / (K * queries.len()) as f64,
        a_query(hops),
        a_query(distances),
        a_query(rescored)
    )
}

fn baseline_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/baseline/baseline.txt")
}

#[test]
#[ignore = "run by the test below as a process of its own"]
fn text_of_the_scalar_kernels() {
    assert_eq!(crate::kernels_name(), "scalar");
    let mut text = String::new();
    for case in &CASES {
        case.describe(&mut text).expect("a string takes all");
    }
    let output = std::env::var_os(OUTPUT).expect("set by the test below");
    std::fs::write(output, text.trim_end().to_owned() + "\n").expect("a file");
}

#[test]
fn indexes_are_those_of_the_baseline() {
    let output = tempfile::NamedTempFile::new().expect("a file");
    let program = std::env::current_exe().expect("a test knows its program");
    let status = Command::new(program)
        .args([
            "baseline::text_of_the_scalar_kernels",
            "--exact",
            "--ignored",
        ])
        .env("ANN_KERNELS", "scalar")
        .env(OUTPUT, output.path())
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("the process starts").success());
    let text = std::fs::read_to_string(output.path()).expect("text");
    if std::env::var(RENEWAL).is_ok_and(|value| value == WRITE) {
        std::fs::write(baseline_path(), &text).expect("the tree can be written");
    }
    let baseline = std::fs::read_to_string(baseline_path()).unwrap_or_default();
    let differing = differences(&baseline, &text);
    assert!(
        differing.is_empty(),
        "the indexes are not those of src/baseline/baseline.txt:\n{differing}\n\
         If this is wanted, renew the file: {RENEWAL_COMMAND}"
    );
}
