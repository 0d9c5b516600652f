//! The functions for the similarity of two float vectors. A null vector gives null. A vector of
//! zeros gives NaN for cosine.

use bytes::Bytes;
use cql::error::CqlError;
use index::Metric;

use crate::clock::StatementClock;

pub(super) fn cosine(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(Metric::Cosine, arguments))
}

pub(super) fn euclidean(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(Metric::Euclidean, arguments))
}

pub(super) fn dot_product(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(scored(Metric::DotProduct, arguments))
}

fn scored(similarity: Metric, arguments: &[&[u8]]) -> Bytes {
    let score = similarity.score(arguments[0], arguments[1]);
    Bytes::copy_from_slice(&score.to_be_bytes())
}
