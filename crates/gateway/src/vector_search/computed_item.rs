//! The items of a selection that the gateway computes, with their values.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use query::search::SearchHit;
use query::values::EvaluationInputs;
use query::{SearchCallPart, SearchesOfExecution};

use super::selection::{ComputedItem, ComputedValue, TextCall, term_value};

/// An item of the selection that the gateway computes, with its values.
pub(super) enum BoundItem<'a> {
    /// A part of the hit of a search.
    Hit {
        /// The position of the search among those of the execution.
        search: usize,
        /// The part of it.
        part: SearchCallPart,
    },
    /// The score of a text.
    Score(BoundText<'a>),
    /// The place in a text where words occur.
    Highlight(BoundText<'a>),
    /// A value that is the same in all rows; `None` for null.
    Value(Option<Bytes>),
}

/// Words that are looked for in texts, with their value.
pub(super) struct BoundText<'a> {
    /// The call.
    pub(super) call: &'a TextCall,
    /// The words, as a query.
    pub(super) query: String,
}

impl<'a> BoundItem<'a> {
    /// Evaluates an item.
    ///
    /// # Errors
    /// Values that don't fit their places.
    pub(super) fn of(
        item: &'a ComputedItem,
        searches: Option<&SearchesOfExecution>,
        values: EvaluationInputs<'_>,
    ) -> Result<BoundItem<'a>, CqlError> {
        let text = |call: &'a TextCall| {
            Ok::<_, CqlError>(BoundText {
                call,
                query: call.words.evaluate(values)?,
            })
        };
        Ok(match &item.value {
            ComputedValue::Hit { call, part } => {
                let search = searches.and_then(|searches| searches.of_call.get(*call));
                BoundItem::Hit {
                    search: search.copied().unwrap_or(usize::MAX),
                    part: *part,
                }
            }
            ComputedValue::Score(call) => BoundItem::Score(text(call)?),
            ComputedValue::Highlight(call) => BoundItem::Highlight(text(call)?),
            ComputedValue::Term(term) => BoundItem::Value(term_value(term, values)?),
            // The rows are counted in place of being answered.
            ComputedValue::Count => BoundItem::Value(None),
        })
    }

    /// The cell of a row with these hits, as far as it is known before texts are looked at.
    pub(super) fn cell(&self, hits: &[SearchHit]) -> Option<Bytes> {
        match self {
            BoundItem::Hit { search, part } => hit_cell(hits.get(*search)?, *part),
            BoundItem::Value(value) => value.clone(),
            BoundItem::Score(_) | BoundItem::Highlight(_) => None,
        }
    }
}

/// The serialised part of a hit; `None` for null, as all of them are where the search knows nothing
/// of the row.
fn hit_cell(hit: &SearchHit, part: SearchCallPart) -> Option<Bytes> {
    let score = hit.score.map(f32::to_be_bytes);
    let rank = hit.rank.map(u32::to_be_bytes);
    match part {
        SearchCallPart::Score => score.map(|score| Bytes::copy_from_slice(&score)),
        SearchCallPart::Rank => rank.map(|rank| Bytes::copy_from_slice(&rank)),
        SearchCallPart::Hit if (score, rank) == (None, None) => None,
        SearchCallPart::Hit => {
            let mut out = BytesMut::with_capacity(16);
            for field in [score, rank] {
                match field {
                    Some(field) => {
                        out.put_i32(4);
                        out.put_slice(&field);
                    }
                    None => out.put_i32(-1),
                }
            }
            Some(out.freeze())
        }
        SearchCallPart::Highlight => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_shown_in_whole_and_in_parts() {
        let hit = SearchHit {
            score: Some(0.5),
            rank: Some(3),
        };
        let cell = |hit: &SearchHit, part| hit_cell(hit, part).map(|cell| cell.to_vec());
        let score = 0.5f32.to_be_bytes();
        assert_eq!(cell(&hit, SearchCallPart::Score), Some(score.to_vec()));
        assert_eq!(cell(&hit, SearchCallPart::Rank), Some(vec![0, 0, 0, 3]));
        let whole = [&[0, 0, 0, 4][..], &score, &[0, 0, 0, 4, 0, 0, 0, 3]].concat();
        assert_eq!(cell(&hit, SearchCallPart::Hit), Some(whole));
        let missed = SearchHit::default();
        assert_eq!(cell(&missed, SearchCallPart::Rank), None);
        assert_eq!(cell(&missed, SearchCallPart::Hit), None);
        let scored = SearchHit { rank: None, ..hit };
        let without_rank = [&[0, 0, 0, 4][..], &score, &[0xff; 4]].concat();
        assert_eq!(cell(&scored, SearchCallPart::Hit), Some(without_rank));
    }
}
