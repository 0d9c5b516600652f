//! `data`: describes the files of data sets, computes true neighbours, and makes harder sets.

use std::path::PathBuf;

use annulus_bench::data::{ArrayRole, ArraySource, DataArguments, Lift, describe};
use clap::Subcommand;

/// The commands of `annulus bench data`.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Print shape, element type, lengths, and the number of NaN, zero and equal vectors
    Describe {
        /// Files; FILE:PART names a column of a parquet file or a dataset of an HDF5 file, FILE
        /// without PART all of them
        #[arg(required = true)]
        files: Vec<ArraySource>,
    },
    /// Compute the true neighbours of a set's queries and save them next to it, unless the set has
    /// them
    Neighbours {
        #[command(flatten)]
        data: DataArguments,
        /// Neighbours of each query
        #[arg(long, short, default_value_t = 100)]
        k: usize,
    },
    /// Make a set of more dimensions, by a random map and noise
    ///
    /// Writes base.fbin and query.fbin, with the true neighbours next to them. Without noise all
    /// distances stay the same. Noise raises the intrinsic dimension, which makes the set harder to
    /// search. The same arguments always make the same set.
    Lift {
        #[command(flatten)]
        data: DataArguments,
        #[command(flatten)]
        lift: Lift,
        /// The directory to write
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Runs a command about data.
pub fn run(command: DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Describe { files } => {
            for file in files {
                for part in file.parts()? {
                    say!("{part}");
                    for line in describe(part.read(ArrayRole::Base)?).lines() {
                        say!("  {line}");
                    }
                }
            }
        }
        DataCommand::Lift { data, lift, out } => {
            let (base, queries) = (data.read_base()?, data.read_queries()?);
            lift.make(base, queries, &out)?;
            let made = DataArguments {
                data: Some(out.clone()),
                ..DataArguments::default()
            };
            // This computes the true neighbours and keeps them.
            made.read_search_set(1)?;
            say!("{}", out.display());
        }
        DataCommand::Neighbours { data, k } => {
            let set = data.read_search_set(k)?;
            say!(
                "{} queries with {} true neighbours each, {}",
                set.queries.len(),
                set.neighbours.per_query,
                data.metric()?.name()
            );
        }
    }
    Ok(())
}
