//! Handing over rows to the task that saves the index, some at a time, between changes.

use super::IndexWriter;
use crate::snapshot::{CopiedRows, SaveRequest, SaveStart, put_filters, put_row};

/// The number of ids whose rows are handed out at a time.
const IDS_AT_A_TIME: usize = 4096;

/// The number of bytes at which a payload is complete.
const PAYLOAD_BYTES: usize = 1 << 20;

impl IndexWriter {
    /// Answers a request. The requester may have stopped waiting.
    pub(super) fn serve_save(&mut self, request: SaveRequest) {
        match request {
            SaveRequest::Revision(answer) => {
                let _ = answer.send(self.items.revision());
            }
            SaveRequest::Begin(answer) => {
                self.items.begin_saving();
                let beginning = SaveStart {
                    revision: self.items.revision(),
                    hash_seed: self.items.hash_seed(),
                };
                // The graph that is saved may have these in an older state, or not at all.
                self.drain.ids().for_each(|id| self.items.touch(id));
                let _ = answer.send(beginning);
            }
            SaveRequest::Rows { from, answer } => {
                let _ = answer.send(self.some_rows(from));
            }
            SaveRequest::End(answer) => {
                let rows = self.items.end_saving(&self.index.content.keys());
                let _ = answer.send(rows);
            }
        }
    }

    fn some_rows(&self, from: u32) -> CopiedRows {
        let keys = self.index.content.keys();
        let (mut payloads, mut filters) = (Vec::new(), Vec::new());
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let next = self
            .items
            .saved_rows(&keys, from, IDS_AT_A_TIME, |row, key| {
                put_row(&mut rows, row, key);
                if !keys.filters().types().is_empty() {
                    put_filters(&mut values, row, keys.filters());
                }
                for (payload, full) in [(&mut rows, &mut payloads), (&mut values, &mut filters)] {
                    if payload.len() >= PAYLOAD_BYTES {
                        full.push(std::mem::take(payload));
                    }
                }
            });
        for (payload, full) in [(rows, &mut payloads), (values, &mut filters)] {
            if !payload.is_empty() {
                full.push(payload);
            }
        }
        CopiedRows {
            payloads,
            filters,
            next,
        }
    }
}
