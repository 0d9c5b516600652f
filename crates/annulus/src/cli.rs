//! What can be typed.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::gateway::GatewayArguments;
use crate::operator::repair::RepairArguments;
use crate::operator::status::StatusArguments;
use crate::operator::tasks::TasksArguments;
use crate::recover::RecoverArguments;
use crate::scrub::ScrubArguments;
use crate::serve::ServeArguments;
use crate::store_service::StoreSettings;

/// Vector search for CQL databases.
#[derive(Debug, Parser)]
#[command(
    name = "annulus",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 stopped as asked, 1 failed, 2 bad command line or configuration, \
                  3 address in use, 4 data directory in use, 5 data directory unreadable or damaged, 124 not in time."
)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an embedded CQL database with its index service, in one process
    ///
    /// Any Cassandra or ScyllaDB driver connects to the CQL port. Every setting may also stand in
    /// a TOML file (--config) under its long name, or in the environment under the name shown;
    /// a flag wins over the environment, the environment over the file.
    Serve(Box<ServeArguments>),

    /// Run the index service alone, beside a ScyllaDB cluster (or another that speaks its CDC)
    ///
    /// It takes the place of ScyllaDB's Vector Store and understands its environment variables.
    /// Every setting is a flag, an environment variable, a line of `.env` in the working directory
    /// under the same name, and a line of the TOML file (--config) under its long name. A flag
    /// wins over the environment, the environment over `.env`, `.env` over the file.
    ///
    /// On SIGHUP `.env`, the file, the password and certificates are read again; every
    /// --tls-file-check-interval the password and certificates alone. Addresses, certificates, the
    /// memory limit and whatever concerns the database change without dropping a request; what can't
    /// be used is logged and changes nothing. The rest needs a restart.
    Store(Box<StoreSettings>),

    /// Measure any server of the same HTTP API or of CQL, and make reports
    ///
    /// It is a program of its own, `annulus-bench`, which stands beside this one.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench {
        /// What `annulus-bench` is given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },

    /// Run a CQL server before a node of Apache Cassandra
    ///
    /// It adds vector indexes and `ANN OF`. Drivers connect to gateways instead of nodes: one gateway stands beside each
    /// node of the cluster, and all are given the same --gateway pairs and index services. Every setting may also stand in a
    /// TOML file (--config) under its long name, or in the environment under the name shown; a flag wins over the environment,
    /// the environment over the file.
    ///
    /// With --with-store the index service runs in the same process: one program to start for one machine, or beside each node
    /// of a small cluster, and `ANN OF` asks it by a call. Its settings stand in the table [store] of the file.
    ///
    /// On SIGHUP, and every --tls-file-check-interval, the certificate for clients is read again, and what `annulus store` reads
    /// again if the index service runs in this process. The rest needs a restart.
    Gateway(Box<GatewayArguments>),

    /// How a running service is: whether it serves, which program it is, and whether its machine's clock was set back
    Status(Box<StatusArguments>),

    /// See and stop the long work of an index service: scans, builds, catching up, repair
    Tasks(Box<TasksArguments>),

    /// Prove that an index equals its table, token range by token range, and mend what differs
    ///
    /// Exit code 0: they are equal now. The counters say how many ranges and rows differed.
    Repair(Box<RepairArguments>),

    /// See what a damaged journal of a stopped `annulus serve` would lose, and go on without it
    ///
    /// A server that finds its journal damaged does not start. This lists, by table and time, the writes that
    /// stand behind the damage. Nothing is changed without --accept-loss; with it the journal is cut there, and what is
    /// cut is kept in a file beside it. Exit code 5: it is damaged, and nothing was changed.
    Recover(RecoverArguments),

    /// Read all files and check every checksum: of a running service, or of a stopped `annulus serve`
    ///
    /// Without DIR the service at --http does it, as a task beside its other work, which can be followed and aborted
    /// (`annulus tasks`). With DIR this command reads the directory of a server that is stopped. Nothing is changed. Each
    /// file that is not as it was written is named. Exit code then: 5 for DIR, 1 for a service.
    Scrub(Box<ScrubArguments>),
}
