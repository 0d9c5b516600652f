//! The HTTP API of the index service: its types and its client.
//!
//! The index service keeps vectors and primary keys, never rows. A CQL node requests the keys of
//! the nearest rows from it and reads the rows itself. Both sides share the types of this crate.
//! [`types`] has the bodies of requests and answers, [`binary`] their form without JSON.
//! [`IndexServices`] are the services to which a node sends a [`VectorSearch`] or a [`WordSearch`]:
//! over sockets by a [`StoreClient`], or one in its own process, for which no bytes are made.

#![warn(clippy::unwrap_used)]

pub mod binary;
mod client;
mod columns_predicate;
mod error;
pub mod hex;
mod search_counts;
mod stores;
pub mod types;
mod vector_search;
mod word_search;

pub use client::{ClientOptions, KeyValue, NearestRows, ServiceZones, StoreClient};
pub use columns_predicate::ColumnsPredicate;
pub use error::{ClientError, InvalidUri, NotOneService};
pub use search_counts::{CountedSearch, SearchCounts};
pub use stores::{InProcessService, IndexServices};
pub use vector_search::VectorSearch;
pub use word_search::{MatchedRows, WordMatches, WordSearch};
