//! Progress of transfers and rows on the terminal.

use backup::TransferProgress;

use crate::operator::progress::TerminalBar;

/// The line of a transfer of this process.
pub struct TransferLine(TerminalBar);

impl TransferLine {
    /// The line of this work.
    pub fn of(what: &str) -> TransferLine {
        TransferLine(TerminalBar::of_bytes(what, 0))
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// Shows how many rows are written.
    pub fn rows(&self, rows: u64) {
        self.0.say(format!("{rows} rows"));
    }
}

impl TransferProgress for TransferLine {
    fn set_total(&self, bytes: u64) {
        self.0.set_total(bytes);
    }

    fn done(&self, bytes: u64, _sent: u64) {
        self.0.add(bytes);
    }

    fn is_wanted(&self) -> bool {
        true
    }
}
