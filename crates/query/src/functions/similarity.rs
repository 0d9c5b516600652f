//! The functions for the similarity of two float vectors. A null vector gives null. A vector of
//! zeros gives NaN for cosine.

use bytes::Bytes;
use cql::error::CqlError;
use index::SimilarityFunction;

use crate::statement_clock::StatementClock;

pub(super) fn cosine(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(SimilarityFunction::Cosine, arguments))
}

pub(super) fn euclidean(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(SimilarityFunction::Euclidean, arguments))
}

pub(super) fn dot_product(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(SimilarityFunction::DotProduct, arguments))
}

fn scored(similarity: SimilarityFunction, arguments: &[&[u8]]) -> Bytes {
    let score = similarity.score(arguments[0], arguments[1]);
    Bytes::copy_from_slice(&score.to_be_bytes())
}
