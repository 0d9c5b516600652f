//! The index services that answer with neighbours: over sockets, or the one in the same process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;
use value::predicate::Predicate;

use crate::client::{request_of, restriction};
use crate::columns_predicate::ColumnsPredicate;
use crate::vector_search::VectorSearch;
use crate::{ClientError, NearestRows, StoreClient};

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
                let search = store.search(keyspace, index, search);
                let answer = tokio::time::timeout(LOCAL_TIMEOUT, search).await;
                let found = answer.unwrap_or(Err(ClientError::Aborted))?;
                let is_whole = |key: &Vec<_>| key.len() == key_columns.len();
                match found.keys.iter().all(is_whole) {
                    true => Ok(found),
                    false => Err(ClientError::InvalidBinary),
                }
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
        let asked = tokio::time::timeout(within, asked).await;
        asked.unwrap_or_else(|_| {
            Err(ClientError::Behind {
                message: format!("the index {index} lacks the newest writes"),
                behind_us: None,
            })
        })
    }

    /// Whether a search can go by a condition. Over a socket its values need a form in JSON.
    pub fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool {
        match self {
            IndexServices::Remote(_) => restriction(predicate).is_some(),
            // An index knows no such conditions.
            IndexServices::Local(_) => !matches!(
                predicate,
                ColumnsPredicate::Column {
                    predicate: Predicate::NotEqual { .. } | Predicate::Like(_),
                    ..
                }
            ),
        }
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
    use bytes::Bytes;
    use value::CqlType;
    use value::predicate::ComparisonOperator;

    use super::*;
    use crate::KeyValue;

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
