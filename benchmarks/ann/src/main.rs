//! Measures Annulus' vector index engine beside other libraries.

mod commands;
mod contenders;
mod data;
mod ratio;
mod statistics;
mod sweep;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use contender::DataSet;

/// Measures Annulus' vector index engine beside other libraries
///
/// Progress goes to standard error, results to standard output.
#[derive(Parser)]
#[command(version, after_long_help = after_help())]
struct Arguments {
    /// Folder that keeps data sets once they are decoded or made
    #[arg(long, global = true, default_value = "target/bench-ann-data")]
    cache: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// All contenders: recall against speed, builds, memory; `make bench-ann` runs it
    Compare(commands::compare::Arguments),
    /// One data set: every beam width of the search, for tuning
    Curve(commands::curve::Arguments),
    /// Growing numbers of vectors: builds, memory, searches at equal recall, and how they grow
    Growth(commands::growth::Arguments),
    /// Annulus alone: searches among few and many of the vectors, beside searches among all
    Filtered(commands::filtered::Arguments),
    /// Annulus alone: replace every vector many times, and search beside a writer
    Churn(commands::churn::Arguments),
    /// Annulus alone: the speed at which a search reads, against that of this machine's memory
    Limits(commands::limits::Arguments),
    /// Annulus alone: open a snapshot instead of building
    Open(commands::open::Arguments),
    /// Recall on data of many kinds, beside hnswlib and usearch; `make bench-recall` runs it
    Recall(commands::recall::Arguments),
    /// Make or describe data sets
    Data(commands::data::Arguments),
    /// Open a snapshot once, and print how long it took
    #[command(hide = true)]
    OpenOnce(commands::open::OnceArguments),
    /// Take part as a contender: requests on standard input, replies on standard output
    #[command(hide = true)]
    Contend {
        name: String,
        folder: PathBuf,
        #[arg(long)]
        reuse: bool,
    },
}

fn after_help() -> String {
    let sources = data::SOURCES.iter();
    let sources: String = sources
        .map(|source| format!("  {:18} {}\n", source.name, source.about))
        .collect();
    format!("Data sets:\n{sources}\nContenders:\n{}", contenders::NAMES)
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let cache = &arguments.cache;
    match arguments.command {
        Command::Compare(arguments) => commands::compare::run(&arguments, cache),
        Command::Curve(arguments) => commands::curve::run(&arguments, cache),
        Command::Growth(arguments) => commands::growth::run(&arguments, cache),
        Command::Filtered(arguments) => commands::filtered::run(&arguments, cache),
        Command::Churn(arguments) => commands::churn::run(&arguments, cache),
        Command::Limits(arguments) => commands::limits::run(&arguments, cache),
        Command::Open(arguments) => commands::open::run(&arguments, cache),
        Command::Recall(arguments) => commands::recall::run(&arguments),
        Command::OpenOnce(arguments) => commands::open::run_once(&arguments),
        Command::Data(arguments) => commands::data::run(&arguments, cache),
        Command::Contend {
            name,
            folder,
            reuse,
        } => {
            let data = DataSet::open(&folder)?.context("there is no data set in the folder")?;
            contenders::serve(&name, &data, reuse.then_some(&folder))
        }
    }
}
