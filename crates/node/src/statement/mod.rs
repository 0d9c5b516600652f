//! The parts that statements of all kinds share: the values and the role that they come with, their
//! answers, their errors, and the time that they may take.

mod actor;
mod added_condition;
mod answer;
pub(crate) mod consistency;
pub(crate) mod deadline;
mod failure;
mod names;
mod parameters;
mod presence;
mod timeouts;

pub use actor::{Actor, LoggedInRole};
pub use added_condition::AddedCondition;
pub use answer::{
    CatalogChange, CatalogChangeKind, ChangedObject, ExecutionOutcome, ExecutionResult, ResultRows,
};
pub use cql::wire::{BoundValue, ColumnSpec};
pub(crate) use failure::{answer_memory_error, storage_error};
pub(crate) use names::keyspace_name;
pub use parameters::ExecutionParameters;
pub use presence::ClientPresence;
pub use timeouts::DefaultTimeouts;
