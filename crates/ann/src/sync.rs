//! The primitives of the code that is checked under every interleaving of its threads.
//!
//! Such code takes them from here by `super::sync`. Its test replaces this module by one of the
//! same name with loom's primitives (`tests/epoch_interleavings.rs`).

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
