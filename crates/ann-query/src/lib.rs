//! What a nearest-neighbour SELECT may say, what it asks the index service for, and how the answer is understood.
//!
//! ```text
//! SELECT title FROM shop.films ORDER BY v ANN OF ? LIMIT 10
//! ```
//!
//! Whoever answers such statements does the same with them, wherever the rows lie: the embedded node and the gateway
//! before a cluster. Here is what does not depend on where they lie, free of I/O:
//!
//! - [`ordering`]: whether a SELECT is one, and of which column and vector;
//! - [`clauses`]: what such a SELECT must not say, in the words of ScyllaDB;
//! - [`bounds`]: the checks of values that are known only when it is executed;
//! - [`options`]: how many candidates the index's options ask for, and whether they are put in order again;
//! - [`refill`]: how many more are asked for when rows of those named are gone;
//! - [`key_value`]: the service's keys, from what was sent to serialised values;
//! - [`Similarity`] and [`Nearest`]: putting candidates in order again.

pub mod bounds;
pub mod clauses;
mod keys;
mod nearest;
pub mod options;
pub mod ordering;
pub mod refill;
mod similarity;

pub use keys::key_value;
pub use nearest::Nearest;
pub use similarity::Similarity;
