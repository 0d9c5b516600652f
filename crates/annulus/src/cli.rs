//! The command line.

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use tools::export::ExportFlags;
use tools::import::ImportFlags;

use crate::backup_commands::backup::BackupArguments;
use crate::backup_commands::restore::RestoreArguments;
use crate::backup_commands::snapshot::SnapshotArguments;
use crate::certificate::CertificateArguments;
use crate::completions::CompletionsArguments;
use crate::doctor::DoctorArguments;
use crate::gateway_command::GatewayArguments;
use crate::man_pages::ManArguments;
use crate::operator::check::CheckArguments;
use crate::operator::maintenance::MaintenanceArguments;
use crate::operator::repair::RepairArguments;
use crate::operator::status::StatusArguments;
use crate::operator::task_commands::TasksArguments;
use crate::recover::RecoverArguments;
use crate::role::RoleArguments;
use crate::scrub::ScrubArguments;
use crate::serve::ServeArguments;
use crate::settings_template::TemplateArguments;
use crate::store_service::StoreSettings;

/// Vector search for CQL databases.
#[derive(Debug, Parser)]
#[command(
    name = "annulus",
    version = env!("ANNULUS_VERSION"),
    propagate_version = true,
    after_help = "Exit codes: 0 stopped on request, 1 failed, 2 bad command line or configuration, \
                  3 address in use, 4 data directory in use, 5 data directory unreadable or damaged, 124 not in time."
)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
pub enum ProgramCommand {
    /// Run an embedded CQL database with its index service, in one process
    ///
    /// Any Cassandra or ScyllaDB driver connects to the CQL port. Every setting may also be in a
    /// TOML file (--config) under its long name, or in the environment under the name shown. A flag
    /// wins over the environment, and the environment over the file.
    ///
    /// With --tls-cert-path and --tls-key-path both ports speak only TLS (`annulus certificate`
    /// makes the files). On SIGHUP, and every --tls-file-check-interval, the certificates are read
    /// again. All other settings need a restart.
    Serve(Box<ServeArguments>),

    /// Run only the index service, for a ScyllaDB cluster (or another that speaks its CDC)
    ///
    /// The service takes the place of ScyllaDB's Vector Store and understands its environment
    /// variables. Every setting is a flag, an environment variable, a line of `.env` in the working
    /// directory under the same name, and a line of the TOML file (--config) under its long name. A
    /// flag wins over the environment, the environment over `.env`, and `.env` over the file.
    ///
    /// On SIGHUP the service reads `.env`, the file, the password and certificates again. Every
    /// --tls-file-check-interval it reads only the password and certificates. Changes of
    /// addresses, certificates, the memory limit and all settings of the database take effect
    /// without dropping a request. Settings that can't be used are logged and change nothing. All
    /// other settings need a restart.
    Store(Box<StoreSettings>),

    /// Measure any server of the index service's HTTP API or of CQL, and make reports
    ///
    /// The work is done by a program of its own, `annulus-bench`, in the same directory.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench {
        /// Arguments of `annulus-bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },

    /// Run a CQL server before a node of Apache Cassandra
    ///
    /// The gateway adds vector indexes and `ANN OF`. Drivers connect to gateways instead of nodes:
    /// each node of the cluster has one gateway, and all gateways get the same --gateway pairs and
    /// index services. Every setting may also be in a TOML file (--config) under its long name, or
    /// in the environment under the name shown. A flag wins over the environment, and the
    /// environment over the file.
    ///
    /// With --with-store the index service runs in the same process, and `ANN OF` searches it by a
    /// call. This suits a single machine, or a small cluster with one process for each node. The
    /// settings of the index service are in the table [store] of the file.
    ///
    /// On SIGHUP, and every --tls-file-check-interval, the gateway reads its certificate for
    /// clients again. An index service in this process reads its files again as `annulus store`
    /// does. All other settings need a restart.
    Gateway(Box<GatewayArguments>),

    /// Show the state of a running service: whether it serves, its program and version, whether its
    /// machine's clock was set back, and its indexes with their memory, their lag and their recall
    Status(Box<StatusArguments>),

