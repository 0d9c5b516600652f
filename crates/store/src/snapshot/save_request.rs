//! The requests of the task that saves an index to the task that owns its rows.

use tokio::sync::oneshot;

use crate::items::SavedRows;

/// A request of the task that saves the index.
#[derive(Debug)]
pub(crate) enum SaveRequest {
    /// Requests the revision of the rows.
    Revision(oneshot::Sender<u64>),
    /// Requests to record the ids that change from now on.
    Begin(oneshot::Sender<SaveStart>),
    /// Requests some rows.
    Rows {
        /// The first id of the rows.
        from: u32,
        /// Receives the rows from that id on.
        answer: oneshot::Sender<CopiedRows>,
    },
    /// Requests what the snapshot needs in addition to the rows.
    End(oneshot::Sender<SavedRows>),
}

/// The state when a save begins.
#[derive(Debug)]
pub(crate) struct SaveStart {
    /// The revision of the rows.
    pub revision: u64,
    /// The seed of the hashes of vectors.
    pub hash_seed: u64,
}

/// Some rows, as the answer to [`SaveRequest::Rows`].
#[derive(Debug)]
pub(crate) struct CopiedRows {
    /// The payloads as they go into the file.
    pub payloads: Vec<Vec<u8>>,
    /// The payloads of the values of their filter columns.
    pub filters: Vec<Vec<u8>>,
    /// The id to go on from; `None` after the last row.
    pub next: Option<u32>,
}
