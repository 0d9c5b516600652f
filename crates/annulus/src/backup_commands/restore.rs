//! `annulus restore`: into a running server, into a directory, or by CQL into any cluster.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use backup_tasks::{CqlRestore, CqlRestoreReport, CqlSchemaRule, TableChoice};
use clap::{Args, ValueEnum};
use store_api::types::RestoreRequest;
use tempfile::TempDir;

use super::block_on;
use super::list::point_id;
use super::location::LocationFlags;
use super::progress::TransferLine;
use crate::exit::ProcessFailure;
use crate::operator::ServiceArguments;
use crate::operator::task_commands::follow;
use crate::output;

pub const EXAMPLES: &str = "\
Examples:
  annulus restore --location s3:backups/annulus
  annulus restore --location s3:backups/annulus --keyspace shop --table orders --to-keyspace shop_old
  annulus restore --location file:///mnt/backups/one --data /var/lib/annulus
  annulus restore --location s3:backups/annulus --cql 10.0.0.1:9042,10.0.0.2:9042 --keyspace shop";

/// The rule for the schema of a restore by CQL, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SchemaName {
    /// Make tables and indexes, and keyspaces and types that are missing
    #[default]
    Make,
    /// Write into tables that are there
    Skip,
}

#[derive(Args, Debug)]
pub struct RestoreArguments {
    /// The point [default: the newest]
    #[arg(long, value_name = "ID")]
    point: Option<String>,

    /// The keyspace [default: all]
    #[arg(long, value_name = "KEYSPACE", conflicts_with = "data")]
    keyspace: Option<String>,

    /// The table of that keyspace [default: all]
    #[arg(long, value_name = "TABLE", requires = "keyspace")]
    table: Option<String>,

    /// Another name for that keyspace
    #[arg(long, value_name = "KEYSPACE", requires = "keyspace")]
    to_keyspace: Option<String>,

    /// Directory for a new server, missing or empty; no server is needed
    #[arg(long, value_name = "DIR", conflicts_with = "cql")]
    data: Option<PathBuf>,

    /// Addresses of a cluster, with commas between; the login and the certificates are those of the
    /// flags for the service
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    cql: Vec<String>,

    /// With --cql: whether keyspaces, types, tables and indexes are made
    #[arg(long, value_enum, default_value_t, value_name = "RULE")]
    schema: SchemaName,

    /// With --cql: rows written at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    in_flight: usize,

    /// With --cql: directory for the download, removed at the end [default: one in the system's
    /// directory for temporary files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Into a running server: return at once with the task, without waiting for its end
    #[arg(long, conflicts_with_all = ["data", "cql"])]
    detach: bool,

    #[command(flatten)]
    asking: ServiceArguments,

    #[command(flatten)]
    place: LocationFlags,
}

/// Runs `annulus restore`.
pub fn run(arguments: RestoreArguments) -> anyhow::Result<()> {
    block_on(async {
        match &arguments.data {
            Some(directory) => into_directory(&arguments, directory).await,
            None if arguments.cql.is_empty() => into_server(&arguments).await,
            None => by_cql(&arguments).await,
        }
    })
}

async fn into_server(arguments: &RestoreArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    let request = RestoreRequest {
        point: arguments.point.clone(),
        keyspace: arguments.keyspace.clone(),
        table: arguments.table.clone(),
        to_keyspace: arguments.to_keyspace.clone(),
        ..RestoreRequest::of(arguments.place.place()?)
    };
    let client = asking.client().await?;
    let task = client.restore(&request).await;
    let task = task.map_err(|error| asking.explain(error))?;
    follow(asking, &client, task, arguments.detach).await
}

async fn into_directory(arguments: &RestoreArguments, directory: &Path) -> anyhow::Result<()> {
    let point = point_id(arguments.point.as_deref())?;
    let options = arguments.place.options()?;
    let line = TransferLine::of("restore");
    let restored = backup_tasks::restore_directory(
        &options,
        point.as_ref(),
        directory,
        &line,
        &arguments.place.pace(),
    )
    .await;
    line.clear();
    let restored = restored?;
    let next = match restored.host_id {
        Some(_) => format!("annulus serve --data-dir {}", directory.display()),
        None => format!(
            "the index service with --index-dir {}/indexes",
            directory.display()
        ),
    };
    output::print(format_args!(
        "point {} is restored: {} files, {} bytes, every one checked; go on with {next}\n",
        restored.point, restored.files, restored.bytes
    ))
}

