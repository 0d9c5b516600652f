//! hnswlib, which runs in Python (`peers/recall.py`). Of a set with changes it gets the vectors
//! that are left.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::json;
use vector_sets::NeighbourMetric;

use super::{BUILD_BEAM, Results, Searched, Task};

/// The version by which results are kept: a newer one is measured again.
pub const VERSION: &str = "hnswlib 0.8.0";

const SCRIPT: &str = "benchmarks/ann/peers/recall.py";

/// The times that the script tells, in processor seconds.
#[derive(Deserialize)]
struct Told {
    build: f64,
    searches: Vec<f64>,
    version: String,
}

/// Builds an index and searches it. Files for the script lie in `folder` meanwhile.
pub fn run(task: &Task<'_>, python: &Path, folder: &Path) -> anyhow::Result<Results> {
    let folder = folder.join(format!("{}-hnswlib-m{}", task.name, task.m));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let path = |name: &str| folder.join(name);
    write(
        &path("base"),
        task.left.vectors.iter().map(|x| x.to_le_bytes()),
    )?;
    write(
        &path("ids"),
        task.left.ids.iter().map(|id| id.to_le_bytes()),
    )?;
    write(
        &path("queries"),
        task.made.queries.iter().map(|x| x.to_le_bytes()),
    )?;
    let job = json!({
        "base": path("base"), "ids": path("ids"), "queries": path("queries"),
        "found": path("found"), "dimensions": task.made.dimensions,
        "space": match task.metric {
            NeighbourMetric::Cosine => "cosine",
            // The squared distance of zeros and ones is the Hamming distance.
            NeighbourMetric::Euclidean | NeighbourMetric::Hamming => "l2",
            NeighbourMetric::DotProduct => "ip",
        },
        "m": task.m, "ef_construction": BUILD_BEAM, "searches": task.searches,
    });
    let told = ask(python, &job.to_string())?;
    let found = fs::read(path("found"))?;
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut ids = found
        .chunks_exact(size_of::<u32>())
        .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let mut searches = Vec::new();
    for (&(ef, k), seconds) in task.searches.iter().zip(told.searches) {
        let queries = 0..task.made.each_query().len();
        let judged = queries.map(|query| {
            let found: Vec<u32> = ids.by_ref().take(k).collect();
            task.judge.found(query, k, &found)
        });
        searches.push(Searched {
            ef,
            k,
            seconds,
            found: judged.collect(),
            work: None,
        });
    }
    Ok(Results {
        version: format!("hnswlib {}", told.version),
        build_seconds: told.build,
        bytes: None,
        searches,
    })
}

fn ask(python: &Path, job: &str) -> anyhow::Result<Told> {
    let mut script = Command::new(python)
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}: `make bench-recall` installs it", python.display()))?;
    let mut input = script.stdin.take().context("its standard input")?;
    writeln!(input, "{job}")?;
    drop(input);
    let output = script.wait_with_output()?;
    ensure!(output.status.success(), "{SCRIPT}: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn write(path: &Path, words: impl Iterator<Item = [u8; 4]>) -> anyhow::Result<()> {
    let bytes: Vec<u8> = words.flatten().collect();
    fs::write(path, bytes).with_context(|| path.display().to_string())
}
