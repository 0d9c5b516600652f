//! Values that searches give of a row, as the selection shows them: scores, ranks, and the places
//! in texts where words occur.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use query::search::{SearchHit, WordOrdering};
use query::values::EvaluationInputs;
use query::{SearchCallPart, refused};
use storage::read::Row;
use store_api::{ColumnsPredicate, IndexServices};

use super::searches::{SearchOrder, SearchTarget, SelectedHit};

/// The most texts, and the most of their bytes, in one request for highlights or scores.
const TEXTS_AT_ONCE: usize = 256;
const TEXT_BYTES_AT_ONCE: usize = 4 << 20;

/// A row of the answer, with what the selection shows of searches.
pub(super) struct RowWithHits {
    pub row: Row,
    /// The values for the selection; `None` for null.
    pub hits: Vec<Option<Bytes>>,
}

/// The values of searches in the selection of one execution.
pub(super) struct HitSlots<'a> {
    keyspace: &'a str,
    order: &'a SearchOrder,
    slots: Vec<HitSlot>,
}

/// A value of the selection.
enum HitSlot {
    /// A part of what a search knows of the row, by the position of the search.
    Search(usize, SearchCallPart),
    /// The score of the row's text by this query.
    Score(String),
    /// The place in the row's text where the words of this query occur.
    Highlight(String),
}

impl<'a> HitSlots<'a> {
    /// Evaluates what is selected. `of_call` has the search of each call of the plan.
    ///
    /// # Errors
    /// Values that don't fit their places.
    pub(super) fn evaluate(
        keyspace: &'a str,
        order: &'a SearchOrder,
        of_call: &[usize],
        values: EvaluationInputs<'_>,
    ) -> Result<HitSlots<'a>, CqlError> {
        let slots = order.selected.iter().map(|selected| {
            Ok::<_, CqlError>(match selected {
                SelectedHit::Call { call, part } => {
                    // Each call of the plan has a search.
                    HitSlot::Search(of_call.get(*call).copied().unwrap_or(usize::MAX), *part)
                }
                SelectedHit::Score(of_row) => HitSlot::Score(of_row.words.evaluate(values)?),
                SelectedHit::Highlight(of_row) => {
                    HitSlot::Highlight(of_row.words.evaluate(values)?)
                }
            })
        });
        Ok(HitSlots {
            keyspace,
            order,
            slots: slots.collect::<Result<_, _>>()?,
        })
    }

    /// Whether values are made of the texts of the rows, by [`HitSlots::complete`].
    pub(super) fn need_texts(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| matches!(slot, HitSlot::Score(_) | HitSlot::Highlight(_)))
    }

    /// The values for a row that searches know so much of. Those that are made of its texts are
    /// null still.
    pub(super) fn values(&self, hits: &[SearchHit]) -> Vec<Option<Bytes>> {
        let slots = self.slots.iter();
        let values = slots.map(|slot| match slot {
            HitSlot::Search(search, part) => shown(hits.get(*search).copied()?, *part),
            HitSlot::Score(_) | HitSlot::Highlight(_) => None,
        });
        values.collect()
    }

    /// Fills in the values that are made of the texts of the rows. Equal calls are one request.
    /// `predicates` are the conditions of WHERE.
    ///
    /// # Errors
    /// Failures of the index service.
    pub(super) async fn complete(
        &self,
        stores: &IndexServices,
        predicates: &[ColumnsPredicate],
        rows: &mut [RowWithHits],
    ) -> Result<(), CqlError> {
        for (at, slot) in self.slots.iter().enumerate() {
            let target = match &self.order.selected[at] {
                SelectedHit::Call { .. } => continue,
                SelectedHit::Score(of_row) | SelectedHit::Highlight(of_row) => &of_row.target,
            };
            if let Some(same) = self.same_before(at, target) {
                for row in rows.iter_mut() {
                    row.hits[at] = row.hits[same].clone();
                }
                continue;
            }
            let mut begin = 0;
            while begin < rows.len() {
                let texts = texts(target, &rows[begin..]);
                let count = texts.len();
                let values = self
                    .values_of(slot, stores, target, predicates, texts)
                    .await?;
                for (row, value) in rows[begin..].iter_mut().zip(values) {
                    row.hits[at] = value;
                }
                begin += count;
            }
        }
        Ok(())
    }

    /// An earlier slot that shows the same.
    fn same_before(&self, at: usize, target: &SearchTarget) -> Option<usize> {
        (0..at).find(|before| {
            let is_same = match (&self.slots[*before], &self.slots[at]) {
                (HitSlot::Score(a), HitSlot::Score(b))
                | (HitSlot::Highlight(a), HitSlot::Highlight(b)) => a == b,
                _ => false,
            };
            let of = match &self.order.selected[*before] {
                SelectedHit::Call { .. } => None,
                SelectedHit::Score(of_row) | SelectedHit::Highlight(of_row) => Some(of_row),
            };
            is_same && of.is_some_and(|of| of.target.place == target.place)
        })
    }

    /// The values that a slot shows of texts.
    async fn values_of(
        &self,
        slot: &HitSlot,
        stores: &IndexServices,
        target: &SearchTarget,
        predicates: &[ColumnsPredicate],
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<Bytes>>, CqlError> {
        let (keyspace, index) = (self.keyspace, target.index.name.as_str());
        traces::note(|| {
            let count = texts.len();
            let what = match slot {
                HitSlot::Highlight(_) => "highlights",
                HitSlot::Search(..) | HitSlot::Score(_) => "scores",
            };
            format!("Asking index {keyspace}.{index} for {what} of {count} texts")
        });
        match slot {
            HitSlot::Highlight(query) => {
                let marked = stores.highlight(keyspace, index, query.clone(), texts);
                let marked = marked.await.map_err(refused)?.into_iter();
                Ok(marked.map(|text| text.map(Bytes::from)).collect())
            }
            HitSlot::Score(query) => {
                let words = WordOrdering {
                    keyspace,
                    index,
                    query: query.clone(),
                    local_key: &target.index.local_key,
                };
                let tenant = words.tenant(predicates.iter());
                let scores = stores.score_texts(keyspace, index, query.clone(), tenant, texts);
                let scores = scores.await.map_err(refused)?.into_iter();
                Ok(scores.map(|score| score.map(float)).collect())
            }
            HitSlot::Search(..) => Ok(Vec::new()),
        }
    }
}

