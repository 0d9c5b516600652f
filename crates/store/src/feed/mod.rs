//! The rows of a table on their way to its indexes.
//!
//! Rows come by two ways. The [scan](Scan) reads all of them once, by token range. The readers of
//! the [log](LogFollower) name the rows that change, and the [re-reader](Rereader) reads these
//! again. Both ways end at the tasks that own the rows of the indexes ([`crate::apply`]), as
//! [messages](crate::message).
//!
//! The rows come from a [`crate::database::Database`], which is a cluster or the process itself.

mod log;
mod pages;
mod reread;
mod scan;

pub use log::{Interrupted, LogFollower};
pub use pages::{Pages, rows_of};
pub use reread::{Rereader, Subscriber};
pub use scan::Scan;
