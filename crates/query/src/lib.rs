//! Nearest-neighbour SELECTs: their checks, their questions to the index service, and the reading
//! of its answers.
//!
//! ```text
//! SELECT title FROM shop.films ORDER BY v ANN OF ? LIMIT 10
//! ```
//!
//! The embedded node and the gateway before a cluster do the same with such statements. This crate
//! has what does not depend on where the rows lie, free of I/O:
//!
//! - [`ordering`]: whether a SELECT is such a query, and of which column and vector;
//! - [`clauses`]: the clauses that such a SELECT must not have, in the words of ScyllaDB;
//! - [`bounds`]: checks of values that are known only when the query is executed;
//! - [`refill`]: how many more neighbours are asked for when rows of those named are gone;
//! - [`key_value`]: the service's keys, as serialised values;
//! - [`Nearest`]: putting candidates in order again.

pub mod bounds;
pub mod clauses;
mod keys;
mod nearest;
pub mod ordering;
pub mod refill;

pub use keys::key_value;
pub use nearest::Nearest;
