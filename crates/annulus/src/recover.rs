//! `annulus recover`: shows the damage of a journal, and cuts it off.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use storage::{JournalLoss, StorageError, TableLoss};

use crate::output;

#[derive(Args, Debug)]
pub struct RecoverArguments {
    /// The data directory of a stopped server
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Cut the journal where the damage begins, and save the cut part in a file next to it
    #[arg(long)]
    accept_loss: bool,
}

/// Runs `annulus recover`.
pub fn run(arguments: RecoverArguments) -> anyhow::Result<()> {
    let Some(loss) = storage::recover(&arguments.directory, arguments.accept_loss)? else {
        return output::print("No journal is damaged; nothing was changed.\n");
    };
    output::print(shown(&loss))?;
    if loss.kept.is_empty() {
        return Err(StorageError::Corrupt(
            "nothing was changed: restore a backup, or go on without these writes by --accept-loss"
                .to_owned(),
        )
        .into());
    }
    for file in &loss.kept {
        output::print(format_args!(
            "What was cut off is kept in {}\n",
            file.display()
        ))?;
    }
    Ok(())
}

fn shown(loss: &JournalLoss) -> String {
    let mut text = format!(
        "{} is damaged at offset {}: the batch of writes there can't be trusted.\n\
         {} whole batches stand behind it. Cutting there loses, as far as it is not in other files already:\n",
        loss.journal.display(),
        loss.offset,
        loss.batches_after,
    );
    for TableLoss {
        table,
        writes,
        first_micros,
        last_micros,
    } in &loss.tables
    {
        text += &format!(
            "  {table}: {writes} writes from {} to {}\n",
            time(*first_micros),
            time(*last_micros)
        );
    }
    text
}

fn time(micros: i64) -> String {
    match Timestamp::from_microsecond(micros) {
        Ok(time) if micros != 0 => time.to_string(),
        _ => "an unknown time".to_owned(),
    }
}
