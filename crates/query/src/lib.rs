//! Planning of statements, as far as it does not depend on where the rows are, free of I/O, and the
//! search for neighbours over traits. The embedded node and the gateway before a cluster share it.
//!
//! - [`bind`]: terms, checked against the types of their places, and their values;
//! - [`user_types`]: the user types that they name;
//! - [`functions`]: the functions that terms and selections call, with the [`clock`] of a
//!   statement.
//!
//! ```text
//! SELECT title FROM shop.films ORDER BY v ANN OF ? LIMIT 10
//! ```
//!
//! A SELECT has an access path, which its relations lead to, and an ordering over the rows there.
//! Access paths are only the node's, as a cluster finds its own.
//!
//! - [`relation`]: the relations of WHERE, with [`resolve`]d names, and their [`values`];
//! - [`row_filter`]: the conditions of relations, for which a row is checked after it is read;
//! - [`limit`]: LIMIT and PER PARTITION LIMIT;
//! - [`RowOrdering`]: the ordering, by clustering columns or by searches.
//!
//! An ordering by searches ([`SearchCall`]) is served by indexes, which name the best rows:
//!
//! - [`clauses`]: the clauses that such a SELECT must not have, in the words of ScyllaDB;
//! - [`serving`]: the index that is searched if several serve the query;
//! - [`condition`]: the relations of WHERE, and which of them the index can search by;
//! - [`search`]: the search as a value, and the one loop that carries it out;
//! - [`covered`]: whether the index keeps all that the query needs, so that no rows are read;
//! - [`SearchTerm`]: the vector or the words to look for;
//! - [`SearchCallPlan`]: equal calls as one search, and how several make one order;
//! - [`WordRelation`]: words in WHERE;
//! - [`AnnOptions`], [`HybridOptions`]: the options of a search, and of a ranking of several;
//! - [`bounds`]: checks of values that are known only when the query is executed;
//! - [`key_values`] and [`refused`]: the answers of the index service;
//! - [`TopScored`]: putting candidates in order again.
//!
//! For clients, answers have a [`columns_id()`].

#![warn(clippy::unwrap_used)]

mod ann_options;
pub mod bind;
pub mod bounds;
mod choice;
pub mod clauses;
mod columns_id;
pub mod condition;
mod covering;
pub mod functions;
pub mod hybrid_options;
pub mod limit;
mod nearest;
mod ordering;
pub mod relation;
pub mod resolve;
pub mod row_filter;
pub mod search;
pub mod search_call;
mod search_plan;
pub mod search_term;
mod search_vector;
mod select_options;
mod service;
pub mod statement_clock;
pub mod user_types;
pub mod values;
mod word_relation;

pub use ann_options::AnnOptions;
pub use choice::{IndexDefinition, serving};
pub use columns_id::columns_id;
pub use covering::{covered, reads_one_replica};
pub use hybrid_options::HybridOptions;
pub use nearest::TopScored;
pub use ordering::{RowOrdering, SearchForm, SearchedOrdering, WrittenRanking, WrittenScore};
pub use search_call::{SearchCall, SearchCallPart, SearchKind, similarity_columns, word_columns};
pub use search_plan::{SearchCallPlan, SearchesOfExecution};
pub use search_term::{SearchTerm, SearchWords, SearchedFor};
pub use search_vector::SearchVector;
pub use service::{key_values, refused};
pub use word_relation::WordRelation;
