//! Writes what hnswlib finds on the sets of the short form, which the tests of `ann` compare with.

use std::fs;
use std::path::Path;

use anyhow::Context;
use vector_sets::{RealSamples, find};

use super::M;
use super::contenders::{Task, hnswlib};
use super::judge::Judge;
use super::truth::Truth;

/// The list of the sets, from the root of the repository. Each line has a name, the number of
/// vectors, that of queries, a seed, and the recall, which is written anew.
const LIST: &str = "crates/ann/tests/recall/hnswlib.txt";

/// The beam and the neighbours wanted.
const SEARCH: (usize, usize) = (128, 10);

/// Measures hnswlib on each set of the list, in the form that sets have without real vectors.
pub fn run(python: &Path, folder: &Path) -> anyhow::Result<()> {
    let list = fs::read_to_string(LIST).context(LIST)?;
    let mut written = String::new();
    for line in list.lines() {
        let line = match line.starts_with('#') {
            true => line.to_owned(),
            false => recorded(line, python, folder).with_context(|| line.to_owned())?,
        };
        println!("{line}");
        written += &(line + "\n");
    }
    fs::write(LIST, written).context(LIST)
}

fn recorded(line: &str, python: &Path, folder: &Path) -> anyhow::Result<String> {
    let mut columns = line.split_whitespace();
    let name = columns.next().context("a name")?;
    let mut number =
        || -> anyhow::Result<usize> { Ok(columns.next().context("a column is missing")?.parse()?) };
    let (rows, queries, seed) = (number()?, number()?, number()?);
    let set = find(name).context("no such set")?;
    let made = set.make(seed as u64, rows, queries, &RealSamples::default());
    let left = made.left();
    let (dimensions, ks) = (made.dimensions, [SEARCH.1]);
    let truth = Truth::compute(set.metric, &left.vectors, &made.queries, dimensions, &ks);
    let task = Task {
        name,
        metric: set.metric,
        made: &made,
        left: &left,
        judge: Judge::new(set.metric, &left, &made.queries, dimensions, &truth),
        m: M,
        searches: vec![SEARCH],
    };
    let results = hnswlib::run(&task, python, &folder.join("record"))?;
    let recall = results.searches[0].recall();
    Ok(format!(
        "{name:28} {rows:>8} {queries:>8} {seed:>5}  {recall:.4}"
    ))
}
