//! The targets of requests, and the searches that they are sent.

pub mod access;
pub mod cql;
pub mod http;
pub mod in_process;
pub mod wire;

use std::sync::Arc;

use annulus_bench::data::{Metric, Vectors};
use clap::Args;

use crate::load::{Done, Failure, Judge, Operation};

/// Names of the keyspace, table, index and columns.
#[derive(Args, Clone, Debug)]
pub struct Names {
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
pub struct Questions {
    /// The queries, which are sent in turn.
    pub queries: Arc<Vectors>,
    /// The judge of the answers.
    pub judge: Arc<Judge>,
    /// The rows that are requested.
    pub k: usize,
    /// The metric of the true neighbours, if it is known.
    pub metric: Option<Metric>,
}

impl Questions {
    /// The position of the query that the `number`th request sends.
    fn query(&self, number: u64) -> usize {
        (number % self.queries.len() as u64) as usize
    }

    /// Adds to `done` the recall of an answer, and whether it has fewer rows than were requested.
    fn judged(&self, query: usize, mut done: Done, mut ids: Vec<i64>) -> Done {
        done.short = ids.len() < self.k;
        done.recall = self.judge.recall(query, &mut ids);
        done
    }
}

/// A worker that searches.
pub enum Searcher {
    /// It searches by the HTTP API.
    Http(http::Searcher),
    /// It searches by `ANN OF`.
    Cql(cql::Searcher),
}

impl Operation for Searcher {
    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        match self {
            Searcher::Http(searcher) => searcher.perform(number).await,
            Searcher::Cql(searcher) => searcher.perform(number).await,
        }
    }
}
