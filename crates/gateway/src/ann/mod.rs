//! `ORDER BY v ANN OF ...` on a table with a vector index of ours: the index service names the nearest keys, the cluster has
//! the rows.
//!
//! ```text
//! SELECT name FROM films ORDER BY v ANN OF ? LIMIT 10     the client's statement
//! POST /api/v1/indexes/shop/films_v/ann                   neighbours, from the index service
//! SELECT name, "id"                                       rows, from the cluster
//!     FROM "shop"."films" WHERE "id" IN ?
//! ```
//!
//! - `plan`: whether a statement is such a query, and what it asks for (a value that prints);
//! - `terms`: the vector and LIMIT, as written or bound;
//! - `key_read`: the statement that reads rows by their keys, and its values;
//! - `prepared`: PREPARE, and what is remembered for EXECUTE;
//! - `search`: the execution of either kind;
//! - `rows`: rows into the order of the neighbours.
//!
//! # Whose connection reads the rows
//!
//! The client's own (module `inquiry`): its permissions, its consistency level, its trace and its timeouts hold as if it
//! had read them itself, and errors of the cluster reach it as they are. The node beside the gateway coordinates:
//! it reads what it has and asks other replicas for the rest at once, so one round trip reads all partitions.
//!
//! # Prepared statements
//!
//! Cassandra would refuse to prepare the client's statement, as the column has no index of its own. So the statement that
//! reads the keys is prepared, and the client is given an id of ours: a hash of keyspace and text, the
//! same on every gateway and after every restart, which some drivers insist on. Whatever makes the statement mean
//! something else (an index dropped or made, a table altered, the node's own statement forgotten) is answered
//! UNPREPARED, upon which drivers prepare again.
//!
//! # What an answer holds
//!
//! Rows as they are at this moment. One that was deleted is left out, and so is one that was read with its vector and has none; the
//! next neighbours take their places (`ann_query::refill`). There are no pages; a warning says so to who asked for some.

#[cfg(test)]
pub(crate) mod fixtures;
mod key_read;
mod plan;
mod prepared;
mod rows;
mod search;
mod terms;

pub(crate) use plan::AnnPlan;
pub(crate) use prepared::{AnnStatement, prepare, statement_id};
pub(crate) use search::{execute, query};
