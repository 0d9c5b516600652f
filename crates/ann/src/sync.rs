//! The primitives of the code that is checked under every interleaving.
//!
//! Such code takes them from here by `super::sync`, and its test puts a module of the same name
//! with loom's primitives in the place of this one (`tests/epoch_interleavings.rs`).

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
