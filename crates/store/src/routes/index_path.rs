//! The part of a path that names an index.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::identity::IndexName;

/// An index as a path names it: `/api/v1/indexes/{keyspace}/{index}` and what is below.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct IndexPath {
    /// The keyspace, case preserved
    keyspace: String,
    /// The index, case preserved
    index: String,
}

impl From<IndexPath> for IndexName {
    fn from(IndexPath { keyspace, index }: IndexPath) -> IndexName {
        IndexName { keyspace, index }
    }
}
