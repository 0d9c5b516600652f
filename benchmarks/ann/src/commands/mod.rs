//! What the program does, one command a file.

pub mod compare;
pub mod curve;
pub mod data;
mod tables;
