//! Conditions on words: the rows that a full-text index names, in the terms of the index that is
//! searched.

use std::fmt;
use std::sync::Arc;

use filter_columns::IdSet;

/// A condition on words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordsCondition {
    /// The column that has the texts.
    pub column: String,
    /// The name of the full-text index; empty if any on the column will do.
    pub index: String,
    /// The query.
    pub query: String,
    /// Whether texts are wanted that do not match.
    pub is_negated: bool,
}

/// The rows that words name.
#[derive(Clone, Debug)]
pub(crate) enum WordRows {
    /// The ids of the searched index.
    Ids {
        /// Those of rows whose text matches.
        matched: Arc<IdSet>,
        /// Those of rows that have a text; `None` if all rows have one.
        texts: Option<Arc<IdSet>>,
    },
    /// The rows are found by their keys, one by one, as they are many.
    ByKey(Arc<dyn TextVerdicts>),
}

/// Says of rows whether their texts match.
pub(crate) trait TextVerdicts: fmt::Debug + Send + Sync {
    /// Whether the text of the row with this encoded key matches; `None` if it has no text.
    fn verdict(&self, key: &[u8]) -> Option<bool>;
}

impl WordRows {
    /// Whether the row with this id and this key satisfies the condition.
    pub(super) fn hold(&self, id: u32, key: &[u8], is_negated: bool) -> bool {
        match self {
            WordRows::Ids { matched, .. } if !is_negated => matched.contains(id),
            WordRows::Ids { matched, texts } => {
                !matched.contains(id) && texts.as_ref().is_none_or(|texts| texts.contains(id))
            }
            WordRows::ByKey(verdicts) => verdicts.verdict(key) == Some(!is_negated),
        }
    }

    /// The ids of the rows that may satisfy the condition, if they are known.
    pub(super) fn ids(&self, is_negated: bool) -> Option<&IdSet> {
        match self {
            WordRows::Ids { matched, .. } if !is_negated => Some(matched),
            WordRows::Ids { .. } | WordRows::ByKey(_) => None,
        }
    }
}
