//! The parts that the contenders of the benchmark have in common.
//!
//! Every contender runs in a process of its own, for three reasons. Its memory shows in the figures
//! of its own process only. Each can be compiled and started with what suits it best (`diskann`
//! needs its instruction set at compile time, Annulus takes `ANN_KERNELS` from the environment). A
//! pause of one does not show in another's processor time. The benchmark sends one [`Request`] at a
//! time, so contenders take turns and never run side by side.
//!
//! - [`DataSet`]: vectors, queries and true neighbours, memory-mapped and shared by all processes.
//! - [`Contender`]: the interface of an index that takes part.
//! - [`Request`], [`Reply`] and [`serve`]: the messages between the processes, a line of JSON each.
//! - [`Stopwatch`] and [`anonymous_bytes`]: processor time, time by the clock, and memory that must
//!   stay in RAM.

mod clock;
mod data_set;
mod index;
mod process;
mod protocol;
mod serve;

pub use clock::{Elapsed, Stopwatch};
pub use data_set::{
    DataSet, Description, Kind, Metric, NEIGHBOURS, Vectors, write_floats, write_ids,
};
pub use index::{Contender, Effort, Memory, Width, insert_all};
pub use process::anonymous_bytes;
pub use protocol::{Built, Pick, Reply, Request, Searched};
pub use serve::{build, search, serve};
