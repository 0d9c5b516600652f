//! `annulus repair`: comparing an index with its table, and mending the index.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use store_api::types::{
    RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed, RepairStatus,
};

use super::task_commands::{details, follow};
use super::{ServiceArguments, block_on};
use crate::exit::ProcessFailure;
use crate::span::HumanDuration;

#[derive(Args, Debug)]
#[command(subcommand_negates_reqs = true)]
pub struct RepairArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    #[command(subcommand)]
    command: Option<RepairCommand>,

    /// The index, as ks.index
    #[arg(required = true, value_name = "KEYSPACE.INDEX")]
    index: Option<QualifiedIndex>,

    /// Sets of replicas repaired at a time; 0 for as many as share no node [default: 0]
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,

    /// Token ranges compared at a time for each set of replicas; 0 for as many as the nodes allow,
    /// which is also the limit [default: 1]
    #[arg(long, value_name = "N")]
    intensity: Option<usize>,

    /// Time that ranges in flight may still take after a request to stop the repair [default: 30s]
    #[arg(long, value_name = "DURATION")]
    grace: Option<HumanDuration>,

    /// Return at once with the task, without waiting for its end
    #[arg(long)]
    detach: bool,
}

#[derive(Debug, Subcommand)]
enum RepairCommand {
    /// Change the speed of the running repair, and of no later one
    Control {
        /// The index, as ks.index
        #[arg(value_name = "KEYSPACE.INDEX")]
        index: QualifiedIndex,
        #[command(flatten)]
        speed: SpeedArguments,
    },
    /// Change the schedule and the speed of an index's repairs for good
    Update {
        /// The index, as ks.index
        #[arg(value_name = "KEYSPACE.INDEX")]
        index: QualifiedIndex,
        /// Interval of repairs, such as 24h or 7d
        #[arg(long, value_name = "DURATION", conflicts_with = "never")]
        every: Option<HumanDuration>,
        /// Never repair by schedule, even if there is a setting for all indexes
        #[arg(long)]
        never: bool,
        #[command(flatten)]
        speed: SpeedArguments,
    },
    /// Show the last repair of an index, and its schedule
    Status {
        /// The index, as ks.index
        #[arg(value_name = "KEYSPACE.INDEX")]
        index: QualifiedIndex,
    },
}

#[derive(Args, Clone, Copy, Debug)]
struct SpeedArguments {
    /// Sets of replicas repaired at a time; 0 for as many as share no node [default: as before]
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,

    /// Token ranges compared at a time for each set of replicas; 0 for as many as the nodes allow,
    /// which is also the limit [default: as before]
    #[arg(long, value_name = "N")]
    intensity: Option<usize>,
}

/// An index: the names of its keyspace and of itself, case preserved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QualifiedIndex {
    pub(super) keyspace: String,
    pub(super) name: String,
}

impl FromStr for QualifiedIndex {
    type Err = String;