    /// Show and stop the long work of an index service: scans, builds, catching up, repairs
    Tasks(Box<TasksArguments>),

    /// Have a running service finish its requests and take no more, before it is stopped
    ///
    /// New statements and searches are refused with an error that has drivers try another server,
    /// and /health/ready answers 503, so that balancers send nothing. Requests that have begun are
    /// answered. It ends with `off`, and with the process: a restart serves.
    #[command(after_help = crate::operator::maintenance::EXAMPLES)]
    Maintenance(Box<MaintenanceArguments>),

    /// Check that an index equals its table, token range by token range, and mend the differences
    ///
    /// Exit code 0 means that they are equal now. The counters say how many ranges and rows
    /// differed, or entries of a secondary index.
    Repair(Box<RepairArguments>),

    /// Measure the recall of a vector index: how many of the ten nearest rows its searches find
    ///
    /// The service draws rows of the index by chance and searches for the vector of each in the
    /// ordinary way. It compares the answers with the ten nearest of all rows, which it finds by
    /// measuring every full vector of the index: neither the graph nor codes have a part in that.
    /// The row itself counts as one of its ten neighbours, and one that is as near as the tenth
    /// counts as found.
    ///
    /// Recall is the share that was found. With 95 % confidence that of all rows is in the interval
    /// (Wilson's formula, with each drawn row as one trial; more --queries make it narrower).
    /// Self-recall is the share of the rows that their own search answers first, ties aside. Other
    /// work goes on meanwhile. Ctrl-C ends the check.
    ///
    /// Exit code 0 means that recall was measured, and is not below --target; 1 that it is below,
    /// or could not be measured.
    #[command(after_help = crate::operator::check::EXAMPLES)]
    Check(Box<CheckArguments>),

    /// Make certificates for TLS: an authority of your own, and what it signs for this server and
    /// its clients
    ///
    /// The directory then holds ca.pem, which clients are given so that they believe the server;
    /// server.pem and server.key, for `annulus serve`; and NAME.pem and NAME.key for each --client,
    /// which prove to the server who a client is. ca.key signs them all: with it anyone can pass
    /// for the server and for every client, so keep it off the server. Keys are readable only for
    /// you.
    ///
    /// An authority that is in the directory already is used again, so that a certificate can be
    /// renewed, or made for another client, and no one needs another ca.pem. Other files are
    /// replaced only with --force.
    #[command(after_help = crate::certificate::EXAMPLES)]
    Certificate(CertificateArguments),

    /// Show the writes that a damaged journal of a stopped `annulus serve` would lose, and go on
    /// without them
    ///
    /// A server with a damaged journal does not start. This command lists, by table and time, the
    /// writes after the damage. It changes nothing without --accept-loss. With it, the journal is
    /// cut at the damage, and the cut part is saved in a file next to it. Exit code 5 means that
    /// the journal is damaged and nothing was changed.
    Recover(RecoverArguments),

    /// Let the owner of a stopped `annulus serve` in again who has lost the superuser's password
    ///
    /// While the server runs, roles are changed by CQL: CREATE ROLE, ALTER ROLE, GRANT.
    Role(RoleArguments),

    /// Read all files and check every checksum, of a running service or of a stopped
    /// `annulus serve`
    ///
    /// Without DIR, the service at --http reads its files, as a task during its other work, which
    /// can be followed and aborted (`annulus tasks`). With DIR, this command reads the directory of
    /// a stopped server. Nothing is changed. Each file that is not as it was written is named; the
    /// exit code is then 5 with DIR, and 1 for a service.
    Scrub(Box<ScrubArguments>),

