//! Functions that DataStax's Astra has beyond Cassandra: each is refused with the way round.

use cql::error::CqlError;

/// The error for a function of Astra; `None` for any other name, which is given in lower case.
pub(crate) fn refused(name: &str) -> Option<CqlError> {
    let way_round = match name {
        "geo_distance" => {
            "keep latitude and longitude in columns with an index each, restrict both to a box around the \
             point, and measure the distances in the application; or index a vector<float, 3> of the \
             point on a sphere with the similarity function euclidean, and use ORDER BY ... ANN OF"
        }
        "normalize_l2" => {
            "send vectors of length 1, or use the similarity function cosine, which heeds no length"
        }
        "random_float_vector" => "make the vector in the application, and send it",
        _ => return None,
    };
    Some(CqlError::invalid(format!(
        "The function {name} of Astra is not supported by Annulus: {way_round}"
    )))
}
