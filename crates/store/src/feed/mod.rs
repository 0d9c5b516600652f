//! The rows of a table on their way to its indexes.
//!
//! Rows come by two ways. The [scan](TableScan) reads all of them once, by token range. The readers
//! of the [log](LogFollower) name the rows that change, and the [re-reader](RowRereader) reads
//! these again. Both ways end at the tasks that own the rows of the indexes ([`crate::apply`]), as
//! [messages](crate::message).
//!
//! The rows come from a [`crate::database::SourceDatabase`], which is a cluster or the process
//! itself.

mod log;
mod pages;
mod reread;
mod scan;

pub(crate) use log::{InterruptedTable, LogFollower};
pub(crate) use pages::{TablePager, rows_of};
pub(crate) use reread::{RowRereader, SubscriptionRequest};
pub(crate) use scan::TableScan;
