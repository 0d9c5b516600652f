//! Reads the rows that the index holds, by token range and by key.
//!
//! Keys are stored by id, not by token. So a repair goes over all ids once, computes the token of
//! each key and sorts the tokens. This takes 16 bytes a row while the repair runs, and a fraction
//! of a second for a million rows. The list lacks rows that are added later. A range with such rows
//! differs at first, and is then compared row by row, by key. The list is made again from time to
//! time, so that this stays rare.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use platform::aside;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::digest::{RowFingerprint, RowSetDigest};
use crate::identity::TokenRange;
use crate::indexes::IndexHandle;
use crate::items::{KnownRow, ValueHasher};
use crate::keys::PrimaryKey;
use crate::keys::token;
use crate::message::IndexMessage;

/// The number of ids that are read while changes of keys wait: about 0.1 ms.
const IDS_AT_A_TIME: usize = 1024;

/// The number of keys in one request. The task that owns the rows is held up for about 0.2 ms.
const KEYS_AT_A_TIME: usize = 1024;

/// The list of tokens is made again at this age, or at that of [`LIST_AGE_IN_MAKING`] if that is
/// longer.
const LIST_AGE_MIN: Duration = Duration::from_secs(60);

/// The age of a list in multiples of the time that making it took; see [`LIST_AGE_MIN`].
const LIST_AGE_IN_MAKING: u32 = 50;

/// The index no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexDropped;

/// The index's side of a comparison.
pub(super) struct IndexSide {
    index: Arc<IndexHandle>,
    items: mpsc::WeakSender<IndexMessage>,
    hashing: ValueHasher,
    /// Hashes the rows of digests.
    hasher: RandomState,
    /// The current list. Its lock is held while a list is made, so all ranges that are compared
    /// meanwhile wait for it.
    list: Mutex<Option<Arc<TokenList>>>,
}

/// The list of tokens, with the ids of their rows.
struct TokenList {
    made: Instant,
    took: Duration,
    /// The token and the id of each row, sorted.
    tokens: Vec<(i64, u32)>,
}

impl IndexSide {
    /// The side of `index`. `items` leads to the task that owns the rows. Fails if the index was
    /// dropped.
    pub(super) async fn new(
        index: Arc<IndexHandle>,
        items: mpsc::WeakSender<IndexMessage>,
    ) -> Result<IndexSide, IndexDropped> {
        let (_, hashing) = ask(&items, Vec::new()).await?;
        Ok(IndexSide {
            index,
            items,
            hashing,
            hasher: RandomState::new(),
            list: Mutex::new(None),
        })
    }

    /// The hashing of vectors and the hasher of digests that the table's side has to use.
    pub(super) fn hashing(&self) -> (ValueHasher, RandomState) {
        (self.hashing.clone(), self.hasher.clone())
    }

    /// Returns the index's knowledge of the rows of these keys, in their order. `None` for a row
    /// that it doesn't know.
    pub(super) async fn known(
        &self,
        keys: &[PrimaryKey],
    ) -> Result<Vec<Option<KnownRow>>, IndexDropped> {
        let mut known = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_A_TIME) {
            known.append(&mut ask(&self.items, keys.to_vec()).await?.0);
        }
        Ok(known)
    }

    /// Returns the digest of the rows that the index holds in a range.
    pub(super) async fn digest(&self, range: TokenRange) -> Result<RowSetDigest, IndexDropped> {
        let keys = self.keys(range).await;
        let known = self.known(&keys).await?;
        let mut digest = RowSetDigest::default();
        for (key, known) in keys.iter().zip(known) {
            if let Some(known) = known {
                digest.add(&self.hasher, key, fingerprint(&known));
            }
        }
        Ok(digest)
    }

    /// Returns the keys in a range, by the current list of tokens.
    pub(super) async fn keys(&self, range: TokenRange) -> Vec<PrimaryKey> {
        let list = self.list().await;
        let from = list
            .tokens
            .partition_point(|(token, _)| *token < range.start);
        let to = list
            .tokens
            .partition_point(|(token, _)| *token <= range.end);
        let schema = &self.index.identity.keys;
        let mut found = Vec::with_capacity(to - from);
        for ids in list.tokens[from..to].chunks(IDS_AT_A_TIME) {
            let keys = self.index.content.keys();
            let keys = ids.iter().filter_map(|(_, id)| keys.key(*id));
            // The id may belong to another row by now.
            let here = keys.filter(|key| {
                let token = token(schema, key);
                (range.start..=range.end).contains(&token)
            });
            found.extend(here.map(PrimaryKey::from_encoded));
        }
        found
    }

    async fn list(&self) -> Arc<TokenList> {
        let too_old = |list: &TokenList| {
            list.made.elapsed() > LIST_AGE_MIN.max(LIST_AGE_IN_MAKING * list.took)
        };
        let mut list = self.list.lock().await;
        if let Some(list) = &*list
            && !too_old(list)
        {
            return list.clone();
        }
        let index = self.index.clone();
        let made = aside(move || Arc::new(TokenList::of(&index))).await;
        let made = made.expect("tokens are computed without a panic");
        *list = Some(made.clone());
        made
    }
}

impl TokenList {
    fn of(index: &IndexHandle) -> TokenList {
        let made = Instant::now();
        let mut tokens = Vec::with_capacity(index.content.len());
        let mut from = 0;
        loop {
            let keys = index.content.keys();
            let ids = keys.ids();
            let to = ids.min(from + IDS_AT_A_TIME);
            for id in from..to {
                let id = id as u32;
                if let Some(key) = keys.key(id) {
                    tokens.push((token(&index.identity.keys, key), id));
                }
            }
            if to == ids {
                break;
            }
            from = to;
        }
        tokens.sort_unstable();
        TokenList {
            made,
            took: made.elapsed(),
            tokens,
        }
    }
}

/// The fingerprint of a row that the index holds.
pub(super) fn fingerprint(known: &KnownRow) -> RowFingerprint {
    RowFingerprint {
        value_hash: known.value_hash,
        written_us: known.written_us,
    }
}

async fn ask(
    items: &mpsc::WeakSender<IndexMessage>,
    keys: Vec<PrimaryKey>,
) -> Result<(Vec<Option<KnownRow>>, ValueHasher), IndexDropped> {
    let (answer, answered) = oneshot::channel();
    let items = items.upgrade().ok_or(IndexDropped)?;
    let sent = items.send(IndexMessage::Known { keys, answer }).await;
    drop(items);
    sent.map_err(|_| IndexDropped)?;
    answered.await.map_err(|_| IndexDropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::{identity, in_memory};
    use crate::metrics::ServiceMetrics;

    #[tokio::test]
    async fn adjacent_ranges_share_one_list() {
        let identity = identity("idx");
        let metrics = ServiceMetrics::new().index(&identity.name);
        let index = IndexHandle::new(identity, &in_memory(), metrics).unwrap();
        let side = IndexSide {
            index: Arc::new(index),
            items: mpsc::channel(1).0.downgrade(),
            hashing: ValueHasher::of_seed(1),
            hasher: RandomState::new(),
            list: Mutex::new(None),
        };
        let (one, other) = tokio::join!(side.list(), side.list());
        assert!(Arc::ptr_eq(&one, &other));
    }
}
