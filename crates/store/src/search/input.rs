//! A search, whichever way it came.

use store_api::types::AnnRequest;
use store_api::{ColumnsPredicate, VectorSearch};

use crate::filter::values_of;

/// A search of a client elsewhere, or of a node in this process.
#[derive(Debug)]
pub(crate) struct ReceivedSearch {
    /// The search as it came by HTTP, with its restrictions in JSON.
    pub request: AnnRequest,
    /// The conditions of a node in this process, whose values are as CQL serialises them.
    pub predicates: Vec<ColumnsPredicate>,
}

impl ReceivedSearch {
    /// The number of values in the conditions.
    pub(crate) fn values(&self) -> usize {
        let of_request = self.request.filter.as_ref().map_or(0, values_of);
        let of_predicates = self.predicates.iter().map(ColumnsPredicate::values);
        of_request + of_predicates.sum::<usize>()
    }
}

impl From<AnnRequest> for ReceivedSearch {
    fn from(request: AnnRequest) -> ReceivedSearch {
        ReceivedSearch {
            request,
            predicates: Vec::new(),
        }
    }
}

impl From<VectorSearch> for ReceivedSearch {
    fn from(search: VectorSearch) -> ReceivedSearch {
        let VectorSearch {
            vector,
            limit,
            predicates,
            return_columns,
            min_time_us,
            exact,
        } = search;
        let request = AnnRequest {
            limit,
            return_columns,
            min_time_us,
            exact,
            ..AnnRequest::new(vector, 1)
        };
        ReceivedSearch {
            request,
            predicates,
        }
    }
}
