//! Reading: from records to live rows.

mod cells;
mod context;
mod entries;
mod plan;
mod sizes;
mod stream;
mod view;

pub use cells::{CellRow, CellStream, CellTime, StoredCell};
pub(crate) use context::ReadContext;
pub use entries::EntryStream;
pub use sizes::{PartitionSize, PartitionWalk, SizedPartition, WalkStep};
pub use stream::RowStream;
pub use view::TableView;
