//! Points of backup over stores that fail: nothing that is complete fails to come back, and what a
//! location has is not sent again.

mod faults;
mod faulty;
mod owners;
mod restores;
mod retention;
mod setup;
mod verification;
