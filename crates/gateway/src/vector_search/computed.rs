//! The values that the gateway computes for an answer: what searches know of a row, and what the
//! index service makes of the texts that were read.

use bytes::Bytes;
use store_api::{ClientError, IndexServices};

use super::computed_item::{BoundItem, BoundText};
use super::execution::AnnExecution;
use super::row::AnswerRow;
use crate::key_read::ReadRowLayout;

/// The most texts that the index service gets at a time, and the bytes after which it gets no more.
const TEXTS_AT_ONCE: usize = 1_024;
const TEXT_BYTES_AT_ONCE: usize = 4 << 20;

/// Has the index services compute the cells that are made of texts.
///
/// # Errors
/// Failures of the services.
pub(super) async fn fill_texts(
    execution: &AnnExecution<'_>,
    stores: &IndexServices,
    layout: &ReadRowLayout,
    rows: &mut [AnswerRow],
) -> Result<(), ClientError> {
    for (at, item) in execution.computed.iter().enumerate() {
        let (BoundItem::Score(text) | BoundItem::Highlight(text)) = item else {
            continue;
        };
        let Some(Some(column)) = layout.searched.get(text.call.searched) else {
            continue;
        };
        let texts = rows.iter().map(|row| row.read.get(*column)?.clone());
        let mut cells = Vec::with_capacity(rows.len());
        for texts in batches(texts) {
            let count = texts.len();
            let some = match item {
                BoundItem::Score(_) => scores(execution, stores, text, texts).await?,
                _ => highlights(stores, text, texts).await?,
            };
            if some.len() != count {
                return Err(ClientError::InvalidJson);
            }
            cells.extend(some);
        }
        for (row, cell) in rows.iter_mut().zip(cells) {
            if let Some(place) = row.computed.get_mut(at) {
                *place = cell;
            }
        }
    }
    Ok(())
}

async fn scores(
    execution: &AnnExecution<'_>,
    stores: &IndexServices,
    text: &BoundText<'_>,
    texts: Vec<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>, ClientError> {
    let index = &text.call.index;
    let tenant = execution.tenant(index);
    let (keyspace, query) = (&index.keyspace, text.query.clone());
    let scores = stores.score_texts(keyspace, &index.name, query, tenant, texts);
    let scores = scores.await?.into_iter();
    let cell = |score: f32| Bytes::copy_from_slice(&score.to_be_bytes());
    Ok(scores.map(|score| score.map(cell)).collect())
}

async fn highlights(
    stores: &IndexServices,
    text: &BoundText<'_>,
    texts: Vec<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>, ClientError> {
    let index = &text.call.index;
    let (keyspace, query) = (&index.keyspace, text.query.clone());
    let excerpts = stores.highlight(keyspace, &index.name, query, texts);
    let excerpts = excerpts.await?.into_iter();
    Ok(excerpts.map(|excerpt| excerpt.map(Bytes::from)).collect())
}

/// Texts in the batches that the index service gets at a time.
pub(super) fn batches(texts: impl Iterator<Item = Option<Bytes>>) -> Vec<Vec<Option<Bytes>>> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for text in texts {
        bytes += text.as_ref().map_or(0, Bytes::len);
        batch.push(text);
        if batch.len() >= TEXTS_AT_ONCE || bytes >= TEXT_BYTES_AT_ONCE {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sent_in_batches_of_bounded_size() {
        let small = std::iter::repeat_n(Some(Bytes::from_static(b"a")), TEXTS_AT_ONCE + 1);
        let lengths: Vec<usize> = batches(small).iter().map(Vec::len).collect();
        assert_eq!(lengths, [TEXTS_AT_ONCE, 1]);
        let large = Bytes::from(vec![b'a'; TEXT_BYTES_AT_ONCE]);
        let large = [Some(large.clone()), None, Some(large)];
        let lengths: Vec<usize> = batches(large.into_iter()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 2]);
        assert!(batches(std::iter::empty()).is_empty());
    }
}
