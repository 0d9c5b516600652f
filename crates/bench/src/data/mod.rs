//! Data sets: vectors to be searched, queries, and the queries' true neighbours.
//!
//! Every format is read into an [`NumberArray`] by a file of its own. [`ArraySource`] picks the
//! format. [`DataArguments`] finds the three arrays of a set by the names that are usual for them,
//! and computes the true neighbours if they are missing.

mod arguments;
mod array;
mod bin;
mod cache;
mod describe;
mod exact;
mod hdf5;
mod lift;
mod locate;
mod npy;
mod numbered;
mod parquet;
mod source;
mod vecs;

pub use arguments::{DataArguments, SearchSet};
pub use array::{NumberArray, NumberValues, TrueNeighbours, VectorRows};
pub use describe::describe;
pub use exact::{SimilarityMetric, nearest};
pub use lift::Lift;
pub use source::{ArrayRole, ArraySource};
