//! The HTTP API of the index service: its types and its client.

/// Asks index services for neighbours. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {}

/// An `/ann` answer, reduced to what a CQL node needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// For each row, nearest first: the primary key columns' values as JSON, in the order asked for.
    pub keys: Vec<Vec<serde_json::Value>>,
    /// Higher is nearer.
    pub similarity_scores: Vec<f32>,
}

/// Why there is no answer; `Display` is the text that the CQL user sees (contract, section 2.3).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    #[error("Vector Store is disabled")]
    Disabled,
    #[error("Vector Store request was aborted")]
    Aborted,
    #[error("Vector Store service is unavailable")]
    Unavailable,
    #[error("Vector Store error: HTTP status {status}, message: {message}")]
    Status {
        /// Code and reason, as `404 Not Found`.
        status: String,
        message: String,
    },
    #[error("Vector Store returned an invalid JSON")]
    InvalidJson,
}

impl Client {
    /// The up to `limit` nearest rows of an index.
    ///
    /// `key_columns`: every column of the primary key, partition key first.
    pub async fn ann(
        &self,
        keyspace: &str,
        index: &str,
        vector: &[f32],
        limit: usize,
        key_columns: &[&str],
    ) -> Result<Neighbours, ClientError> {
        let _ = (keyspace, index, vector, limit, key_columns);
        std::future::ready(()).await;
        todo!()
    }
}
