//! Approximate nearest neighbours: a concurrent index over vectors with dense `u32` ids.
//!
//! The library knows nothing of keys, rows, sockets or a runtime. Whoever owns an [`Index`] maps
//! its own keys to ids, as dense as can be: the index keeps a bit for every id up to the largest,
//! in pages of 65,536.
//!
//! ```
//! use ann::{Index, Metric, Options};
//!
//! let index = Index::new(Options { metric: Metric::Euclidean, ..Options::new(2) })?;
//! index.insert(0, &[0.0, 0.0])?;
//! index.insert(1, &[3.0, 4.0])?;
//! let found = index.search(&[3.0, 3.0], 1)?;
//! assert_eq!((found[0].id, found[0].distance), (1, 1.0));
//! # Ok::<(), ann::Error>(())
//! ```
//!
//! # What an answer is worth
//!
//! - **Distances are exact.** The graph only proposes; each answer is measured again in `f64` from
//!   the vector kept, so an index of full floats agrees with the formulas of [`Metric`] to the last
//!   bit or so of an `f32`, whichever way it was searched. Distances are finite, and a cosine
//!   distance is in [0, 2].
//! - **Answers are complete in number.** A search returns `k` vectors if the index holds as many.
//!   With `k` at or above the count, or a large share of it, every vector is measured, and the
//!   answer is exact.
//! - **The nearest are found with recall@k of 0.99 and better** at the default options. On 10,000
//!   film descriptions and 50,000 dictionary senses, embedded in 384 dimensions, it is 0.996 to 1
//!   for `k` from 1 to 1,000, and no less after each film has been replaced ten times. A width of
//!   64 alone would give 0.975 on the films, so walks are at least `192 + 2k` wide, and
//!   [`Options::search_beam_width`] matters above that. A thousand vectors are scanned, exactly.
//! - **Zero vectors** have no direction, and under [`Metric::Cosine`] the distance 1 to everything.
//!   They are kept beside the graph and take part in every answer.
//!
//! # Concurrency
//!
//! Searches run in parallel, one for each core; more callers wait their turn. Inserts, replacements
//! and removals may come from any thread and are applied one at a time, each while no search runs.
//! Why the engine inside needs that is told where it is wrapped, in `graph.rs`. An insert holds the
//! index for about 0.3 ms at 384 dimensions.
//!
//! # Snapshots
//!
//! [`Index::save`] writes an index into files while it is searched and changed, [`Index::open`] reads graph and
//! codes back, verified, maps the full vectors, and answers at once; [`Index::verify_vectors`] verifies these
//! in the background, and [`Index::vectors_state`] says how far it is.
//!
//! # Known limits
//!
//! - Where one vector occurs hundreds of times in a large index, its copies link mostly to each
//!   other, and recall of their surroundings suffers: 0.97 on the films if the first 500 are alike.
//! - The dot product is no metric: with lengths that differ much, the graph finds less than with
//!   the other three. Vectors of one length are as well served as by the cosine.
//! - Replacing and removing costs memory for a while: up to as much as the vectors held take, and
//!   that much again, and a little more, while the index clears up behind itself.
//! - Searches and changes of half floats are several times slower than of the other forms.

mod answer;
mod codes;
mod epoch;
mod error;
mod form;
mod graph;
mod id_set;
mod ids;
mod index;
mod kernels;
mod memory;
mod memory_use;
mod metric;
mod moves;
mod nearest;
mod open;
mod options;
mod plan;
mod query;
mod save;
mod search;
mod snapshot;
mod sync;
mod vectors;
mod verification;
mod written;

pub use error::Error;
pub use id_set::IdSet;
pub use index::Index;
pub use memory_use::Memory;
pub use metric::Metric;
pub use nearest::Neighbour;
pub use options::{Codes, OptionOutOfRange, Options, Placement, Quantization};
pub use save::Saved;
pub use search::{Explanation, Filter, SearchOptions, Way};
pub use snapshot::SnapshotError;
pub use verification::VectorsState;

/// The instruction set that distances are computed with: `avx512`, `avx2`, `neon` or `scalar`. The
/// best this processor has; the environment variable `ANN_KERNELS` names a lesser one.
pub fn kernels_name() -> &'static str {
    kernels::kernels().name
}
