//! The index services that answer with neighbours: over sockets, or the one in the same process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use uuid::Uuid;
use value::predicate::Predicate;

use crate::client::{can_restrict_by, filter_of, request_of};
use crate::columns_predicate::ColumnsPredicate;
use crate::types::{Bm25Request, HighlightRequest, MatchesRequest, ScoresRequest};
use crate::vector_search::VectorSearch;
use crate::word_search::{MatchedRows, WordMatches, WordSearch};
use crate::{ClientError, KeyValue, NearestRows, StoreClient, hex};

/// The longest time that a search in this process may take. It equals the default timeout of a
/// request over sockets.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The index services of a CQL node. Cheap to clone; clones share connections and budgets.
#[derive(Clone)]
pub enum IndexServices {
    /// Services over sockets, with failover between them.
    Remote(StoreClient),
    /// A service in this process, where a search is a call.
    Local(Arc<dyn InProcessService>),
}

/// An index service in the same process, which is called directly, not over a socket.
pub trait InProcessService: Send + Sync {
    /// Finds the nearest rows of an index. The values of a key come in the order of the key's
    /// columns, as CQL serialises them.
    ///
    /// An error is the one that the same search would give over HTTP.
    fn search<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: VectorSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>>;

    /// Finds the rows of a full-text index whose texts match a query best, as
    /// [`InProcessService::search`] does the nearest ones. Their scores are in
    /// `similarity_scores`.
    fn search_words<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: WordSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>>;

    /// A page of all rows of a full-text index whose texts match a query.
    fn match_words<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        search: WordMatches,
    ) -> BoxFuture<'a, Result<MatchedRows, ClientError>>;

    /// Excerpts of texts, with the words of a query marked; `None` for a text without any.
    fn highlight<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        query: String,
        documents: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, ClientError>>;

    /// The scores that texts have by the statistics of a full-text index; `None` for a text that
    /// does not match. `tenant` are the conditions on the key of a local index.
    fn score_texts<'a>(
        &'a self,
        keyspace: &'a str,
        index: &'a str,
        query: String,
        tenant: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<f32>>, ClientError>>;

    /// Notes that the node has answered a search of an index by ranking rows, without the index.
    fn ranked_rows(&self, keyspace: &str, index: &str);

    /// Waits until an index of this version, which was just created, can be searched. It waits a
    /// few seconds at most, as the index of a large table takes longer to build.
    fn created<'a>(&'a self, keyspace: &'a str, index: &'a str, version: Uuid)
    -> BoxFuture<'a, ()>;

    /// Whether an index of this version can be searched.
    fn serves(&self, keyspace: &str, index: &str, version: Uuid) -> bool;
}

impl IndexServices {
    /// No services: every search fails with [`ClientError::Disabled`].
    pub fn disabled() -> IndexServices {
        IndexServices::Remote(StoreClient::disabled())
    }

    /// Finds the nearest rows of an index. A search that takes too long fails with
    /// [`ClientError::Aborted`].
    ///
    /// `key_columns` are the names of all columns of the primary key, partition key first. In this
    /// process a column may have got another name since the search was planned.
    pub async fn ann(
        &self,
        keyspace: &str,
        index: &str,
        search: VectorSearch,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        match self {
            IndexServices::Remote(client) => {
                let search = request_of(search);
                client.ann(keyspace, index, &search, key_columns).await
            }
            IndexServices::Local(store) => {
                let found = in_time(store.search(keyspace, index, search)).await?;
                check_keys(&found.keys, key_columns)?;
                Ok(found)
            }
        }
    }

    /// As [`IndexServices::ann`], for no longer than `within`: a service that has not answered by
    /// then is taken to lag the writes that the search must know ([`ClientError::Behind`]).
    pub async fn ann_within(
        &self,
        within: Duration,
        keyspace: &str,
        index: &str,
        search: VectorSearch,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        let asked = self.ann(keyspace, index, search, key_columns);
        answer_within(within, index, asked).await
    }

    /// Whether a search can go by a condition. Over a socket its values need a form in JSON.
    pub fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool {
        match self {
            IndexServices::Remote(_) => can_restrict_by(predicate),
            // An index knows no such conditions.
            IndexServices::Local(_) => !predicate.has(&|leaf| {
                matches!(
                    leaf,
                    ColumnsPredicate::Column {
                        predicate: Predicate::Like(_),
                        ..
                    }
                )
            }),
        }
    }
}

