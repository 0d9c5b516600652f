//! The entries of secondary indexes: those that a record has, and the faults among those that are
//! stored.

mod faults;
mod terms;

pub(crate) use faults::{IndexFault, SuspectKey, of_entry, of_row};
pub(crate) use terms::{changed_terms, entries_of, terms};