async fn by_cql(arguments: &RestoreArguments) -> anyhow::Result<()> {
    let names = (
        arguments.keyspace.clone(),
        arguments.table.clone(),
        arguments.to_keyspace.clone(),
    );
    let choice = TableChoice::new(names.0, names.1, names.2);
    let (scratch, _temporary) = scratch(arguments)?;
    let restore = CqlRestore {
        options: arguments.place.options()?,
        point: point_id(arguments.point.as_deref())?,
        choice: choice.map_err(|error| ProcessFailure::Configuration(error.to_string()))?,
        schema: match arguments.schema {
            SchemaName::Make => CqlSchemaRule::Make,
            SchemaName::Skip => CqlSchemaRule::Skip,
        },
        in_flight: arguments.in_flight,
        scratch,
    };
    let session = arguments.asking.for_cql(arguments.cql.clone());
    let session = session.connect().await?;
    let line = TransferLine::of("restore");
    let report = restore
        .run(&session, &line, &arguments.place.pace(), &|rows| {
            line.rows(rows);
        })
        .await;
    line.clear();
    let report = report?;
    output::print(shown(&report))?;
    match report.refused.is_empty() {
        true => Ok(()),
        false => bail!(
            "all rows are written, but the cluster refused {} statements of the schema",
            report.refused.len()
        ),
    }
}

/// The directory for the download, and a new one around it, if none is named, to be dropped at the
/// end. Others than its owner have no access to that one.
fn scratch(arguments: &RestoreArguments) -> Result<(PathBuf, Option<TempDir>), ProcessFailure> {
    let Some(directory) = &arguments.scratch else {
        let made = tempfile::Builder::new()
            .prefix("annulus-restore-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let made = made.map_err(|error| {
            ProcessFailure::Configuration(format!(
                "the system's directory for temporary files can't be used ({error}): name another \
                 by --scratch"
            ))
        })?;
        return Ok((made.path().join("point"), Some(made)));
    };
    let is_used = std::fs::read_dir(directory).is_ok_and(|mut it| it.next().is_some());
    match is_used {
        // It is removed at the end, and nothing else may be.
        true => Err(ProcessFailure::Configuration(format!(
            "--scratch {}: it has something in it; name a directory that is missing or empty",
            directory.display()
        ))),
        false => Ok((directory.clone(), None)),
    }
}

fn shown(report: &CqlRestoreReport) -> String {
    let refused: String = report
        .refused
        .iter()
        .map(|text| format!("{text}\n"))
        .collect();
    format!(
        "{refused}point {}: {} rows of {} tables are written, out of {} objects\n",
        report.point, report.rows, report.tables, report.fetched_objects
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{CommandLine, ProgramCommand};

    fn parsed(line: &str) -> Option<Box<RestoreArguments>> {
        match CommandLine::try_parse_from(line.split(' ')).ok()?.command {
            ProgramCommand::Restore(arguments) => Some(arguments),
            _ => None,
        }
    }

    #[test]
    fn the_ways_back_are_parsed() {
        let plain = parsed("annulus restore --location file:///b").unwrap();
        assert!(plain.data.is_none() && plain.cql.is_empty());
        assert_eq!(plain.schema, SchemaName::Make);
        let by_cql = "annulus restore --location file:///b --cql a:1,b:2 --schema skip --user u --password-file p";
        let by_cql = parsed(by_cql).unwrap();
        assert_eq!(by_cql.cql, ["a:1", "b:2"]);
        assert_eq!(
            by_cql.asking.for_cql(by_cql.cql.clone()).user.as_deref(),
            Some("u")
        );
        assert!(parsed("annulus restore --location file:///b --data /d").is_some());
        for line in [
            "annulus restore --location file:///b --table t",
            "annulus restore --location file:///b --to-keyspace n",
            "annulus restore --location file:///b --data /d --cql a:1",
            "annulus restore --location file:///b --data /d --keyspace k",
            "annulus restore --location file:///b --data /d --detach",
        ] {
            assert!(parsed(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_scratch_directory_in_use_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let line = format!(
            "annulus restore --location file:///b --cql a:1 --scratch {}",
            directory.path().display()
        );
        let arguments = parsed(&line).unwrap();
        assert!(scratch(&arguments).is_ok());
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert!(scratch(&arguments).is_err());
    }

    #[test]
    fn a_scratch_directory_of_the_system_is_new_and_private() {
        let line = "annulus restore --location file:///b --cql a:1";
        let arguments = parsed(line).unwrap();
        let (path, made) = scratch(&arguments).unwrap();
        let made = made.unwrap();
        assert!(path.starts_with(made.path()) && !path.exists());
        let mode = made.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let (other, _made) = scratch(&arguments).unwrap();
        assert_ne!(other, path);
    }
}
