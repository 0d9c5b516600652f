//! The rows that a write leaves in the CDC log of its table, committed in the same batch.
//!
//! The changes of one write to one partition with one timestamp are a *group*: one stream, one
//! `cdc$time`, and `cdc$batch_seq_no` counting from 0. Within a group come the pre-images, then the
//! changes, then the post-images, and the last row says `cdc$end_of_batch`.

mod gate;
mod rows;
mod time;

pub(crate) use gate::CdcGate;
pub(crate) use rows::{DeleteFate, ImageRow, LogRowGroup, RowImages, WriteOrigin};
pub use time::AHEAD_MAX_MICROS;
pub(crate) use time::{CdcClock, GroupTime};
