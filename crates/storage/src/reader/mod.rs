//! Reading: from records to live rows.

mod context;
mod entries;
mod plan;
mod sizes;
mod stream;
mod view;

pub(crate) use context::ReadContext;
pub use entries::EntryStream;
pub use sizes::{PartitionSize, PartitionWalk, SizedPartition, WalkStep};
pub use stream::RowStream;
pub use view::TableView;
