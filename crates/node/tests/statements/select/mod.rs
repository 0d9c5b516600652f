//! SELECT on a real storage: statements in, rows and errors out.

mod aggregates;
mod ann;
mod ann_filters;
mod ann_moved;
mod cdc_log;
mod collections;
mod fake_store;
mod functions;
mod hybrid;
mod local_indexes;
mod metadata;
mod misuse;
mod ordering;
mod paging;
mod plans;
mod restrictions;
mod secondary_indexes;
mod statics;
mod system_tables;
mod times;
