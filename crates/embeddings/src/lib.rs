//! Embeddings of texts, from a server of OpenAI's form: `POST` of `{"model", "input": [text]}`,
//! which answers `{"data": [{"index", "embedding"}]}`.
//!
//! Each request has a connection of its own, so that nothing is open while no text comes. An import
//! waits for slow models and tries again; a server that answers a user does neither
//! ([`EmbedderLimits`]).

#![warn(clippy::unwrap_used)]

mod answer;
mod embedder;
mod options;

pub use embedder::TextEmbedder;
pub use options::{EmbedderError, EmbedderLimits, EmbedderOptions};
