//! The machine below the index service, as far as simulations stand in for it: the steps of writing
//! files ([`files`]), and whether work that blocks has threads of its own
//! ([`Simulation::of_thread`]). Time has a seam of its own, the crate `clock`.
//!
//! Everywhere but in a simulation the machine's own files and threads are used, and asking costs a
//! look at a flag. A thread that [simulates](Simulation::enter) does everything itself, and its
//! files fail, tear and are lost as a seed decides.

#![warn(clippy::unwrap_used)]

pub mod files;
mod simulation;

pub use simulation::{Entered, Simulation};
