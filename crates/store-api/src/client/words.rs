//! The requests for full-text indexes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{ExpectedColumns, matched, neighbours};
use super::outgoing::RequestContent;
use super::{NearestRows, StoreClient, index_path};
use crate::types::{
    Bm25Request, HighlightRequest, HighlightResponse, MatchesRequest, ScoresRequest, ScoresResponse,
};
use crate::{ClientError, MatchedRows};

impl StoreClient {
    /// Finds the rows of an index whose texts match a query best.
    ///
    /// `key_columns` are the names of all columns of the primary key, partition key first.
    pub async fn words(
        &self,
        keyspace: &str,
        index: &str,
        search: &Bm25Request,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        let path = index_path(keyspace, index, "bm25");
        let answer = self.request(path, query(search, true)).await?;
        let returned = search.return_columns.as_ref();
        neighbours(answer, ExpectedColumns::of(returned, key_columns))
    }

    /// A page of all rows of an index whose texts match a query.
    pub async fn word_matches(
        &self,
        keyspace: &str,
        index: &str,
        search: &MatchesRequest,
        key_columns: &[&str],
    ) -> Result<MatchedRows, ClientError> {
        let path = index_path(keyspace, index, "matches");
        let answer = self.request(path, query(search, false)).await?;
        let page = matched(&answer.body, key_columns)?;
        let is_short = page.is_short || answer.is_short;
        Ok(MatchedRows { is_short, ..page })
    }

    /// Excerpts of texts, with the words of a query marked: one for each text, in their order.
    pub async fn highlight(
        &self,
        keyspace: &str,
        index: &str,
        request: &HighlightRequest,
    ) -> Result<Vec<Option<String>>, ClientError> {
        let answer = self.answer_of(keyspace, index, "highlight", request);
        let HighlightResponse { highlights } = answer.await?;
        all_of(highlights, request.documents.len())
    }

    /// The scores that texts have by the statistics of an index: one for each text, in their order.
    pub async fn score_texts(
        &self,
        keyspace: &str,
        index: &str,
        request: &ScoresRequest,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        let answer = self.answer_of(keyspace, index, "scores", request);
        let ScoresResponse { scores } = answer.await?;
        all_of(scores, request.texts.len())
    }

    async fn answer_of<T: DeserializeOwned>(
        &self,
        keyspace: &str,
        index: &str,
        what: &str,
        request: &impl Serialize,
    ) -> Result<T, ClientError> {
        let path = index_path(keyspace, index, what);
        let answer = self.request(path, query(request, false)).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }
}

fn query(request: &impl Serialize, has_rows: bool) -> RequestContent<'static> {
    let body = serde_json::to_vec(request);
    RequestContent::Query {
        body: body
            .expect("a request has no maps with keys that are no text")
            .into(),
        has_rows,
    }
}

/// The parts of an answer, of which there must be so many.
fn all_of<T>(parts: Vec<T>, count: usize) -> Result<Vec<T>, ClientError> {
    match parts.len() == count {
        true => Ok(parts),
        false => Err(ClientError::InvalidJson),
    }
}
