//! The stage of an import that makes embeddings of texts ([`embeddings`]).

use std::sync::Arc;

use embeddings::TextEmbedder;
use futures::{StreamExt as _, stream};
use tokio::sync::mpsc::{self, Receiver};

use super::convert::vector_bytes;
use super::feed::FeedBatch;
use super::rows::FeedRow;

/// The requests in flight, of a batch of texts each.
const REQUESTS_IN_FLIGHT: usize = 4;

/// The column that gets the embeddings.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedColumn {
    /// Its position among the values of a row.
    pub position: usize,
    /// Its dimensions.
    pub dimensions: usize,
}

/// Passes batches on with the embeddings of their texts, in the order in which they come.
pub fn stage(
    client: Arc<TextEmbedder>,
    column: EmbeddedColumn,
    batches: Receiver<FeedBatch>,
) -> Receiver<FeedBatch> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let batches = stream::unfold(batches, |mut batches| async move {
            let batch = batches.recv().await?;
            Some((batch, batches))
        });
        let filled = batches.map(|batch| {
            let client = client.clone();
            async move { fill(&client, column, batch?).await }
        });
        let mut filled = std::pin::pin!(filled.buffered(REQUESTS_IN_FLIGHT));
        while let Some(batch) = filled.next().await {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Makes the embeddings of a batch. A row without a text has none, and null in its place.
async fn fill(client: &TextEmbedder, column: EmbeddedColumn, batch: Vec<FeedRow>) -> FeedBatch {
    let mut texts = Vec::new();
    for row in &batch {
        if let FeedRow::Converted(row) = row {
            texts.extend(row.text.clone());
        }
    }
    if texts.is_empty() {
        return Ok(batch);
    }
    let mut vectors = client.embed(&texts).await?.into_iter();
    let filled = batch.into_iter().map(|row| match row {
        FeedRow::Converted(mut row) if row.text.is_some() => {
            row.text = None;
            let vector = vectors.next().unwrap_or_default();
            if vector.len() != column.dimensions {
                return FeedRow::Rejected(row.refused(&format!(
                    "its embedding has {} elements, the column {}",
                    vector.len(),
                    column.dimensions
                )));
            }
            row.values[column.position] = Some(vector_bytes(&vector));
            FeedRow::Converted(row)
        }
        other => other,
    });
    Ok(filled.collect())
}
