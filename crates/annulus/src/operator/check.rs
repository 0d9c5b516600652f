//! `annulus check`: the recall of an index, by a scan of its vectors.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use store_api::types::{MeasuredRecall, RecallRequest};

use super::repair::QualifiedIndex;
use super::{ServiceArguments, block_on};

/// The longest time that a check may take.
const CHECKED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Examples of the command, for its help.
pub const EXAMPLES: &str = "Examples:
  annulus check shop.products_v                      # 100 rows, to look at
  annulus check shop.products_v --queries 1000       # a narrower interval
  annulus check shop.products_v --target 0.98        # exit code 1 if recall is below 0.98
  annulus check shop.products_v --http https://search:6080 --ca ca.pem --token-file token --json

The command prints a line such as

  shop.products_v: recall 0.9970 (95 % interval 0.9574 to 0.9998), self-recall 1.0000, of 100 rows";

#[derive(Args, Debug)]
pub struct CheckArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    /// The index, as ks.index
    #[arg(value_name = "KEYSPACE.INDEX")]
    index: QualifiedIndex,

    /// Rows to search for, drawn by chance, up to 10000. The time and the certainty grow with them
    #[arg(long, value_name = "N", default_value_t = RecallRequest::default().queries)]
    queries: usize,

    /// Recall from 0 to 1 below which the command ends with exit code 1
    #[arg(long, value_name = "RECALL", value_parser = share)]
    target: Option<f64>,
}

/// Reads a share of a whole.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.98".to_owned()),
    }
}

/// Runs `annulus check`.
pub fn run(arguments: CheckArguments) -> anyhow::Result<()> {
    block_on(async {
        let CheckArguments {
            asking,
            index: QualifiedIndex { keyspace, name },
            queries,
            target,
        } = &arguments;
        let client = asking.client().await?;
        let request = RecallRequest { queries: *queries };
        let measured = client.measure_recall(keyspace, name, request, CHECKED_WITHIN);
        let measured = measured.await.map_err(|error| asking.explain(error))?;
        let index = format!("{keyspace}.{name}");
        asking.print(&measured, |measured| shown(&index, measured))?;
        compare(&index, &measured, *target)
    })
}

/// The result that decides the exit code: an error if the recall is below the target. Rows that are
/// not there are not missed.
fn compare(index: &str, measured: &MeasuredRecall, target: Option<f64>) -> anyhow::Result<()> {
    if let (Some(recall), Some(target)) = (measured.recall, target) {
        ensure!(
            recall >= target,
            "recall {recall:.4} of {index} is below the target, {target}: search with `exact`, or give the index a \
             larger search_beam_width"
        );
    }
    Ok(())
}

fn shown(index: &str, measured: &MeasuredRecall) -> String {
    let MeasuredRecall {
        recall: Some(recall),
        low: Some(low),
        high: Some(high),
        self_recall: Some(self_recall),
        queries,
    } = measured
    else {
        return format!("{index}: recall unknown, as the index has no rows\n");
    };
    format!(
        "{index}: recall {recall:.4} (95 % interval {low:.4} to {high:.4}), self-recall {self_recall:.4}, of \
         {queries} rows\n"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{CommandLine, ProgramCommand};

    const MEASURED: MeasuredRecall = MeasuredRecall {
        recall: Some(0.975),
        low: Some(0.92),
        high: Some(0.9925),
        self_recall: Some(1.0),
        queries: 100,
    };

    #[test]
    fn the_command_is_parsed() {
        let parsed = |line: &str| {
            let typed = CommandLine::try_parse_from(line.split(' ')).ok()?;
            match typed.command {
                ProgramCommand::Check(arguments) => Some((arguments.queries, arguments.target)),
                _ => None,
            }
        };
        for (line, expected) in [
            ("annulus check ks.i", (100, None)),
            (
                "annulus check ks.i --queries 7 --target 0.98 --json",
                (7, Some(0.98)),
            ),
            (
                "annulus check --http http://127.0.0.1:1 --user a --password-file b ks.i",
                (100, None),
            ),
        ] {
            assert_eq!(parsed(line), Some(expected), "{line}");
        }
        for line in [
            "annulus check",
            "annulus check ks",
            "annulus check ks.i --target 1.5",
            "annulus check ks.i --target high",
            "annulus check ks.i --queries -1",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    #[test]
    fn recall_is_shown_with_its_interval() {
        assert_eq!(
            shown("ks.i", &MEASURED),
            "ks.i: recall 0.9750 (95 % interval 0.9200 to 0.9925), self-recall 1.0000, of 100 rows\n"
        );
        assert_eq!(
            shown("ks.i", &MeasuredRecall::default()),
            "ks.i: recall unknown, as the index has no rows\n"
        );
    }

    #[test]
    fn recall_below_the_target_is_a_failure() {
        assert!(compare("ks.i", &MEASURED, None).is_ok());
        assert!(compare("ks.i", &MEASURED, Some(0.975)).is_ok());
        let error = compare("ks.i", &MEASURED, Some(0.98)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("recall 0.9750 of ks.i is below")
        );
        assert!(compare("ks.i", &MeasuredRecall::default(), Some(0.98)).is_ok());
    }
}
