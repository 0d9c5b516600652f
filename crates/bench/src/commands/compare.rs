//! `compare`: two targets in turn, in the same minutes, with the ratios of what they do.
//!
//! Machines are noisy, and slowly so: what is compared is measured in rounds, the two in changing order, and a ratio is
//! taken within a round.

use std::collections::HashSet;
use std::str::FromStr;

use anyhow::ensure;
use clap::Args;

use super::arguments::Target;
use super::searching::{SearchArguments, Searching, questions};
use crate::report::{Measurement, Output, OutputArguments};
use crate::target::wire::Wire;

/// Recalls that differ by more are not of equally good answers.
const RECALL_TOLERANCE: f64 = 0.005;

/// `compare`.
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// One target: NAME=http://HOST:PORT, NAME=binary+http://HOST:PORT or NAME=cql://HOST:PORT, and /KEYSPACE/INDEX (or
    /// /KEYSPACE/TABLE) if it has others
    #[arg(long, value_name = "TARGET")]
    a: NamedTarget,
    /// The other target
    #[arg(long, value_name = "TARGET")]
    b: NamedTarget,
    #[command(flatten)]
    search: SearchArguments,
    /// Requests under way at once, at most
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// How often each is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// A target with a name, and where it is not that of the other arguments, its keyspace and index or table.
#[derive(Clone, Debug, PartialEq)]
struct NamedTarget {
    name: String,
    target: Target,
    path: Option<(String, String)>,
}

impl FromStr for NamedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedTarget, String> {
        let expected = || {
            format!(
                "{text:?} is not NAME=http://HOST:PORT, NAME=binary+http://HOST:PORT or NAME=cql://HOST:PORT"
            )
        };
        let (name, url) = text.split_once('=').ok_or_else(expected)?;
        let (scheme, rest) = url.split_once("://").ok_or_else(expected)?;
        let mut parts = rest.trim_end_matches('/').splitn(3, '/');
        let authority = parts.next().unwrap_or_default();
        let path = match (parts.next(), parts.next()) {
            (None, _) => None,
            (Some(keyspace), Some(item)) => Some((keyspace.to_owned(), item.to_owned())),
            (Some(_), None) => return Err(expected()),
        };
        let target = match scheme {
            "http" => Target::Http(format!("http://{authority}").parse()?, Wire::Json),
            "binary+http" => Target::Http(format!("http://{authority}").parse()?, Wire::Binary),
            "cql" if authority.contains(':') => Target::Cql(authority.to_owned()),
            _ => return Err(expected()),
        };
        Ok(NamedTarget {
            name: name.to_owned(),
            target,
            path,
        })
    }
}

/// Measures both in turn.
pub async fn run(arguments: CompareArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let search = &arguments.search;
    let plan = search.load.plan()?;
    let questions = questions(&search.data, search.load.k, &HashSet::new())?;
    let mut output = Output::new(&arguments.output)?;
    let mut sides = Vec::new();
    for side in [&arguments.a, &arguments.b] {
        let mut names = search.names.clone();
        if let Some((keyspace, item)) = &side.path {
            names.keyspace.clone_from(keyspace);
            match side.target {
                Target::Http(..) => names.index.clone_from(item),
                Target::Cql(_) => names.table.clone_from(item),
            }
        }
        let dataset = search.data.name();
        let requests = &search.requests;
        sides.push(Searching::new(&side.target, &names, requests, &questions, dataset).await?);
    }
    let mut found: [Vec<Measurement>; 2] = Default::default();
    for round in 0..arguments.rounds {
        // A B, B A, A B: neither always comes first.
        for turn in [round % 2, (round + 1) % 2] {
            let name = &[&arguments.a, &arguments.b][turn].name;
            let progress = output.progress(&format!("round {} of {name}", round + 1))?;
            let mut measurement = sides[turn]
                .run(&plan, arguments.concurrency, &progress)
                .await?;
            measurement.series.clone_from(name);
            found[turn].push(measurement.clone());
            output.add(measurement)?;
        }
    }
    let mut ratios = summary(&found);
    ratios.series = format!("{} / {}", arguments.a.name, arguments.b.name);
    output.add(ratios)?;
    if let [Some(a), Some(b)] = [&found[0], &found[1]].map(|side| mean_recall(side))
        && (a - b).abs() > RECALL_TOLERANCE
    {
        println!(
            "  ! recall differs ({a:.4} and {b:.4}): rates are comparable at equal recall only; build the indexes \
             so that it is, with --ef-search or --m"
        );
    }
    output.finish()
}

/// Median and range of the rounds' ratios, A by B.
fn summary(found: &[Vec<Measurement>; 2]) -> Measurement {
    type Figure = fn(&Measurement) -> f64;
    let figures: [(&str, Figure); 4] = [
        ("answers a second", |m| m.rate_per_s),
        ("P50", |m| m.latency_ms.p50),
        ("P99", |m| m.latency_ms.p99),
        ("recall", |m| m.recall.unwrap_or(f64::NAN)),
    ];
    let mut summary = Measurement {
        operation: "ratio".to_owned(),
        ..Measurement::default()
    };
    for (name, of) in figures {
        let rounds = found[0].iter().zip(&found[1]);
        let ratios: Vec<f64> = rounds.map(|(a, b)| of(a) / of(b)).collect();
        summary.add_spread(name, &ratios);
    }
    summary
}

fn mean_recall(rounds: &[Measurement]) -> Option<f64> {
    let recalls: Option<Vec<f64>> = rounds.iter().map(|round| round.recall).collect();
    let recalls = recalls?;
    Some(recalls.iter().sum::<f64>() / recalls.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_a_name_and_perhaps_a_path() {
        let plain: NamedTarget = "us=http://127.0.0.1:6080".parse().unwrap();
        assert_eq!((plain.name.as_str(), &plain.path), ("us", &None));
        let other: NamedTarget = "them=cql://h:9042/ks/t".parse().unwrap();
        assert_eq!(other.target, Target::Cql("h:9042".to_owned()));
        assert_eq!(other.path, Some(("ks".to_owned(), "t".to_owned())));
        let binary: NamedTarget = "us=binary+http://h:1".parse().unwrap();
        assert_eq!(binary.target.to_string(), "http://h:1 binary");
        for text in [
            "http://h:1",
            "a=h:1",
            "a=ftp://h:1",
            "a=http://h",
            "a=cql://h",
            "a=http://h:1/ks",
        ] {
            assert!(text.parse::<NamedTarget>().is_err(), "{text}");
        }
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let of = |rates: &[f64]| -> Vec<Measurement> {
            let measurement = |rate_per_s: &f64| Measurement {
                rate_per_s: *rate_per_s,
                ..Measurement::default()
            };
            rates.iter().map(measurement).collect()
        };
        // The machine was half as fast in the second round.
        let summary = summary(&[of(&[200.0, 100.0, 330.0]), of(&[100.0, 50.0, 110.0])]);
        assert_eq!(summary.figures["answers a second, median"], 2.0);
        assert_eq!(summary.figures["answers a second, most"], 3.0);
        let even = super::summary(&[of(&[200.0, 100.0]), of(&[100.0, 100.0])]);
        assert_eq!(even.figures["answers a second, median"], 1.5);
        // Nothing was known of the recall.
        assert!(!summary.figures.contains_key("recall, median"));
    }
}
