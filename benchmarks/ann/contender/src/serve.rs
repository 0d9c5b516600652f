//! Runs in a contender's process, and answers requests until standard input is closed.

use std::io::{BufRead, Write, stdin, stdout};

use anyhow::{Context, ensure};

use crate::{
    Built, Contender, DataSet, Effort, Pick, Reply, Request, Searched, Stopwatch, Width,
    anonymous_bytes,
};

/// Answers the requests on standard input with lines on standard output. `make` makes an empty
/// index.
pub fn serve(
    data: &DataSet,
    mut make: impl FnMut() -> anyhow::Result<Box<dyn Contender>>,
) -> anyhow::Result<()> {
    let mut index = None;
    for line in stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?).context("a request")?;
        let reply = answer(data, &mut make, &mut index, &request)
            .unwrap_or_else(|error| Reply::Failed(format!("{error:#}")));
        let mut out = stdout().lock();
        serde_json::to_writer(&mut out, &reply)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(
    data: &DataSet,
    make: &mut impl FnMut() -> anyhow::Result<Box<dyn Contender>>,
    index: &mut Option<Box<dyn Contender>>,
    request: &Request,
) -> anyhow::Result<Reply> {
    if let &Request::Build { threads } = request {
        // The earlier index is dropped first, so that both are never held at the same time.
        *index = None;
        let (built, made) = build(data, make()?, threads)?;
        *index = Some(made);
        return Ok(Reply::Built(built));
    }
    let index = index.as_deref().context("nothing has been built yet")?;
    match *request {
        Request::Search { k, width, pick } => {
            Ok(Reply::Searched(search(data, index, k, width, pick)?))
        }
        Request::Effort { k, width, pick } => {
            Ok(Reply::Effort(effort(data, index, k, width, pick)?))
        }
        Request::Build { .. } => unreachable!("was answered above"),
    }
}

/// Fills an empty index, and measures time and memory.
pub fn build(
    data: &DataSet,
    mut index: Box<dyn Contender>,
    threads: usize,
) -> anyhow::Result<(Built, Box<dyn Contender>)> {
    let before = anonymous_bytes()?;
    let stopwatch = Stopwatch::of_process();
    index.build(data.base(), threads)?;
    let elapsed = stopwatch.elapsed();
    let built = Built {
        elapsed,
        memory: index.memory(),
        components: index
            .components()
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes))
            .collect(),
        anonymous_grown: anonymous_bytes()?.saturating_sub(before),
        kernels: index.kernels(),
    };
    Ok((built, index))
}

/// Searches for the picked queries of each kind. Only the searches are timed, not the comparison
/// with the true neighbours.
pub fn search(
    data: &DataSet,
    index: &dyn Contender,
    k: usize,
    width: Width,
    pick: Pick,
) -> anyhow::Result<Vec<Searched>> {
    let queries = data.queries();
    let mut all = Vec::new();
    let mut ids = Vec::with_capacity(k);
    let mut answers = Vec::new();
    for rows in picked(data, pick) {
        answers.clear();
        answers.reserve(rows.len() * k);
        let stopwatch = Stopwatch::of_thread();
        for &row in &rows {
            index.search(queries.row(row), k, width, &mut ids)?;
            ensure!(ids.len() == k, "an answer has {} of {k} vectors", ids.len());
            answers.extend_from_slice(&ids);
        }
        let elapsed = stopwatch.elapsed();
        let found = rows
            .iter()
            .zip(answers.chunks_exact(k))
            .map(|(&row, answer)| common(data.neighbours(row, k), answer))
            .sum();
        all.push(Searched {
            queries: rows.len(),
            found,
            elapsed,
        });
    }
    Ok(all)
}

/// The average effort of the searches for the picked queries.
fn effort(
    data: &DataSet,
    index: &dyn Contender,
    k: usize,
    width: Width,
    pick: Pick,
) -> anyhow::Result<Option<Effort>> {
    let mut all = Vec::new();
    for row in picked(data, pick).concat() {
        match index.effort(data.queries().row(row), k, width)? {
            Some(effort) => all.push(effort),
            None => return Ok(None),
        }
    }
    Ok(Effort::mean(&all))
}

/// The rows of the picked queries, for each kind.
fn picked(data: &DataSet, pick: Pick) -> Vec<Vec<usize>> {
    let mut start = 0;
    let of_kind = |kind: &crate::Kind| {
        let end = start + kind.queries;
        let rows = (start + pick.first..end).step_by(pick.step).collect();
        start = end;
        rows
    };
    data.description().kinds.iter().map(of_kind).collect()
}

/// The number of true neighbours in an answer. One that the answer names twice counts once.
fn common(truth: &[u32], answer: &[u32]) -> usize {
    truth.iter().filter(|id| answer.contains(id)).count()
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn a_neighbour_named_twice_counts_once() {
        assert_eq!(common(&[1, 2, 3], &[2, 2, 9]), 1);
        assert_eq!(common(&[1, 2, 3], &[3, 1, 2]), 3);
    }
}
