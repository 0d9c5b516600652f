//! The rows that the words of a filter name: those of a full-text index, in the terms of the index
//! that is searched.
//!
//! Both indexes know a row by its key. Few matching rows become ids of the searched index at once.
//! Where they are many, and a search of vectors looks at some of them, each is looked up by its key
//! when the search meets it. A search of texts has them all made ids, as no two indexes on texts
//! may wait for each other's keys.

use std::fmt;
use std::sync::Arc;

use filter_columns::IdSet;
use full_text::TextQuery;

use crate::filter::{SearchFilter, TextVerdicts, WordRows};
use crate::identity::StructureClass;
use crate::indexes::{IndexContent, IndexHandle, StructureError};

/// The most matching rows that become ids of a searched index of vectors.
const MAPPED_MAX: usize = 16_384;

/// The part of all rows that may become ids: one in this many.
const MAPPED_SHARE: usize = 4;

/// The number of keys that are copied under the lock of one index, before they are looked up in the
/// other.
const KEYS_AT_ONCE: usize = 1_024;

/// A condition on words, with the index that answers it.
pub(super) struct WordsSource {
    /// The full-text index.
    pub index: Arc<IndexHandle>,
    /// The query.
    pub query: Arc<TextQuery>,
    /// Whether texts are wanted that do not match.
    pub is_negated: bool,
}

/// A filter by the rows that its words name now. While it is held, no id goes to another row.
pub(super) struct NamingFilter {
    /// The filter.
    pub filter: SearchFilter,
    /// The epochs of the indexes, which keep their ids from going to other rows.
    ids: Vec<Arc<()>>,
}

/// The filter of a search by the rows that its words name now; `None` if it has no words.
pub(super) fn naming(
    filter: Option<&SearchFilter>,
    words: &[WordsSource],
    searched: &IndexHandle,
    now_s: u32,
) -> Result<Option<NamingFilter>, StructureError> {
    // Before the first id is seen.
    let held = searched.content.hold_ids();
    let named = naming_by(filter, words, |source| source.rows_in(searched, now_s))?;
    Ok(named.map(|mut named| {
        named.ids.push(held);
        named
    }))
}

/// As [`naming`], for rows that are in no index: they are known by their keys alone.
pub(super) fn naming_by_key(
    filter: Option<&SearchFilter>,
    words: &[WordsSource],
    now_s: u32,
) -> Result<Option<NamingFilter>, StructureError> {
    naming_by(filter, words, |source| {
        Ok(WordRows::ByKey(Arc::new(source.verdicts(now_s)?)))
    })
}

fn naming_by(
    filter: Option<&SearchFilter>,
    words: &[WordsSource],
    rows: impl Fn(&WordsSource) -> Result<WordRows, StructureError>,
) -> Result<Option<NamingFilter>, StructureError> {
    let Some(filter) = filter.filter(|_| !words.is_empty()) else {
        return Ok(None);
    };
    let ids = words.iter().map(|source| source.index.content.hold_ids());
    let ids = ids.collect();
    let named = words.iter().map(rows).collect::<Result<_, _>>()?;
    Ok(Some(NamingFilter {
        filter: filter.naming(named),
        ids,
    }))
}

impl WordsSource {
    /// The rows that the words name, in the terms of a searched index.
    fn rows_in(&self, searched: &IndexHandle, now_s: u32) -> Result<WordRows, StructureError> {
        if Arc::ptr_eq(&searched.content, &self.index.content) {
            let matched = self.index.content.matching_ids(&self.query)?;
            return Ok(WordRows::Ids {
                matched: Arc::new(matched),
                texts: None,
            });
        }
        let verdicts = self.verdicts(now_s)?;
        let matches = verdicts.matching.len();
        let are_few = matches <= MAPPED_MAX && matches * MAPPED_SHARE <= searched.content.len();
        let is_on_texts = searched.identity.options.class() == StructureClass::FullText;
        if !is_on_texts && (self.is_negated || !are_few) {
            return Ok(WordRows::ByKey(Arc::new(verdicts)));
        }
        let matched = mapped(&verdicts, verdicts.matching.iter(), &searched.content);
        let texts = self.is_negated.then(|| {
            let ids = u32::try_from(verdicts.content.keys().ids()).unwrap_or(u32::MAX);
            Arc::new(mapped(&verdicts, 0..ids, &searched.content))
        });
        Ok(WordRows::Ids {
            matched: Arc::new(matched),
            texts,
        })
    }

    fn verdicts(&self, now_s: u32) -> Result<KeyedVerdicts, StructureError> {
        Ok(KeyedVerdicts {
            matching: self.index.content.matching_ids(&self.query)?,
            content: self.index.content.clone(),
            now_s,
        })
    }
}

/// The ids that rows of one index have in another. No lock of one is held while the other's is
/// waited for.
fn mapped(verdicts: &KeyedVerdicts, ids: impl Iterator<Item = u32>, to: &IndexContent) -> IdSet {
    let mut mapped = IdSet::default();
    let mut ids = ids.peekable();
    let mut copied: Vec<Box<[u8]>> = Vec::new();
    while ids.peek().is_some() {
        let keys = verdicts.content.keys();
        let some = ids.by_ref().take(KEYS_AT_ONCE);
        let lives = |id: &u32| keys.found(*id, verdicts.now_s).is_some();
        let of_some = some.filter(lives).filter_map(|id| keys.key(id));
        copied.extend(of_some.map(Box::from));
        drop(keys);
        let keys = to.keys();
        for id in copied.drain(..).filter_map(|key| keys.id(&key)) {
            mapped.insert(id);
        }
    }
    mapped
}

/// The rows of a full-text index, by their keys.
struct KeyedVerdicts {
    content: Arc<IndexContent>,
    /// The ids of the rows that match.
    matching: IdSet,
    now_s: u32,
}

impl TextVerdicts for KeyedVerdicts {
    fn verdict(&self, key: &[u8]) -> Option<bool> {
        let keys = self.content.keys();
        let id = keys.id(key)?;
        keys.found(id, self.now_s)?;
        Some(self.matching.contains(id))
    }
}

impl fmt::Debug for KeyedVerdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedVerdicts")
            .field("matching", &self.matching.len())
            .finish_non_exhaustive()
    }
}
