//! `data`: looking at the files of data sets.

use clap::Subcommand;

use crate::data::{DataArguments, Role, Source, describe};

/// Commands about data alone.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Shape, element type, lengths, and what is odd: NaN, zero and equal vectors
    Describe {
        /// Files; FILE:PART for a column of a parquet file or a dataset of an HDF5 file, or else all of them
        #[arg(required = true)]
        files: Vec<Source>,
    },
    /// Compute the true neighbours of a set's queries and keep them beside it, unless they are there
    Neighbours {
        #[command(flatten)]
        data: DataArguments,
        /// How many of each query
        #[arg(long, short, default_value_t = 100)]
        k: usize,
    },
}

/// Runs a command about data.
pub fn run(command: DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Describe { files } => {
            for file in files {
                for part in file.parts()? {
                    println!("{part}");
                    for line in describe(part.read(Role::Base)?).lines() {
                        println!("  {line}");
                    }
                }
            }
        }
        DataCommand::Neighbours { data, k } => {
            let set = data.read_search_set(k)?;
            println!(
                "{} queries with {} true neighbours each, {}",
                set.queries.len(),
                set.neighbours.per_query,
                data.metric()?.name()
            );
        }
    }
    Ok(())
}
