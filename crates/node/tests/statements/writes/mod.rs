//! INSERT, UPDATE, DELETE, BATCH and TRUNCATE, from text to what is read afterwards.

mod arbitrary_values;
mod batches;
mod collections;
mod conditional;
mod counters;
mod deletes;
mod inserts;
mod linear;
mod log;
mod markers;
mod protected;
mod refused;
mod timestamps;
mod updates;
