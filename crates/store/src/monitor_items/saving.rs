//! Handing over rows to the task that saves the index, some at a time, between changes.

use tokio::sync::oneshot;

use super::MonitorItems;
use crate::items::SavedRows;
use crate::snapshot::put_row;

/// The number of ids whose rows are handed out at a time.
const IDS_AT_A_TIME: usize = 4096;

/// The number of bytes at which a payload is complete.
const PAYLOAD_BYTES: usize = 1 << 20;

/// A request of the task that saves the index.
#[derive(Debug)]
pub enum SaveRequest {
    /// Asks for the revision of the rows.
    Revision(oneshot::Sender<u64>),
    /// Asks to record the ids that change from now on.
    Begin(oneshot::Sender<Beginning>),
    /// Asks for some rows.
    Rows {
        /// The first id of the rows.
        from: u32,
        /// Receives the rows from that id on.
        answer: oneshot::Sender<SomeRows>,
    },
    /// Asks for what the snapshot needs beside the rows.
    End(oneshot::Sender<SavedRows>),
}

/// The state when a save begins.
#[derive(Debug)]
pub struct Beginning {
    /// The revision of the rows.
    pub revision: u64,
    /// The seed of the hashes of vectors.
    pub hash_seed: u64,
}

/// Some rows, as the answer to [`SaveRequest::Rows`].
#[derive(Debug)]
pub struct SomeRows {
    /// The payloads as they go into the file.
    pub payloads: Vec<Vec<u8>>,
    /// The id to go on from; `None` after the last row.
    pub next: Option<u32>,
}

impl MonitorItems {
    /// Answers a request. The asker may be gone.
    pub(super) fn serve_save(&mut self, request: SaveRequest) {
        match request {
            SaveRequest::Revision(answer) => {
                let _ = answer.send(self.items.revision());
            }
            SaveRequest::Begin(answer) => {
                self.items.begin_saving();
                let _ = answer.send(Beginning {
                    revision: self.items.revision(),
                    hash_seed: self.items.hash_seed(),
                });
            }
            SaveRequest::Rows { from, answer } => {
                let _ = answer.send(self.some_rows(from));
            }
            SaveRequest::End(answer) => {
                let rows = self.items.end_saving(&self.index.vectors.keys());
                let _ = answer.send(rows);
            }
        }
    }

    fn some_rows(&self, from: u32) -> SomeRows {
        let keys = self.index.vectors.keys();
        let mut payloads = Vec::new();
        let mut payload = Vec::new();
        let next = self
            .items
            .saved_rows(&keys, from, IDS_AT_A_TIME, |row, key| {
                put_row(&mut payload, row, key);
                if payload.len() >= PAYLOAD_BYTES {
                    payloads.push(std::mem::take(&mut payload));
                }
            });
        if !payload.is_empty() {
            payloads.push(payload);
        }
        SomeRows { payloads, next }
    }
}
