//! How a caller follows a transfer, stops it and slows it down.

use futures::future::{self, BoxFuture};

/// The caller's view of a transfer.
pub trait TransferProgress: Send + Sync {
    /// Sets the bytes of all files.
    fn set_total(&self, bytes: u64);

    /// Adds what was done since the last call: `bytes` of files, of which `transferred` went to the
    /// store or came from it, as stored.
    fn done(&self, bytes: u64, transferred: u64);

    /// Whether the transfer shall go on. It ends between two pieces.
    fn is_wanted(&self) -> bool;
}

/// The pace of a transfer.
pub trait TransferPace: Send + Sync {
    /// Waits until a piece of so many bytes may be read from disk, or fetched from the store.
    fn before(&self, bytes: u64) -> BoxFuture<'_, ()>;
}

/// The progress of a transfer that no one follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl TransferProgress for NoProgress {
    fn set_total(&self, _: u64) {}

    fn done(&self, _: u64, _: u64) {}

    fn is_wanted(&self) -> bool {
        true
    }
}

/// The pace of a transfer that waits for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPace;

impl TransferPace for FullPace {
    fn before(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(future::ready(()))
    }
}
