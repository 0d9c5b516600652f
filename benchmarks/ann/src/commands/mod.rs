//! The commands of the program, a file for each.

pub mod churn;
pub mod compare;
pub mod curve;
pub mod data;
pub mod filtered;
pub mod growth;
pub mod limits;
pub mod open;
pub mod recall;
mod tables;
