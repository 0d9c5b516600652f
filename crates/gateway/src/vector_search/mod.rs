//! Queries by searches, for vectors (`ORDER BY v ANN OF ...`) or for words (`BM25(c, ...)`), on a
//! table with an index of the gateway's. The index service names the best keys, and the cluster has
//! the rows.
//!
//! ```text
//! SELECT name FROM films ORDER BY v ANN OF ? LIMIT 10     the client's statement
//! POST /api/v1/indexes/shop/films_v/ann                   neighbours, from the index service
//! SELECT name, "id"                                       rows, from the cluster
//!     FROM "shop"."films" WHERE "id" IN ?
//! ```
//!
//! A query on a column that has only an index of Cassandra's own (SAI) goes to Cassandra as it is.
//!
//! - `plan`: decides whether a statement is such a query, finds the indexes of its searches, and
//!   makes its plan (a value that prints);
//! - `selection`, `selection_items`: what the cluster reads for the client, and what the gateway
//!   computes and puts between it;
//! - `conditions`: the WHERE of a query, and the check of rows for it;
//! - `prepared`: PREPARE, and what is remembered for EXECUTE;
//! - `execution`: the values of one execution, the search that it is, and what it reads;
//! - `search`: carries out a query, prepared or not. The loops are those of `query::search`;
//! - `matching`: all rows that match words, in pages, for a query without an ordering;
//! - `rows`: the rows of the cluster, and the answer that is made of them;
//! - `computed`: scores, ranks and excerpts, which the gateway adds to the rows;
//! - `covered`: the queries that the index can answer without rows;
//! - `reader`: whether the client may read the table, for such answers;
//! - `freshness`: the newest write to the table, which a search must know.
//!
//! # The connection that reads the rows
//!
//! The rows are read on the client's own connection (module `node_requests`). So its permissions,
//! its consistency level, its trace and its timeouts hold as if the client had read the rows
//! itself, and it gets the errors of the cluster as they are. The node next to the gateway
//! coordinates: it reads the rows that it has and requests the rest from other replicas at once, so
//! one round trip reads all partitions.
//!
//! # Prepared statements
//!
//! Cassandra would refuse to prepare the client's statement, as the column has no index of
//! Cassandra's. So the gateway prepares the statement that reads rows by their keys, and gives the
//! client an id of its own: a hash of keyspace and text. It is the same on every gateway and after
//! every restart, which some drivers insist on. If the statement's meaning changes (an index is
//! dropped or created, a table is altered, the node forgets its own statement), EXECUTE is answered
//! UNPREPARED, upon which drivers prepare again.
//!
//! # The rows of an answer
//!
//! The answer holds the rows as they are at this moment. A deleted row is left out, and so is a row
//! that does not satisfy WHERE, or was read with its vector and has none. The next neighbours take
//! their places (`query::search`). Where WHERE names a column that the index doesn't keep, and the
//! neighbours that one answer can name hold too few rows that satisfy it, all rows are read.
//!
//! Words of WHERE are checked, too: the index service scores the texts that were read, as only it
//! knows the analyzer. A search for the same words names rows by them, so no text is scored twice.
//!
//! A query with an ordering has no pages; a client that requests pages gets a warning. One without,
//! by words of WHERE alone, has: its paging state is the place in the full-text index.

mod computed;
mod computed_item;
mod conditions;
mod covered;
mod execution;
#[cfg(test)]
mod execution_tests;
#[cfg(test)]
pub(crate) mod fixtures;
mod freshness;
mod matching;
mod plan;
mod prepared;
mod reader;
mod row;
mod rows;
mod search;
mod selection;
mod selection_items;

pub(crate) use freshness::FreshSearches;
pub(crate) use plan::AnnPlan;
pub(crate) use prepared::{AnnStatement, prepare, statement_id};
pub(crate) use search::{execute, query};