    /// Back a running service up to object storage or a directory, once or by a schedule
    ///
    /// The server sends what the location does not have yet: rows, schema, roles, and the snapshots
    /// of indexes. Writes go on meanwhile, and queries go first. The location is opened by the
    /// server: paths and credentials are those of its machine and its environment. It is
    /// s3:BUCKET/PREFIX, gcs:BUCKET/PREFIX, azure:CONTAINER/PREFIX or file:///DIR, and belongs to
    /// one server.
    ///
    /// With --interval or --cron the server goes on by that schedule, which survives restarts.
    /// `list` and `verify` read the location themselves and need no server.
    ///
    /// The backup of an index service before a cluster (`annulus store`, `annulus gateway
    /// --with-store`) has its indexes alone, and the command says what the cluster's own backup
    /// must hold.
    #[command(after_help = crate::backup_commands::backup::EXAMPLES)]
    Backup(Box<BackupArguments>),

    /// Restore a backup: into a running server, into a directory, or by CQL into any cluster
    ///
    /// Into a running server (--http): next to its tables, whole, one keyspace or one table, under
    /// its own or another name. All tables appear, or none; a table that exists is refused. Into a
    /// directory (--data): the whole server, with its indexes, for `annulus serve --data-dir DIR`.
    /// By CQL (--cql): the rows with their write times and times to live, into a cluster of any
    /// size.
    ///
    /// Every byte is checked on the way.
    #[command(after_help = crate::backup_commands::restore::EXAMPLES)]
    Restore(Box<RestoreArguments>),

    /// Make a local copy of a running server's data out of hard links
    ///
    /// The copy costs no room at first, and is a data directory of that moment, for `annulus serve
    /// --data-dir`. It must be on the file system of the server's data directory, and is no backup:
    /// it is lost with the disk.
    #[command(after_help = crate::backup_commands::snapshot::EXAMPLES)]
    Snapshot(Box<SnapshotArguments>),

    /// Execute CQL at a prompt, or of a script, on this server or any other
    ///
    /// At a terminal: completion, history, several lines, tables that fit, and cqlsh's commands.
    /// Else the statements of -e, -f or stdin, with their rows as tables, JSON or CSV.
    #[command(visible_alias = "sql")]
    Shell(Box<tools::shell::ShellFlags>),
    /// Check this machine and the server on it: limits, disk, clock, ports, processor, memory
    ///
    /// It takes the settings of `annulus serve`, from the same sources, and prints one line for
    /// each thing it looks at, with what to change. It writes a file of some KiB into the data
    /// directory, to time the disk, and deletes it; it changes nothing else. The server is the one
    /// at the address of these settings, unless --http names another. Exit code 0 means that
    /// nothing is wrong, advice aside, and 1 that something is.
    ///
    /// With --bundle it also writes what a maintainer wants to see into a tar file: these findings,
    /// the settings without secrets, and the state, the tasks and the end of the log of the server.
    /// Rows are not in it, but names of tables and indexes are, and the log as it is.
    Doctor(Box<DoctorArguments>),

    /// Print a file of settings for --config, with each setting explained and commented out
    Settings(TemplateArguments),

    /// Print the completions of this command line for a shell
    Completions(CompletionsArguments),

    /// Print the manual page of this program or of one of its commands (man -l reads it)
    Man(ManArguments),

    /// Import files into a table: Parquet, CSV, JSON lines, npy; of any CQL server
    ///
    /// Columns go to those of the same name. With --create the table is made: types are those of
    /// most values among the first rows, lists of floats of one length are vectors, and the key is
    /// --key, a column `id`, or the row's number. Rows that do not fit are left out and written to
    /// a file with the reasons. Importing twice gives the same rows, and an import that was stopped
    /// goes on when the same command runs again.
    #[command(after_help = tools::import::EXAMPLES)]
    Import(Box<ImportFlags>),

    /// Export a table to a file: Parquet, CSV, JSON lines, npy; of any CQL server
    #[command(after_help = tools::export::EXAMPLES)]
    Export(Box<ExportFlags>),
    /// Let a language model look at tables and search them, by the Model Context Protocol
    ///
    /// A program that runs a model starts this one and speaks with it over stdin and stdout. The
    /// tools list tables and indexes, describe a table, search by vectors, words or both, and read
    /// by CQL. Nothing is changed without --allow-writes. Any CQL server will do.
    Mcp(Box<tools::mcp::McpFlags>),

    /// Print the licences of what this program and `annulus-bench` contain
    Licences,
}
