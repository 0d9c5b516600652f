//! Approximate nearest neighbours: a concurrent index over vectors with dense `u32` ids.
//!
//! The library knows nothing of keys, rows, sockets or a runtime. The owner of an
//! [`NeighbourIndex`] maps its own keys to ids, as dense as can be: the index keeps four bytes for
//! every id, in chunks of 65,536 that exist where ids do.
//!
//! ```
//! use ann::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions};
//!
//! let options = NeighbourIndexOptions::new(2);
//! let metric = DistanceMetric::Euclidean;
//! let index = NeighbourIndex::new(NeighbourIndexOptions { metric, ..options })?;
//! index.insert(0, &[0.0, 0.0])?;
//! index.insert(1, &[3.0, 4.0])?;
//! let found = index.search(&[3.0, 3.0], 1)?;
//! assert_eq!((found[0].id, found[0].distance), (1, 1.0));
//! # Ok::<(), ann::IndexError>(())
//! ```
//!
//! # Guarantees of an answer
//!
//! - **Distances are exact.** The graph only proposes; each answer is measured again in `f64` from
//!   the stored vector, so an index of full floats agrees with the formulas of [`DistanceMetric`]
//!   to the last bit or so of an `f32`, whichever way it was searched. Distances are finite, and a
//!   cosine distance of two directions is in [0, 2].
//! - **Answers are complete in number.** A search returns `k` vectors if the index holds as many.
//!   With `k` at or above the count, or a large share of it, every vector is measured, and the
//!   answer is exact.
//! - **The nearest are found with recall@k of about 0.99 and better** at the default options, on
//!   the 47 kinds of data of `make bench-recall`. A smaller [width](SearchOptions::beam) trades
//!   recall for speed. An index of a few thousand vectors is scanned by its codes, without a walk.
//! - **Exact answers by request** ([`SearchOptions::exact`]): the true nearest, proven by bounds of
//!   the codes' errors.
//! - **Zero vectors** have no direction. Under [`DistanceMetric::Cosine`] they come after all
//!   others: their distance is the float after 2, the largest of others. A query of zeros has the
//!   distance 0 to them and 1 to all others. They are stored outside the graph.
//!
//! # How it works
//!
//! Vectors are stored twice. A compact *code* of each, by default of 4 bits a dimension, is in
//! memory next to the vector's links in a graph (`graph`, `codes`). A search finds a start in an
//! upper level of one vector in 32, and walks the graph from there by distances estimated from
//! codes. It ends when all that is left to look at is farther, by some factor, than the nearest it
//! has found; the index learns the factor from its data. The full vector is in a mapped file, or in
//! memory too ([`VectorPlacement`]), and only the last candidates are measured from it. The first
//! 512 vectors train the codes; up to then every search is a scan.
//!
//! # Any data
//!
//! Three things follow from the data:
//!
//! - **What is measured.** Each code knows its error. A search measures the full vectors of all
//!   candidates that may be among the nearest for all that the errors tell, and walks on where its
//!   last candidates are still in doubt.
//! - **What codes are taken from.** The error of a code grows with the vector's distance from the
//!   centre that it is taken from. Where vectors are much nearer to one another than to any centre,
//!   a new centre comes up (`codes::centres`).
//! - **How wide walks are.** One change in some hundred is a sample, which compares walks with a
//!   scan. [`NeighbourIndex::calibration`] has what was found, and walks are as wide as it takes,
//!   up to twelve times the default. Where a scan of all codes costs less, it takes the walk's
//!   place.
//!
//! The dot product is no metric. Its links are chosen by products, so that walks climb to the
//! largest from anywhere.
//!
//! # Filters
//!
//! A filter that admits few is answered only from the codes of the admitted. For one that admits
//! more, the walk passes through any vectors and keeps the admitted ones; it looks as far as a walk
//! for as many of all as are nearer than the last one wanted ([`IdFilter`]). A walk that takes
//! longer than the scan would is given up for it, and one that leaves in doubt all that it has
//! found looks for more. A scan measures every vector that may be among the nearest for all that
//! the codes tell, and these are thousands where what a filter admits begins in the midst of the
//! vectors.
//!
//! To leave out a few ids, request as many more and drop them: this costs less than a filter.
//!
//! # Concurrency
//!
//! Everything may be called from any number of threads at once. Searches wait for nothing: a vector
//! that is replaced or removed stays readable for the searches that may have seen it, and its place
//! is used again when they have ended (`epoch`). Changes of different ids run side by side; those
//! of one id happen one after the other. Only training, once in the life of an index, stops changes
//! for a moment. Replaced and removed vectors are mended out of the graph a few links with every
//! change. [`NeighbourIndex::maintain`] does this work without changes, and renews codes and links,
//! one vector after the other, after a quarter of the vectors has changed. Built by one thread in a
//! given order, an index is always the same.
//!
//! # Snapshots
//!
//! [`NeighbourIndex::save`] writes an index into files while it is searched and changed.
//! [`NeighbourIndex::open`] reads graph and codes back, verifies them, maps the full vectors, and
//! answers at once. [`NeighbourIndex::verify_vectors`] verifies the full vectors in the background,
//! and [`NeighbourIndex::vectors_state`] returns how far that is.
//!
//! # Known limits
//!
//! - Vectors that fill hundreds of dimensions, as random ones do, have no structure that a walk
//!   could follow. Beyond some hundred thousand of them a walk of the greatest width finds less
//!   than 0.99, and a scan takes long.
//! - Memory of removed vectors is used again, but not returned to the system before the index is
//!   dropped.
//! - An index has at most 2,147,483,647 slots.

#![warn(clippy::unwrap_used)]

mod answer;
#[cfg(test)]
mod baseline;
mod calibration;
mod codes;
mod dirty_segments;
mod epoch;
mod error;
mod file_map;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod graph;
mod id_set;
mod ids;
mod kernels;
mod maintenance;
mod memory;
mod memory_use;
mod metric;
mod moves;
mod nearest;
mod neighbour_index;
mod open;
mod options;
mod plan;
mod prepared;
mod renewal;
mod save;
mod search;
mod search_execution;
mod sharers;
mod snapshot;
mod sync;
mod vectors;
mod verification;

pub use calibration::Calibration;
pub use error::IndexError;
pub use file_map::FileMap;
pub use form::first_not_finite;
pub use id_set::IdSet;
pub use maintenance::MaintenanceDebt;
pub use memory_use::ComponentMemory;
pub use metric::DistanceMetric;
pub use nearest::Neighbour;
pub use neighbour_index::NeighbourIndex;
pub use options::{
    CodeChoice, NeighbourIndexOptions, OptionOutOfRange, VectorPlacement, VectorQuantization,
};
pub use prepared::IndexableVector;
pub use save::{SaveProgress, SnapshotSummary};
pub use search::{AccessPath, Explanation, IdFilter, SearchOptions};
pub use snapshot::{SnapshotError, check_snapshot};
pub use verification::VectorsState;

/// The name of the instruction set that distances are computed with: `avx512`, `avx2`, `neon` or
/// `scalar`. It is the best that this processor has, or a lesser one that the environment variable
/// `ANN_KERNELS` names.
pub fn kernels_name() -> &'static str {
    kernels::kernels().name
}