impl IndexServices {
    /// Finds the rows of a full-text index whose texts match a query best. Their scores are in
    /// `similarity_scores`. All else is as with [`IndexServices::ann`].
    pub async fn words(
        &self,
        keyspace: &str,
        index: &str,
        search: WordSearch,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        match self {
            IndexServices::Remote(client) => {
                let request = Bm25Request {
                    limit: search.limit,
                    filter: filter_of(&search.predicates),
                    return_columns: search.return_columns.filter(|names| !names.is_empty()),
                    min_time_us: search.min_time_us,
                    ..Bm25Request::new(search.query, 1)
                };
                client.words(keyspace, index, &request, key_columns).await
            }
            IndexServices::Local(store) => {
                let found = in_time(store.search_words(keyspace, index, search)).await?;
                check_keys(&found.keys, key_columns)?;
                Ok(found)
            }
        }
    }

    /// As [`IndexServices::words`], for no longer than `within`; see
    /// [`IndexServices::ann_within`].
    pub async fn words_within(
        &self,
        within: Duration,
        keyspace: &str,
        index: &str,
        search: WordSearch,
        key_columns: &[&str],
    ) -> Result<NearestRows, ClientError> {
        let asked = self.words(keyspace, index, search, key_columns);
        answer_within(within, index, asked).await
    }

    /// A page of all rows of a full-text index whose texts match a query, in the order of the
    /// index's ids. A page after another comes from the same content of the index, or is refused
    /// with 400.
    pub async fn word_matches(
        &self,
        keyspace: &str,
        index: &str,
        search: WordMatches,
        key_columns: &[&str],
    ) -> Result<MatchedRows, ClientError> {
        match self {
            IndexServices::Remote(client) => {
                let request = MatchesRequest {
                    query: Some(search.query),
                    words: None,
                    limit: search.limit,
                    filter: filter_of(&search.predicates),
                    after: search.after.as_deref().map(hex::write),
                    min_time_us: search.min_time_us,
                };
                let page = client.word_matches(keyspace, index, &request, key_columns);
                page.await
            }
            IndexServices::Local(store) => {
                let page = in_time(store.match_words(keyspace, index, search)).await?;
                check_keys(&page.keys, key_columns)?;
                Ok(page)
            }
        }
    }

    /// Excerpts of texts, with the words of a query marked: one for each text, in their order;
    /// `None` for a text without any of the words. A text is UTF-8.
    pub async fn highlight(
        &self,
        keyspace: &str,
        index: &str,
        query: String,
        documents: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<String>>, ClientError> {
        match self {
            IndexServices::Remote(client) => {
                let request = HighlightRequest {
                    query: Some(query),
                    documents: texts_of(&documents),
                    ..HighlightRequest::default()
                };
                client.highlight(keyspace, index, &request).await
            }
            IndexServices::Local(store) => {
                in_time(store.highlight(keyspace, index, query, documents)).await
            }
        }
    }

    /// The scores that texts have by the statistics of a full-text index: one for each text, in
    /// their order; `None` for a text that does not match. `tenant` are the conditions on the key
    /// of a local index, whose rows alone make up the statistics.
    pub async fn score_texts(
        &self,
        keyspace: &str,
        index: &str,
        query: String,
        tenant: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        match self {
            IndexServices::Remote(client) => {
                let request = ScoresRequest {
                    query: Some(query),
                    words: None,
                    texts: texts_of(&texts),
                    filter: filter_of(&tenant),
                };
                client.score_texts(keyspace, index, &request).await
            }
            IndexServices::Local(store) => {
                in_time(store.score_texts(keyspace, index, query, tenant, texts)).await
            }
        }
    }
}

/// Texts as JSON has them. Bytes that are no text match nothing, as a null does.
fn texts_of(texts: &[Option<Bytes>]) -> Vec<Option<String>> {
    let texts = texts.iter().map(|text| {
        let text = std::str::from_utf8(text.as_ref()?);
        text.ok().map(str::to_owned)
    });
    texts.collect()
}

/// The answer of the service in this process, if it comes in time.
async fn in_time<T>(asked: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    let answer = tokio::time::timeout(LOCAL_TIMEOUT, asked).await;
    answer.unwrap_or(Err(ClientError::Aborted))
}

/// An answer, if it comes `within` the time; otherwise the error for an index that lags.
async fn answer_within<T>(
    within: Duration,
    index: &str,
    asked: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let answer = tokio::time::timeout(within, asked).await;
    answer.unwrap_or_else(|_| {
        Err(ClientError::Behind {
            message: format!("the index {index} lacks the newest writes"),
            behind_us: None,
        })
    })
}

/// Checks that each key has a value for each column.
fn check_keys(keys: &[Vec<KeyValue>], key_columns: &[&str]) -> Result<(), ClientError> {
    match keys.iter().all(|key| key.len() == key_columns.len()) {
        true => Ok(()),
        false => Err(ClientError::InvalidBinary),
    }
}

impl IndexServices {
    /// Whether the service is in this process. It then knows each write of the node's that was
    /// acknowledged before a search, and its answers are exact.
    pub fn are_local(&self) -> bool {
        matches!(self, IndexServices::Local(_))
    }

