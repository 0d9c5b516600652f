//! Prints results as Markdown tables.

use crate::contenders::BASELINE;
use crate::ratio::{self, Reading};
use crate::sweep::{Curve, Scope};

/// Prints a table of every width that was measured.
pub fn settings(curves: &[Curve], scope: &Scope, k: usize) {
    println!(
        "| contender | beam | rescored | recall | queries/s CPU | wall | µs | hops | distances | of P99 | rescored | KiB |"
    );
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    for curve in curves {
        for setting in &curve.settings {
            let or_dash = |value: Option<f64>, decimals: usize| {
                value.map_or("-".into(), |value| format!("{value:.decimals$}"))
            };
            let seconds = setting.seconds(scope);
            let effort = setting.effort;
            println!(
                "| {} | {} | {} | {:.4} | {} | {} | {} | {} | {} | {} | {} | {} |",
                curve.contender,
                setting.width.beam,
                setting
                    .width
                    .rescored
                    .map_or("-".into(), |count| count.to_string()),
                setting.recall(scope, k),
                or_dash(seconds.map(|s| 1.0 / s), 0),
                or_dash(setting.wall_seconds(scope).map(|s| 1.0 / s), 0),
                or_dash(seconds.map(|s| s * 1e6), 1),
                or_dash(effort.map(|e| e.hops), 1),
                or_dash(effort.map(|e| e.distances), 0),
                or_dash(effort.and_then(|e| e.distances_p99), 0),
                or_dash(effort.and_then(|e| e.rescored), 0),
                or_dash(effort.and_then(|e| e.bytes).map(|bytes| bytes / 1024.0), 1),
            );
        }
    }
}

/// Prints the queries a second of each contender at each recall, with the ratio to the baseline's.
pub fn at_recalls(curves: &[Curve], scope: &Scope, size: (usize, usize), recalls: &[f64]) {
    let names: Vec<String> = recalls
        .iter()
        .map(|recall| format!("{recall:.2}"))
        .collect();
    println!("| queries/s at recall | {} |", names.join(" | "));
    println!("| --- |{}", " --: |".repeat(recalls.len()));
    let baseline = curves.iter().find(|curve| curve.contender == BASELINE);
    for curve in curves {
        let cells: Vec<String> = recalls
            .iter()
            .map(|&recall| cell(ratio::read(curve, baseline, scope, size, recall)))
            .collect();
        println!("| {} | {} |", curve.contender, cells.join(" | "));
    }
}

fn cell(reading: Option<Reading>) -> String {
    let Some(reading) = reading else {
        return "not reached".into();
    };
    let mut cell = format!("{:.0}", reading.qps);
    if let Some(recall) = reading.recall_above {
        cell += &format!(" (recall {recall:.3})");
    }
    if let Some(ratio) = reading.ratio {
        cell += &format!(
            ", **{:.2}x** ({:.2} to {:.2})",
            ratio.median, ratio.min, ratio.max
        );
    }
    cell
}
