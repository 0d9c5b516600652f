//! Reading: from records to live rows.

mod context;
mod plan;
mod stream;
mod view;

pub(crate) use context::ReadContext;
pub use stream::RowStream;
pub use view::View;