    /// Notes that a search of an index was answered by ranking rows, without the index. A service
    /// in this process counts it.
    pub fn ranked_rows(&self, keyspace: &str, index: &str) {
        if let IndexServices::Local(store) = self {
            store.ranked_rows(keyspace, index);
        }
    }

    /// Waits until an index that was just created can be searched, if the service is in this
    /// process. See [`InProcessService::created`].
    pub async fn created(&self, keyspace: &str, index: &str, version: Uuid) {
        if let IndexServices::Local(store) = self {
            store.created(keyspace, index, version).await;
        }
    }

    /// Whether an index of this version can be searched, as far as is known without asking over a
    /// socket: false unless the service is in this process.
    pub fn serves(&self, keyspace: &str, index: &str, version: Uuid) -> bool {
        match self {
            IndexServices::Local(store) => store.serves(keyspace, index, version),
            IndexServices::Remote(_) => false,
        }
    }

    /// Waits until an index that was just created can be searched in all services that can be
    /// reached, elsewhere too, but no longer than `within`. See [`StoreClient::created`].
    pub async fn created_everywhere(
        &self,
        keyspace: &str,
        index: &str,
        version: Uuid,
        within: Duration,
    ) {
        match self {
            IndexServices::Remote(client) => {
                client.created(keyspace, index, version, within).await;
            }
            IndexServices::Local(store) => {
                let created = store.created(keyspace, index, version);
                let _ = tokio::time::timeout(within, created).await;
            }
        }
    }
}

impl From<StoreClient> for IndexServices {
    fn from(client: StoreClient) -> IndexServices {
        IndexServices::Remote(client)
    }
}

impl<S: InProcessService + 'static> From<Arc<S>> for IndexServices {
    fn from(store: Arc<S>) -> IndexServices {
        IndexServices::Local(store)
    }
}

