//! Estimates the intrinsic dimension of a data set: how many dimensions its neighbourhoods have. It
//! makes a set easy or hard to search.

use annulus_bench::data::{SimilarityMetric, VectorRows};
use contender::NEIGHBOURS;

/// The maximum likelihood estimate from the distances of each query's true neighbours (Levina and
/// Bickel, 2004), its inverse averaged over the queries (MacKay and Ghahramani, 2005).
pub fn dimension(base: &VectorRows, queries: &VectorRows, metric: SimilarityMetric, ids: &[u32]) -> f64 {
    let inverses: Vec<f64> = ids
        .chunks_exact(NEIGHBOURS)
        .enumerate()
        .filter_map(|(query, ids)| {
            let squared = ids.iter().map(|&id| {
                // On the unit sphere twice `1 - cos` is the squared distance. Constant factors
                // cancel out.
                metric.distance(queries.row(query), base.row(id as usize))
            });
            inverse(&squared.collect::<Vec<f64>>())
        })
        .collect();
    inverses.len() as f64 / inverses.iter().sum::<f64>()
}

/// One over the estimate for one query, from its ascending squared distances. `None` if the query
/// itself is among the vectors.
fn inverse(squared: &[f64]) -> Option<f64> {
    let (&last, before) = squared.split_last()?;
    if before.first().is_none_or(|&first| first <= 0.0) {
        return None;
    }
    let logs = before.iter().map(|d| 0.5 * (last / d).ln());
    Some(logs.sum::<f64>() / before.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_as_in_three_dimensions_give_three() {
        // Of points spread evenly in d dimensions the i-th nearest is at a distance like i^(1/d).
        let squared: Vec<f64> = (1..=10_000).map(|i| f64::from(i).powf(2.0 / 3.0)).collect();
        let dimension = 1.0 / inverse(&squared).unwrap();
        assert!((dimension - 3.0).abs() < 0.01, "{dimension}");
    }
}
