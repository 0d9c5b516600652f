//! The machine below the index service and the node, as far as simulations replace it: the steps of
//! writing files ([`files`]), the directories of snapshots ([`OpenDirectory`]), and the threads of
//! work that blocks (`aside`, a feature, as it needs a runtime). Time has a seam of its own, the
//! crate `clock`.
//!
//! Everywhere but in a simulation the machine's own files and threads are used, and asking costs a
//! look at a flag. A thread that [simulates](Simulation::enter) does everything itself, and its
//! files fail, tear and are lost as a seed decides.

#![warn(clippy::unwrap_used)]

#[cfg(feature = "aside")]
mod aside;
mod directory;
pub mod files;
mod simulation;

#[cfg(feature = "aside")]
pub use aside::aside;
pub use directory::OpenDirectory;
pub use simulation::{SimulatedThreadGuard, Simulation};
