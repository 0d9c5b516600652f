//! Indexes that the database keeps itself, in the commit of the rows: secondary indexes. This
//! service only begins and shows their repairs.
//!
//! Repairs of both kinds of index are one thing to clients: one path, one budget of requests, one
//! repair at a time, the same refusals and tasks. So this service has the rows of that path. It
//! calls the database for the repair itself by [`super::SourceDatabase`], as for the check of all
//! files. If the rows had a list of targets, each target would implement start, speed, state and
//! schedule, and all of them would share the turn of the one repair. Here that is five methods of
//! one trait.

use async_trait::async_trait;
use tasks::Task;
use uuid::Uuid;

use super::TableIdentity;

/// An index that the database keeps itself.
#[async_trait]
pub trait DatabaseIndex: Send + Sync {
    /// Identifies the index. An index that is made again under the same name has another version.
    fn version(&self) -> Uuid;

    /// The table that is indexed.
    fn table(&self) -> TableIdentity;

    /// Whether the index has all rows.
    fn is_built(&self) -> bool;

    /// The counters of a repair.
    fn counters(&self) -> &'static [&'static str];

    /// Compares the index with its table, and mends it. Returns whether all was compared; it was
    /// not if the task was stopped, or the index was dropped.
    ///
    /// # Errors
    /// If rows can't be read, or nothing can be written now.
    async fn repair(&self, task: &Task) -> anyhow::Result<bool>;
}
