//! Measures the time of a search while nobody writes, and beside one writer at full speed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use contender::{DataSet, Stopwatch};

use super::{Arguments, K, Owners, hand_over};
use crate::contenders::annulus::Annulus;
use crate::statistics::{Spread, percentile};

/// The searches of one window.
struct Window {
    p50_micros: f64,
    p99_micros: f64,
    /// The share of the time in which the searching thread had a processor.
    cpu_share: f64,
    /// The number of replacements during the window.
    written: u64,
}

/// The least share of a processor with which the times count. With less, they measure other
/// processes on the machine.
const CPU_SHARE_MIN: f64 = 0.98;

/// Measures windows without and with a writer in turn, and prints a table.
pub fn measure(
    data: &DataSet,
    index: &Annulus,
    owners: &Owners,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let seconds = Duration::from_secs_f64(arguments.window_seconds);
    let mut writes = hand_over(owners, 0).into_iter().cycle();
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for window in 0..arguments.windows {
        eprintln!("window {} of {}", window + 1, arguments.windows);
        idle.push(searches(data, index, seconds, arguments.beam)?);
        let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut beside = thread::scope(|scope| {
            let writer = scope.spawn(|| -> anyhow::Result<()> {
                while !stop.load(Ordering::Relaxed)
                    && let Some((id, row)) = writes.next()
                {
                    index.replace(id, data.base().row(row as usize))?;
                    written.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            let searched = searches(data, index, seconds, arguments.beam);
            stop.store(true, Ordering::Relaxed);
            writer.join().expect("a replacement does not panic")?;
            searched
        })?;
        beside.written = written.into_inner();
        busy.push(beside);
    }
    println!(
        "\nA search, µs: median over {} windows (smallest to largest)\n",
        arguments.windows
    );
    println!("| | P50 | P99 | replacements a second |");
    println!("| --- | --: | --: | --: |");
    let cell = |values: Vec<f64>, decimals: usize| {
        Spread::of(values).map_or("-".into(), |spread| {
            let Spread { median, min, max } = spread;
            format!("{median:.decimals$} ({min:.decimals$} to {max:.decimals$})")
        })
    };
    let all = |windows: &[Window], of: fn(&Window) -> f64| windows.iter().map(of).collect();
    for (name, windows) in [("idle", &idle), ("beside a writer", &busy)] {
        println!(
            "| {name} | {} | {} | {} |",
            cell(all(windows, |window| window.p50_micros), 0),
            cell(all(windows, |window| window.p99_micros), 0),
            cell(
                windows
                    .iter()
                    .map(|window| window.written as f64 / arguments.window_seconds)
                    .collect(),
                0
            ),
        );
    }
    let times = |of: fn(&Window) -> f64| {
        let pairs = idle.iter().zip(&busy);
        cell(pairs.map(|(idle, busy)| of(busy) / of(idle)).collect(), 2)
    };
    println!(
        "| times | {} | {} | |",
        times(|window| window.p50_micros),
        times(|window| window.p99_micros)
    );
    let share = |windows: &[Window]| Spread::of(all(windows, |window| window.cpu_share));
    if let (Some(idle), Some(busy)) = (share(&idle), share(&busy)) {
        println!(
            "\nThe searching thread had {:.0} % of a processor idle, {:.0} % beside the writer.",
            idle.median * 100.0,
            busy.median * 100.0
        );
        if idle.median < CPU_SHARE_MIN {
            println!("**The machine was not idle: the P99 tells of other processes.**");
        }
    }
    Ok(())
}

/// Searches, one search after the other, until the time is up.
fn searches(
    data: &DataSet,
    index: &Annulus,
    time: Duration,
    beam: Option<usize>,
) -> anyhow::Result<Window> {
    let queries = data.queries();
    let mut micros = Vec::new();
    let stopwatch = Stopwatch::of_thread();
    let start = Instant::now();
    for query in (0..queries.count()).cycle() {
        let before = Instant::now();
        if before - start >= time {
            break;
        }
        index.find(queries.row(query), K, beam)?;
        micros.push(before.elapsed().as_secs_f64() * 1e6);
    }
    let elapsed = stopwatch.elapsed();
    Ok(Window {
        cpu_share: elapsed.cpu_seconds / elapsed.wall_seconds,
        p50_micros: percentile(&mut micros, 0.5).unwrap_or(f64::NAN),
        p99_micros: percentile(&mut micros, 0.99).unwrap_or(f64::NAN),
        written: 0,
    })
}
