//! The reasons why a search has no answer.

use crate::identity::IndexName;
use crate::indexes::{IndexLag, NoRoute};

/// The reason why a search has no answer. The texts are those that clients get (contract, sections
/// 1.4 and 1.13).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SearchError {
    /// There is no such index.
    #[error("missing index: {0}")]
    MissingIndex(IndexName),
    /// The service is still starting.
    #[error("the index service is still starting")]
    NodeBootstrapping,
    /// The index is still being built.
    #[error("Index {name} is still being constructed: {progress:.3}% done")]
    IndexBuilding {
        /// The index of the request.
        name: IndexName,
        /// The part of the scan that is done, per cent.
        progress: f64,
    },
    /// The search doesn't suit the index.
    #[error("{0}")]
    Unsuitable(String),
    /// The filter has too many values.
    #[error(
        "the filter has more than {max} values, the most that one may have: make several searches, or \
         raise --filter-values"
    )]
    TooManyValues {
        /// The most values that a filter may have.
        max: usize,
    },
    /// There are more searches than are admitted, or than can begin in time.
    #[error("too many searches in flight; try again later, or ask another index service")]
    Overloaded,
    /// The index lacks writes that were acknowledged before the search.
    #[error("index {0} has not taken up all acknowledged writes in time; try again later")]
    Behind(IndexName),
    /// The index lacks writes of the time up to which the search wants all of them.
    #[error("{}", behind(.name, .lag))]
    BehindTime {
        /// The index of the request.
        name: IndexName,
        /// How far it lags that time.
        lag: IndexLag,
    },
    /// The index has had no room for some rows, so the answer might lack them.
    #[error(
        "index {0} has had no room for some rows, which the answer may lack: give the service more memory or disk, \
         or drop an index"
    )]
    Short(IndexName),
    /// A fault of the service.
    #[error("{0}")]
    Internal(String),
}

fn behind(name: &IndexName, lag: &IndexLag) -> String {
    let far = match lag.behind_us {
        Some(us) => format!("lacks the last {:.3} s of them", us as f64 / 1e6),
        None => "does not know yet how far it is".to_owned(),
    };
    format!("index {name} has not taken up all writes up to min_time_us in time, and {far}")
}

impl SearchError {
    /// The error for a request that no index can answer.
    pub(crate) fn no_route(name: IndexName, no_route: &NoRoute) -> SearchError {
        match no_route {
            NoRoute::Missing => SearchError::MissingIndex(name),
            NoRoute::NodeBootstrapping => SearchError::NodeBootstrapping,
            NoRoute::Building { progress, .. } => SearchError::IndexBuilding {
                name,
                progress: *progress,
            },
            NoRoute::Unsuited(reason) => SearchError::Unsuitable(reason.clone()),
        }
    }
}
