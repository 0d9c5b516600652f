//! `annulus backup`: backups of a running service.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, Subcommand};
use store_api::types::{BackupPreview, BackupRequest, DrillRequest};

use super::location::LocationFlags;
use super::{block_on, list, status};
use crate::exit::ProcessFailure;
use crate::operator::ServiceArguments;
use crate::operator::task_commands::follow;
use crate::output;
use crate::span::HumanDuration;

/// The longest time that a plan may take: the server makes a checkpoint, and lists the location.
const PLAN_WITHIN: Duration = Duration::from_secs(600);

pub const EXAMPLES: &str = "\
Examples:
  annulus backup --location file:///mnt/backups/one
  annulus backup --location s3:backups/annulus --retention 7 --interval 1d --drill-interval 7d
  annulus backup --location gcs:backups/annulus --cron '30 2 * * *' --key-file /etc/annulus/backup.key
  annulus backup --location s3:backups/annulus --dry-run
  annulus backup list --location s3:backups/annulus --json
  annulus backup verify --location s3:backups/annulus
  annulus backup status
  annulus backup stop-schedule --location s3:backups/annulus";

#[derive(Args, Debug)]
pub struct BackupArguments {
    #[command(subcommand)]
    command: Option<BackupCommand>,

    /// Number of newest points that remain in the location; older ones are deleted after a backup
    /// [default: all]
    #[arg(long, value_name = "N")]
    retention: Option<NonZeroUsize>,

    /// Interval of backups by schedule, such as 1d or 6h
    #[arg(long, value_name = "DURATION", conflicts_with = "cron")]
    interval: Option<HumanDuration>,

    /// Times of backups by schedule, as a crontab line in UTC: minute, hour, day, month, weekday;
    /// a sixth field names a time zone
    #[arg(long, value_name = "CRONTAB")]
    cron: Option<String>,

    /// Interval of drills, which restore the newest point into a scratch directory and compare it
    #[arg(long, value_name = "DURATION", conflicts_with = "drill_cron")]
    drill_interval: Option<HumanDuration>,

    /// Times of drills, as a crontab line
    #[arg(long, value_name = "CRONTAB")]
    drill_cron: Option<String>,

    /// Send nothing, and print what would be sent and deleted
    #[arg(long, conflicts_with = "detach")]
    dry_run: bool,

    /// Take over a location that belongs to another server, which then can't use it any more
    #[arg(long)]
    take_over: bool,

    /// Read all files, those too that seem not to have changed since the last backup, and their
    /// chunks in the location; send those again that are damaged
    #[arg(long)]
    full_check: bool,

    /// Read all rows, and write their number and digest into the point, for drills to compare with
    /// (always with --drill-interval and --drill-cron)
    #[arg(long)]
    digests: bool,

    /// Return at once with the task, without waiting for its end
    #[arg(long)]
    detach: bool,

    #[command(flatten)]
    asking: ServiceArguments,

    #[command(flatten)]
    place: LocationFlags,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// List the points of a location, the newest first
    List,
    /// Read everything in a location and check it; each damaged or missing object is named, and the
    /// exit code is then 1
    Verify {
        /// Only this point [default: all]
        #[arg(long, value_name = "ID")]
        point: Option<String>,
    },
    /// Show the schedules of a running service, its last backups and drills, and what runs
    Status,
    /// Restore a point into a scratch directory of the server, and compare its tables
    Drill {
        /// The point [default: the newest]
        #[arg(long, value_name = "ID")]
        point: Option<String>,
        /// Return at once with the task, without waiting for its end
        #[arg(long)]
        detach: bool,
    },
    /// End the schedule of a location; its points remain
    StopSchedule,
}