    fn from_str(text: &str) -> Result<QualifiedIndex, String> {
        match text.split_once('.') {
            Some((keyspace, name)) if !keyspace.is_empty() && !name.is_empty() => {
                Ok(QualifiedIndex {
                    keyspace: keyspace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(
                "write the keyspace and the index with a dot between them, as shop.products_v"
                    .to_owned(),
            ),
        }
    }
}

/// The grace of a repair unless another is given.
const GRACE: Duration = Duration::from_secs(30);

impl RepairArguments {
    /// Refuses what only a repair that begins now takes, where a subcommand is given.
    fn check(&self) -> Result<(), ProcessFailure> {
        let before = [
            ("the index", self.index.is_some()),
            ("--parallel", self.parallel.is_some()),
            ("--intensity", self.intensity.is_some()),
            ("--grace", self.grace.is_some()),
            ("--detach", self.detach),
        ];
        match before.iter().find(|(_, is_given)| *is_given) {
            Some((what, _)) if self.command.is_some() => {
                Err(ProcessFailure::Configuration(format!(
                    "{what} before the subcommand is of a repair that begins now: write it behind the subcommand, or \
                 leave it out"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Runs `annulus repair`.
pub fn run(arguments: RepairArguments) -> anyhow::Result<()> {
    arguments.check()?;
    block_on(async {
        let asking = &arguments.asking;
        match arguments.command {
            Some(RepairCommand::Control { index, speed }) => control(asking, &index, speed).await,
            Some(RepairCommand::Update {
                index,
                every,
                never,
                speed,
            }) => update(asking, &index, every, never, speed).await,
            Some(RepairCommand::Status { index }) => status(asking, &index).await,
            None => start(&arguments).await,
        }
    })
}

async fn start(arguments: &RepairArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    let Some(index) = &arguments.index else {
        return Err(ProcessFailure::Configuration("name an index, as ks.index".to_owned()).into());
    };
    let request = RepairRequest {
        parallel: arguments.parallel.unwrap_or(0),
        intensity: arguments.intensity.unwrap_or(1),
        grace_s: Some(arguments.grace.map_or(GRACE, |grace| grace.0).as_secs()),
    };
    let client = asking.client().await?;
    let task = client.repair(&index.keyspace, &index.name, request).await;
    let task = task.map_err(|error| asking.explain(error))?;
    follow(asking, &client, task, arguments.detach).await
}

async fn control(
    asking: &ServiceArguments,
    index: &QualifiedIndex,
    speed: SpeedArguments,
) -> anyhow::Result<()> {
    let speed = RepairSpeed {
        parallel: speed.parallel,
        intensity: speed.intensity,
    };
    let client = asking.client().await?;
    let speed = client
        .control_repair(&index.keyspace, &index.name, speed)
        .await;
    let speed = speed.map_err(|error| asking.explain(error))?;
    asking.print(&speed, |speed| {
        let number = |number: Option<usize>| number.map_or("-".to_owned(), |n| n.to_string());
        format!(
            "parallel   {}\nintensity  {}\n",
            number(speed.parallel),
            number(speed.intensity)
        )
    })
}

async fn update(
    asking: &ServiceArguments,
    index: &QualifiedIndex,
    every: Option<HumanDuration>,
    never: bool,
    speed: SpeedArguments,
) -> anyhow::Result<()> {
    let update = RepairScheduleUpdate {
        never,
        interval_s: every.map(|every| every.0.as_secs()),
        parallel: speed.parallel,
        intensity: speed.intensity,
    };
    let client = asking.client().await?;
    let schedule = client
        .update_repair(&index.keyspace, &index.name, update)
        .await;
    let schedule = schedule.map_err(|error| asking.explain(error))?;
    asking.print(&schedule, |schedule| shown(schedule.as_ref()))
}

async fn status(asking: &ServiceArguments, index: &QualifiedIndex) -> anyhow::Result<()> {
    let client = asking.client().await?;
    let status = client.repair_status(&index.keyspace, &index.name).await;
    let status = status.map_err(|error| asking.explain(error))?;
    asking.print(&status, |status: &RepairStatus| {
        let last = match &status.last {
            Some(task) => details(task),
            None => "not repaired since the service started and the index was built\n".to_owned(),
        };
        last + &shown(status.schedule.as_ref())
    })
}

fn shown(schedule: Option<&RepairSchedule>) -> String {
    match schedule {
        Some(schedule) => format!(
            "schedule   every {} s, parallel {}, intensity {}\n",
            schedule.interval_s, schedule.parallel, schedule.intensity
        ),
        None => "schedule   never\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{CommandLine, ProgramCommand};

    #[test]
    fn an_index_is_named_with_its_keyspace() {
        let index: QualifiedIndex = "Shop.products.v".parse().unwrap();
        assert_eq!(
            (index.keyspace.as_str(), index.name.as_str()),
            ("Shop", "products.v")
        );
        for wrong in ["", "products", ".v", "shop."] {
            let error = wrong.parse::<QualifiedIndex>().unwrap_err();
            assert!(error.contains("with a dot"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_commands_are_parsed() {
        let parses = |line: &str| CommandLine::try_parse_from(line.split(' ')).is_ok();
        for line in [
            "annulus repair ks.i",
            "annulus repair ks.i --parallel 2 --intensity 0 --json",
            "annulus repair --http http://127.0.0.1:1 ks.i --detach",
            "annulus repair control ks.i --intensity 2",
            "annulus repair update ks.i --every 24h",
            "annulus repair update ks.i --never",
            "annulus repair status ks.i --json",
            "annulus repair --http http://127.0.0.1:1 status ks.i",
            "annulus repair --json --user a --password-file b control ks.i --parallel 2",
        ] {
            assert!(parses(line), "{line}");
        }
        for line in [
            "annulus repair",
            "annulus repair ks",
            "annulus repair control",
            "annulus repair update ks.i --every soon",
            "annulus repair update ks.i --every 1h --never",
        ] {
            assert!(!parses(line), "{line}");
        }
        for (line, named) in [
            ("annulus repair ks.i status ks.j", "the index"),
            ("annulus repair --parallel 2 control ks.i", "--parallel"),
            ("annulus repair --grace 1s status ks.i", "--grace"),
            ("annulus repair --detach status ks.i", "--detach"),
        ] {
            let typed = CommandLine::try_parse_from(line.split(' ')).unwrap();
            let ProgramCommand::Repair(arguments) = typed.command else {
                panic!("{line}");
            };
            let error = arguments.check().unwrap_err().to_string();
            assert!(error.starts_with(named), "{line}: {error}");
        }
    }
}