/// The texts of the first of these rows, as many as are sent at a time: of one row at least.
fn texts(target: &SearchTarget, rows: &[RowWithHits]) -> Vec<Option<Bytes>> {
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for RowWithHits { row, .. } in rows.iter().take(TEXTS_AT_ONCE) {
        if bytes >= TEXT_BYTES_AT_ONCE {
            break;
        }
        let text = target.place.value(row).cloned();
        bytes += text.as_ref().map_or(0, Bytes::len);
        texts.push(text);
    }
    texts
}

/// The value of a part of what a search knows of a row; `None` for null.
fn shown(hit: SearchHit, part: SearchCallPart) -> Option<Bytes> {
    match part {
        SearchCallPart::Score => hit.score.map(float),
        SearchCallPart::Rank => hit.rank.map(integer),
        SearchCallPart::Hit => {
            let fields = [hit.score.map(float), hit.rank.map(integer)];
            if fields.iter().all(Option::is_none) {
                return None;
            }
            let mut tuple = BytesMut::with_capacity(16);
            for field in fields {
                match field {
                    Some(value) => {
                        tuple.put_i32(4);
                        tuple.put_slice(&value);
                    }
                    None => tuple.put_i32(-1),
                }
            }
            Some(tuple.freeze())
        }
        SearchCallPart::Highlight => None,
    }
}

fn float(score: f32) -> Bytes {
    Bytes::copy_from_slice(&score.to_be_bytes())
}

fn integer(rank: u32) -> Bytes {
    let rank = i32::try_from(rank).unwrap_or(i32::MAX);
    Bytes::copy_from_slice(&rank.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_hit_are_values_or_null() {
        let hit = SearchHit {
            score: Some(0.5),
            rank: Some(3),
        };
        let score = 0.5_f32.to_be_bytes();
        assert_eq!(shown(hit, SearchCallPart::Score).unwrap()[..], score);
        let rank = shown(hit, SearchCallPart::Rank).unwrap();
        assert_eq!(rank[..], [0, 0, 0, 3]);
        let tuple = shown(hit, SearchCallPart::Hit).unwrap();
        let whole = [&[0, 0, 0, 4][..], &score, &[0, 0, 0, 4], &[0, 0, 0, 3]].concat();
        assert_eq!(tuple[..], whole);
        let scored = SearchHit { rank: None, ..hit };
        let tuple = shown(scored, SearchCallPart::Hit).unwrap();
        let without_rank = [&[0, 0, 0, 4][..], &score, &[0xff; 4]].concat();
        assert_eq!(tuple[..], without_rank);
        for part in [
            SearchCallPart::Hit,
            SearchCallPart::Score,
            SearchCallPart::Rank,
        ] {
            assert_eq!(shown(SearchHit::default(), part), None);
        }
    }
}
