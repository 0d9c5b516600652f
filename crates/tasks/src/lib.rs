//! Long work that can be seen, waited for and stopped.
//!
//! Whoever does the work holds a [`Task`] and tells it how far the work is; everyone else sees the
//! task through the [`Registry`], as a [`Status`]. Tasks form trees: a root stands for the whole
//! operation, its children for parts of it. The terms are those of ScyllaDB's task manager.
//!
//! Three rules:
//!
//! - **Telling is cheap.** Progress and counters are atomics; no lock is taken, nobody is woken.
//! - **Nothing is left running.** A task whose owner goes away without a word has been aborted:
//!   dropping the future that does the work is enough.
//! - **What has ended is forgotten in time.** Whole trees are kept, so many of each kind and of those so
//!   many on one scope ([`Retention`]), and of a task with very many parts the last that ended.
//!
//! An abort is a request: the work looks for it, or does not if it can't be stopped.

mod children;
mod ended;
mod entry;
mod registry;
mod scope;
mod status;
mod task;

pub use registry::{AbortError, Registry, Retention};
pub use scope::{Scope, TokenRange};
pub use status::{State, Status, Tree};
pub use task::{Spec, Task, Teller};