impl BackupArguments {
    /// Refuses what only a backup that begins now takes, where a subcommand is given.
    fn check(&self) -> Result<(), ProcessFailure> {
        let before = [
            ("--retention", self.retention.is_some()),
            ("--interval", self.interval.is_some()),
            ("--cron", self.cron.is_some()),
            ("--drill-interval", self.drill_interval.is_some()),
            ("--drill-cron", self.drill_cron.is_some()),
            ("--dry-run", self.dry_run),
            ("--take-over", self.take_over),
            ("--full-check", self.full_check),
            ("--digests", self.digests),
            ("--detach", self.detach),
        ];
        match before.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) if self.command.is_some() => {
                Err(ProcessFailure::Configuration(format!(
                    "{flag} before the subcommand is of a backup that begins now: write it after the subcommand, or leave it \
                 out"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The request for a backup.
    fn request(&self) -> Result<BackupRequest, ProcessFailure> {
        Ok(BackupRequest {
            retention: self.retention.map(NonZeroUsize::get),
            interval_s: self.interval.map(|interval| interval.0.as_secs()),
            cron: self.cron.clone(),
            drill_interval_s: self.drill_interval.map(|interval| interval.0.as_secs()),
            drill_cron: self.drill_cron.clone(),
            dry_run: self.dry_run,
            take_over: self.take_over,
            full_check: self.full_check,
            digests: self.digests,
            ..BackupRequest::of(self.place.place()?)
        })
    }
}

/// Runs `annulus backup`.
pub fn run(arguments: BackupArguments) -> anyhow::Result<()> {
    arguments.check()?;
    block_on(async {
        let (asking, place) = (&arguments.asking, &arguments.place);
        match &arguments.command {
            None if arguments.dry_run => preview(&arguments).await,
            None => start(&arguments).await,
            Some(BackupCommand::List) => list::points(asking, place).await,
            Some(BackupCommand::Verify { point }) => {
                list::verify(asking, place, point.as_deref()).await
            }
            Some(BackupCommand::Status) => status::show(asking).await,
            Some(BackupCommand::Drill { point, detach }) => {
                let request = DrillRequest {
                    point: point.clone(),
                    ..DrillRequest::of(place.place()?)
                };
                let client = asking.client().await?;
                let task = client.drill(&request).await;
                let task = task.map_err(|error| asking.explain(error))?;
                follow(asking, &client, task, *detach).await
            }
            Some(BackupCommand::StopSchedule) => status::stop_schedule(asking, place).await,
        }
    })
}

async fn start(arguments: &BackupArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    let request = arguments.request()?;
    let client = asking.client().await?;
    let task = client.back_up(&request).await;
    let task = task.map_err(|error| asking.explain(error))?;
    follow(asking, &client, task, arguments.detach).await?;
    // A backup that is not all is said to be so, on stderr, where no program reads.
    if let Ok(status) = client.backups().await
        && let Some(text) = status.leaves_out
    {
        output::complain(format_args!("annulus: {text}"));
    }
    Ok(())
}

async fn preview(arguments: &BackupArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    let request = arguments.request()?;
    let client = asking.client().await?;
    let plan = client.preview_backup(&request, PLAN_WITHIN).await;
    let plan = plan.map_err(|error| asking.explain(error))?;
    asking.print(&plan, shown)
}

fn shown(plan: &BackupPreview) -> String {
    let deleted = match plan.points_to_delete.is_empty() {
        true => "none".to_owned(),
        false => plan.points_to_delete.join(", "),
    };
    format!(
        "files             {}\nbytes             {}\nbytes to send     {}, before compression\nobjects to send   {}\n\
         points to delete  {deleted}\n",
        plan.files, plan.bytes, plan.bytes_to_send, plan.objects_to_send
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{CommandLine, ProgramCommand};

    fn parsed(line: &str) -> Option<Box<BackupArguments>> {
        match CommandLine::try_parse_from(line.split(' ')).ok()?.command {
            ProgramCommand::Backup(arguments) => Some(arguments),
            _ => None,
        }
    }

    #[test]
    fn the_commands_are_parsed() {
        for line in [
            "annulus backup --location file:///b",
            "annulus backup --location s3:b/p --retention 7 --interval 1d --http http://127.0.0.1:1",
            "annulus backup --location file:///b --dry-run --json",
            "annulus backup list --location file:///b --json",
            "annulus backup --location file:///b verify --point 20260105T000000Z-00000001",
            "annulus backup status --http http://127.0.0.1:1 --json",
            "annulus backup drill --location file:///b --detach",
            "annulus backup stop-schedule --location file:///b",
        ] {
            let arguments = parsed(line).unwrap_or_else(|| panic!("{line}"));
            assert!(arguments.check().is_ok(), "{line}");
        }
        for line in [
            "annulus backup --location file:///b --interval soon",
            "annulus backup --location file:///b --dry-run --detach",
            "annulus backup --location file:///b --max-mib-per-second 0",
            "annulus backup erase",
        ] {
            assert!(parsed(line).is_none(), "{line}");
        }
        let early = parsed("annulus backup --retention 7 list").unwrap();
        let error = early.check().unwrap_err().to_string();
        assert!(error.starts_with("--retention"), "{error}");
    }

    #[test]
    fn flags_become_a_request() {
        let arguments = parsed(
            "annulus backup --location file:///b --retention 7 --interval 1d --drill-interval 7d --compression none \
             --key-file /k --take-over",
        );
        let request = arguments.unwrap().request().unwrap();
        assert_eq!(request.location, "file:///b");
        assert_eq!(request.retention, Some(7));
        assert_eq!(request.interval_s, Some(86_400));
        assert_eq!(request.drill_interval_s, Some(7 * 86_400));
        assert_eq!(request.key_file.as_deref(), Some("/k"));
        assert!(request.take_over && !request.dry_run);
        let nowhere = parsed("annulus backup").unwrap();
        let error = nowhere.request().unwrap_err().to_string();
        assert!(error.contains("--location"), "{error}");
    }

    #[test]
    fn a_plan_says_what_would_be_deleted() {
        let plan = BackupPreview {
            files: 1,
            points_to_delete: vec!["a".to_owned(), "b".to_owned()],
            ..BackupPreview::default()
        };
        assert!(shown(&plan).ends_with("points to delete  a, b\n"));
        assert!(shown(&BackupPreview::default()).ends_with("none\n"));
    }
}
