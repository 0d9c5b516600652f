//! The answer of a server of embeddings.

use serde::Deserialize;

#[derive(Deserialize)]
struct EmbeddingList {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The vectors of an answer, in the order of the texts.
pub(crate) fn vectors(answer: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: EmbeddingList = serde_json::from_slice(answer)
        .map_err(|error| format!("its answer is not of OpenAI's form: {error}"))?;
    let mut vectors = vec![None; texts];
    for (position, item) in answer.data.into_iter().enumerate() {
        if let Some(vector) = vectors.get_mut(item.index.unwrap_or(position)) {
            *vector = Some(item.embedding);
        }
    }
    let vectors: Option<Vec<_>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| format!("its answer lacks vectors of the {texts} texts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_the_texts() {
        let answer =
            br#"{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}"#;
        assert_eq!(vectors(answer, 2), Ok(vec![vec![1.0], vec![2.0]]));
        let answer = br#"{"data": [{"embedding": [1]}]}"#;
        assert_eq!(vectors(answer, 1), Ok(vec![vec![1.0]]));
        assert!(vectors(answer, 2).is_err());
        assert!(vectors(b"{}", 1).is_err());
    }
}
