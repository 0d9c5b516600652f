//! The server of embeddings, as flags and settings name it, and how long it may take.

use std::path::PathBuf;
use std::time::Duration;

use credentials::FileError;

/// A server of embeddings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// Its URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// The file with the key of its API.
    pub key_file: Option<PathBuf>,
    /// The authorities of its certificate.
    pub authorities: Option<PathBuf>,
    /// The bounds of a request.
    pub limits: EmbedderLimits,
}

impl EmbedderOptions {
    /// The model that is requested where none is named.
    pub const MODEL: &'static str = "text-embedding-3-small";
}

/// The bounds of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedderLimits {
    /// The longest time that an answer may take.
    pub answer_within: Duration,
    /// The longest answer, in bytes.
    pub answer_bytes_max: usize,
    /// How often a request is sent to a server that is busy or away.
    pub tries: u32,
}

impl EmbedderLimits {
    /// The bounds of an import: models on a processor are slow, and what has begun is to end well.
    pub const OF_AN_IMPORT: EmbedderLimits = EmbedderLimits {
        answer_within: Duration::from_secs(120),
        // 64 vectors of the most dimensions as text.
        answer_bytes_max: 64 << 20,
        tries: 6,
    };

    /// The bounds of a request that a user waits for.
    pub const OF_A_USER: EmbedderLimits = EmbedderLimits {
        answer_within: Duration::from_secs(30),
        // 16 vectors of 16,000 dimensions as text.
        answer_bytes_max: 8 << 20,
        tries: 1,
    };
}

/// The reason why there are no embeddings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderError {
    /// The options can't be used.
    #[error("{0}")]
    Options(String),
    /// A file that the options name can't be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The server can't be reached, refuses the texts, or answers something else.
    #[error("{0}")]
    Server(String),
}
