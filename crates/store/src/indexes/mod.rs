//! The indexes: each one by itself, and the set of them.
//!
//! An [`IndexHandle`] is one index: its identity, its structure for searches, its state and its
//! metrics. The [`Engine`] has all of them and finds the one that answers a search. Nothing here
//! knows where the rows come from.

mod doubts;
mod engine;
mod fresh;
mod freshness;
mod handle;
mod plan;
mod ranked_rows;
mod returned;
mod selection;
mod tending;
mod vector;

pub use engine::{Engine, NoRoute, Routed};
pub use fresh::{Block, Blocks, FreshChange};
pub use freshness::Lag;
pub use handle::IndexHandle;
pub use ranked_rows::RankedRows;
pub use returned::ReturnedColumn;
pub use vector::{NewFilters, Refused, Retired, Search, VectorError, VectorIndex};

#[cfg(test)]
pub(crate) mod tests;