impl fmt::Debug for IndexServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexServices::Remote(client) => f.debug_tuple("Remote").field(client).finish(),
            IndexServices::Local(_) => f.debug_struct("Local").finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use value::CqlType;
    use value::predicate::ComparisonOperator;

    use super::*;

    /// A service that finds the elements of the query vector as keys.
    struct Echo;

    impl InProcessService for Echo {
        fn search<'a>(
            &'a self,
            keyspace: &'a str,
            index: &'a str,
            search: VectorSearch,
        ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
            Box::pin(async move {
                if (keyspace, index) != ("ks", "idx") {
                    return Err(ClientError::Unavailable);
                }
                let nearest = search.vector.iter().take(search.limit.get());
                Ok(NearestRows {
                    keys: nearest.clone().map(|element| key(*element)).collect(),
                    similarity_scores: nearest.map(|_| 1.0).collect(),
                    column_values: Vec::new(),
                    is_short: false,
                })
            })
        }

        fn search_words<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            search: WordSearch,
        ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
            Box::pin(async move {
                Ok(NearestRows {
                    keys: vec![key(search.query.len() as f32)],
                    similarity_scores: vec![1.0],
                    column_values: Vec::new(),
                    is_short: false,
                })
            })
        }

        fn match_words<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            search: WordMatches,
        ) -> BoxFuture<'a, Result<MatchedRows, ClientError>> {
            Box::pin(async move {
                Ok(MatchedRows {
                    keys: vec![key(search.limit.get() as f32)],
                    next: search.after,
                    is_short: false,
                })
            })
        }

        fn highlight<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            query: String,
            documents: Vec<Option<Bytes>>,
        ) -> BoxFuture<'a, Result<Vec<Option<String>>, ClientError>> {
            let texts = documents.into_iter();
            let marked = texts.map(|text| text.map(|_| query.clone())).collect();
            Box::pin(async { Ok(marked) })
        }

        fn score_texts<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: String,
            _: Vec<ColumnsPredicate>,
            texts: Vec<Option<Bytes>>,
        ) -> BoxFuture<'a, Result<Vec<Option<f32>>, ClientError>> {
            let texts = texts.into_iter();
            let scores = texts
                .map(|text| text.map(|text| text.len() as f32))
                .collect();
            Box::pin(async { Ok(scores) })
        }

        fn ranked_rows(&self, _: &str, _: &str) {}

        fn created<'a>(&'a self, _: &'a str, _: &'a str, _: Uuid) -> BoxFuture<'a, ()> {
            Box::pin(async {})
        }

        fn serves(&self, _: &str, _: &str, _: Uuid) -> bool {
            true
        }
    }

    fn key(element: f32) -> Vec<KeyValue> {
        vec![KeyValue::Cql(Bytes::copy_from_slice(
            &element.to_be_bytes(),
        ))]
    }

    #[tokio::test]
    async fn a_local_store_is_called() {
        let stores = IndexServices::from(Arc::new(Echo));
        let found = stores.ann(
            "ks",
            "idx",
            VectorSearch::new(vec![1.5, 2.5, 3.5], 2),
            &["id"],
        );
        assert_eq!(found.await.unwrap().keys, [key(1.5), key(2.5)]);
        let one = || VectorSearch::new(vec![1.5], 1);
        // The column may have got another name meanwhile.
        let renamed = stores.ann("ks", "idx", one(), &["key"]).await;
        assert_eq!(renamed.unwrap().keys, [key(1.5)]);
        let more_columns = stores.ann("ks", "idx", one(), &["key", "more"]).await;
        assert_eq!(more_columns, Err(ClientError::InvalidBinary));
        let elsewhere = stores.ann("ks", "other", one(), &["id"]).await;
        assert_eq!(elsewhere, Err(ClientError::Unavailable));
        let disabled = IndexServices::disabled();
        let nobody = disabled.ann("ks", "idx", one(), &["id"]).await;
        assert_eq!(nobody, Err(ClientError::Disabled));
    }

    #[tokio::test]
    async fn a_local_store_is_called_for_words() {
        let stores = IndexServices::from(Arc::new(Echo));
        let search = WordSearch::new("fox", 1);
        let found = stores.words("ks", "idx", search.clone(), &["id"]).await;
        assert_eq!(found.unwrap().keys, [key(3.0)]);
        let more_columns = stores.words("ks", "idx", search, &["id", "more"]).await;
        assert_eq!(more_columns, Err(ClientError::InvalidBinary));
        let page = WordMatches {
            after: Some(Bytes::from_static(&[7])),
            ..WordMatches::new("fox", 2)
        };
        let page = stores.word_matches("ks", "idx", page, &["id"]).await;
        let page = page.unwrap();
        assert_eq!(page.keys, [key(2.0)]);
        assert_eq!(page.next, Some(Bytes::from_static(&[7])));
        let texts = vec![None, Some(Bytes::from_static(b"ab"))];
        let marked = stores.highlight("ks", "idx", "q".to_owned(), texts.clone());
        assert_eq!(marked.await.unwrap(), [None, Some("q".to_owned())]);
        let scores = stores.score_texts("ks", "idx", "q".to_owned(), Vec::new(), texts);
        assert_eq!(scores.await.unwrap(), [None, Some(2.0)]);
    }

    #[test]
    fn a_value_without_a_form_in_json_is_searched_by_in_one_process_alone() {
        let (here, there) = (
            IndexServices::from(Arc::new(Echo)),
            IndexServices::disabled(),
        );
        let equal = |cql_type, value: &'static [u8]| ColumnsPredicate::Column {
            column: "c".to_owned(),
            predicate: Predicate::Compare {
                cql_type,
                comparison: ComparisonOperator::Eq,
                value: Bytes::from_static(value),
            },
        };
        let seven = equal(CqlType::Int, &[0, 0, 0, 7]);
        assert!(here.can_search_by(&seven) && there.can_search_by(&seven));
        let nan = equal(CqlType::Float, &[0xff; 4]);
        assert!(here.can_search_by(&nan) && !there.can_search_by(&nan));
    }
}
