//! The definition of an index: its name, its class, its target, its options and its metric.
//!
//! CREATE INDEX is checked in the node and in the gateway, the index service reads the same
//! definition from `system_schema.indexes`, and queries go by it. All of them use this crate, so an
//! option has one name, one range and one default.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`SearchClass`] | the class of an index that index services build |
//! | [`definition`] | names, the check of an index, and the statement that makes it |
//! | [`target`] | the columns: checked in CREATE INDEX, and read from the schema |
//! | [`options`] | the table of options: checked in CREATE INDEX, and read as [`VectorOptions`] |
//! | [`full_text`] | the class of full-text indexes, and their options: [`FullTextOptions`] |
//! | [`secondary`] | the target and the options of a secondary index, checked in CREATE INDEX |
//! | [`Analysis`] | the terms of texts in a secondary index |
//! | [`CandidateRule`] | how many candidates the options require |
//! | [`SimilarityFunction`], [`Quantization`] | the options' words, the score of two vectors |
//! | [`score`] | the score of a distance that the index engine gives |
//!
//! The texts of errors are ScyllaDB's where it has them. The crate knows no table: the caller says
//! which names are taken and which column a name means.

#![warn(clippy::unwrap_used)]

mod analysis;
mod ascii_folding;
mod candidates;
mod class;
pub mod definition;
pub mod full_text;
mod metric;
pub mod options;
pub mod score;
pub mod secondary;
pub mod target;

pub use analysis::Analysis;
pub use candidates::CandidateRule;
pub use class::SearchClass;
pub use full_text::{FullTextOptions, TextAnalyzer};
pub use metric::{LENGTH_MAX, Quantization, SimilarityFunction, VectorTooLong};
pub use options::VectorOptions;
pub use secondary::IndexedPart;
