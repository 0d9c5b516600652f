//! The targets of requests, and the searches that they are sent.

pub mod access;
pub mod cql_server;
pub mod http_server;
pub mod in_process;
pub mod wire;

use std::sync::Arc;

use annulus_bench::data::{SimilarityMetric, VectorRows};
use clap::Args;

use crate::load::{AnswerJudge, AnsweredRequest, RepeatedRequest, RequestFailure};

/// Names of the keyspace, table, index and columns.
#[derive(Args, Clone, Debug)]
pub struct TableNames {
    /// Keyspace
    #[arg(long, default_value = "bench")]
    pub keyspace: String,
    /// Table: `id bigint PRIMARY KEY, v vector<float, n>`
    #[arg(long, default_value = "vectors")]
    pub table: String,
    /// Index on the table's vectors
    #[arg(long, default_value = "vectors_v")]
    pub index: String,
    /// Column of the primary key
    #[arg(long, default_value = "id")]
    pub key_column: String,
    /// Column of the vectors
    #[arg(long, default_value = "v")]
    pub vector_column: String,
}

/// The queries that are sent again and again, with the judge of their answers.
#[derive(Clone, Debug)]
pub struct SearchQueries {
    /// The queries, which are sent in turn.
    pub queries: Arc<VectorRows>,
    /// The judge of the answers.
    pub judge: Arc<AnswerJudge>,
    /// The rows that are requested.
    pub k: usize,
    /// The metric of the true neighbours, if it is known.
    pub metric: Option<SimilarityMetric>,
}

impl SearchQueries {
    /// The position of the query that the `number`th request sends.
    fn query(&self, number: u64) -> usize {
        (number % self.queries.len() as u64) as usize
    }

    /// Adds to `done` the recall of an answer, and whether it has fewer rows than were requested.
    fn judged(
        &self,
        query: usize,
        mut done: AnsweredRequest,
        mut ids: Vec<i64>,
    ) -> AnsweredRequest {
        done.short = ids.len() < self.k;
        done.recall = self.judge.recall(query, &mut ids);
        done
    }
}

/// A worker that searches.
pub enum SearchWorker {
    /// It searches by the HTTP API.
    Http(http_server::ApiSearcher),
    /// It searches by `ANN OF`.
    Cql(cql_server::StatementSearcher),
}

impl RepeatedRequest for SearchWorker {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        match self {
            SearchWorker::Http(searcher) => searcher.perform(number).await,
            SearchWorker::Cql(searcher) => searcher.perform(number).await,
        }
    }
}
