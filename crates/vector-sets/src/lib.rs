//! Made vectors of many kinds, for tests and benchmarks of the vector index.
//!
//! [`catalogue()`] lists the kinds. Each can be made in any number, with queries that are not among
//! the vectors, and is the same for the same seed to the last bit on every machine. Some kinds
//! start from real vectors, which the caller reads from where they are ([`RealSamples`]); without
//! them these kinds start from something like them.
//!
//! ```
//! let faces = vector_sets::find("faces").expect("a kind");
//! let made = faces.make(1, 600, 10, &vector_sets::RealSamples::default());
//! assert_eq!((made.rows(), made.dimensions), (600, 512));
//! ```

#![warn(clippy::unwrap_used)]

mod arithmetic;
mod catalogue;
mod changes;
mod draw;
mod random;
mod recipes;
mod set;

pub use catalogue::{catalogue, find};
pub use changes::{ChurnPattern, VectorChange};
pub use draw::{ExistingVectors, RealSamples};
pub use random::SplitMixGenerator;
pub use recipes::digits::DIMENSIONS as DIGIT_DIMENSIONS;
pub use recipes::texts::DIMENSIONS as TEXT_DIMENSIONS;
pub use set::{GeneratedSet, NeighbourMetric, RemainingVectors, VectorSet};
