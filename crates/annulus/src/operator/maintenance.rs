//! `annulus maintenance`: has a running service finish its work and take no more.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Subcommand};
use store_api::types::{MaintenanceRequest, MaintenanceStatus};

use super::{ServiceArguments, block_on};
use crate::span::HumanDuration;

/// Examples of the command, for its help.
pub const EXAMPLES: &str = "Examples:
  annulus maintenance on && systemctl stop annulus   # no request fails
  annulus maintenance status
  annulus maintenance off                            # serve again, without a restart
  annulus maintenance on --http http://127.0.0.1:9180  # a gateway, by its --metrics-listen";

/// The pause between two looks at what is in progress.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
pub struct MaintenanceArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    #[command(subcommand)]
    command: MaintenanceCommand,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum MaintenanceCommand {
    /// Take no new requests, and wait until those that have begun are answered
    On {
        /// Longest time to wait; then the exit code is 1, and maintenance goes on
        #[arg(long, value_name = "DURATION", default_value = "1m")]
        within: HumanDuration,
    },
    /// Take requests again
    Off,
    /// Show whether the service is in maintenance, and what it still works on
    Status,
}

/// Runs `annulus maintenance`.
pub fn run(arguments: MaintenanceArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    block_on(async {
        let client = asking.client().await?;
        let set = async |maintenance: bool| {
            let answer = client.set_maintenance(MaintenanceRequest { maintenance });
            answer.await.map_err(|error| asking.explain(error))
        };
        let status = match arguments.command {
            MaintenanceCommand::Off => set(false).await?,
            MaintenanceCommand::Status => {
                let status = client.maintenance().await;
                status.map_err(|error| asking.explain(error))?
            }
            MaintenanceCommand::On { within } => {
                let began = Instant::now();
                let mut status = set(true).await?;
                while status.requests_in_progress > 0 {
                    if began.elapsed() >= within.0 {
                        bail!(
                            "{} requests are still in progress after {:?}; maintenance goes on: wait \
                             longer with --within, or stop the service all the same",
                            status.requests_in_progress,
                            within.0
                        );
                    }
                    tokio::time::sleep(LOOK_INTERVAL).await;
                    let now = client.maintenance().await;
                    status = now.map_err(|error| asking.explain(error))?;
                }
                status
            }
        };
        asking.print(&status, |status| shown(*status))
    })
}

fn shown(status: MaintenanceStatus) -> String {
    let MaintenanceStatus {
        maintenance,
        requests_in_progress,
    } = status;
    match (maintenance, requests_in_progress) {
        (false, _) => "serving: new requests are taken\n".to_owned(),
        (true, 0) => {
            "maintenance: no request is in progress, the service can be stopped\n".to_owned()
        }
        (true, count) => format!("maintenance: {count} requests are in progress\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_shown_in_words() {
        let text = |maintenance, requests_in_progress| {
            shown(MaintenanceStatus {
                maintenance,
                requests_in_progress,
            })
        };
        assert_eq!(text(false, 3), "serving: new requests are taken\n");
        assert!(text(true, 0).ends_with("the service can be stopped\n"));
        assert_eq!(text(true, 3), "maintenance: 3 requests are in progress\n");
    }
}
