//! Long work that can be seen, waited for and stopped.
//!
//! A [`Task`] is held by the code that does the work, and updated with the progress of the work.
//! Everyone else sees the task through the [`TaskRegistry`], as a [`TaskSnapshot`]. Tasks form
//! trees: a root is the whole operation, its children for parts of it. The terms are those of
//! ScyllaDB's task manager. The crate knows no kinds of work: the code that begins a task names its
//! kind ([`TaskSpec`]).
//!
//! Three rules:
//!
//! - **Telling is cheap.** Progress and counters are atomics; no lock is taken, no one is woken.
//! - **Nothing is left running.** A task that its owner drops without telling its end is aborted:
//!   dropping the future that does the work is enough.
//! - **Ended tasks are forgotten in time.** Whole trees are retained, up to a number for each kind,
//!   and of those up to a number for each scope ([`TaskRetention`]). Of a task with very many parts
//!   the last that ended are retained.
//!
//! An abort is a request: the work looks for it, unless it can't be stopped.

#![warn(clippy::unwrap_used)]

mod book;
mod children;
mod ended;
mod entry;
mod registry;
mod retention;
mod scope;
mod spec;
mod status;
mod task;

pub use registry::{AbortError, TaskRegistry};
pub use retention::TaskRetention;
pub use scope::{InclusiveTokenRange, TaskScope};
pub use spec::TaskSpec;
pub use status::{CompletionState, TaskHierarchy, TaskSnapshot};
pub use task::{ProgressReporter, Task};
