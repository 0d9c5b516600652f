//! The share of nearest vectors whose points are near.

use crate::nearest::NearestVectors;
use crate::pace::{LayoutPace, LayoutStopped};
use crate::products::product;
use crate::sample::VectorSample;
use crate::{COMPARED_NEIGHBOURS, Position};

/// The most vectors whose neighbours are compared.
pub(crate) const JUDGED_MAX: usize = 1000;

/// The number of vectors that are judged between two pauses.
const JUDGED_BETWEEN_PAUSES: usize = 32;

/// The mean share of the nearest vectors that are among the nearest points. A vector that is as
/// near as the last of the nearest counts as one of them. `None` if no vector has neighbours.
pub(crate) fn preserved_share(
    sample: &VectorSample,
    nearest: &NearestVectors,
    positions: &[Position],
    judged: &[usize],
    pace: &mut LayoutPace<'_>,
) -> Result<Option<f64>, LayoutStopped> {
    let compared = nearest.count().min(COMPARED_NEIGHBOURS);
    if compared == 0 || judged.is_empty() {
        return Ok(None);
    }
    let mut hits = 0;
    for (number, one) in judged.iter().enumerate() {
        if number % JUDGED_BETWEEN_PAUSES == 0 {
            pace.pause()?;
        }
        let near = &nearest.of(*one)[..compared];
        let farthest = near[compared - 1].separation;
        for point in nearest_points(positions, *one, compared) {
            let product = product(sample.vector(*one), sample.vector(point));
            let is_near = near.iter().any(|near| near.at as usize == point)
                || sample.separation(*one, point, product) <= farthest;
            hits += usize::from(is_near);
        }
    }
    Ok(Some(hits as f64 / (judged.len() * compared) as f64))
}

/// The places of the points that are nearest to one on the map.
fn nearest_points(positions: &[Position], one: usize, count: usize) -> Vec<usize> {
    let [x, y] = positions[one];
    let mut nearest: Vec<(f32, usize)> = Vec::with_capacity(count + 1);
    for (other, [other_x, other_y]) in positions.iter().enumerate() {
        let (dx, dy) = (x - other_x, y - other_y);
        let distance = dx * dx + dy * dy;
        let is_near = nearest.len() < count || nearest.last().is_some_and(|last| distance < last.0);
        if is_near && other != one {
            let place = nearest.partition_point(|near| near.0 <= distance);
            nearest.insert(place, (distance, other));
            nearest.truncate(count);
        }
    }
    nearest.into_iter().map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleMetric;

    /// The share that a map of a row of 40 vectors preserves.
    fn share(place: impl Fn(usize) -> Position) -> f64 {
        let elements = (0..40_u8).map(f32::from).collect();
        let mut go_on = |_| true;
        let mut pace = LayoutPace::new(&mut go_on);
        let sample = VectorSample::new(1, SampleMetric::Euclidean, elements, &mut pace).unwrap();
        let nearest = NearestVectors::find(&sample, 12, &mut pace).unwrap();
        let positions: Vec<Position> = (0..40).map(place).collect();
        let judged: Vec<usize> = (0..40).collect();
        let share = preserved_share(&sample, &nearest, &positions, &judged, &mut pace);
        share.unwrap().unwrap()
    }

    #[test]
    fn a_true_map_preserves_all_and_a_shuffled_one_few() {
        assert_eq!(share(|at| [0.0, at as f32 * 3.0]), 1.0);
        let shuffled = share(|at| [(at * 17 % 40) as f32, 0.0]);
        assert!(shuffled < 0.5, "{shuffled}");
    }
}
