//! The two directions in which vectors vary most, and where each vector is along them.
//!
//! Two directions are multiplied by the covariance of the vectors until they turn no more. The
//! covariance itself is never made: a vector of thousands of dimensions would have millions of
//! elements there.

use crate::Position;
use crate::drawing::RandomDraws;
use crate::nearest::PAIR_STEPS;
use crate::pace::{LayoutPace, LayoutStopped};
use crate::products::{product, products};
use crate::sample::VectorSample;

/// The steps of a layout that the principal components count as.
pub(crate) const AXIS_STEPS: u64 = TURNS as u64;

/// The number of times that the directions are multiplied. Any that is left out after that varies
/// about as much.
const TURNS: usize = 40;

/// The number of elements of vectors between two pauses: about a millisecond.
const PAUSE_ELEMENTS: usize = 1 << 20;

/// The places of all vectors along their two principal components, around the mean.
pub(crate) fn principal_axes(
    sample: &VectorSample,
    draws: &mut RandomDraws,
    pace: &mut LayoutPace<'_>,
) -> Result<Vec<Position>, LayoutStopped> {
    let dimensions = sample.dimensions();
    let pause_every = (PAUSE_ELEMENTS / dimensions.max(1)).max(1);
    let mean = mean(sample, pause_every, pace)?;
    let mut directions = [0, 1].map(|_| {
        let elements = (0..dimensions).map(|_| draws.signed_unit());
        elements.collect::<Vec<f32>>()
    });
    orthonormalise(&mut directions);
    for turn in 0..TURNS {
        let mut turned = [vec![0.0; dimensions], vec![0.0; dimensions]];
        let along_mean = along(&directions, &mean);
        for (at, vector) in sample.vectors().enumerate() {
            let here = along(&directions, vector);
            for axis in [0, 1] {
                let weight = here[axis] - along_mean[axis];
                for (sum, element) in turned[axis].iter_mut().zip(vector) {
                    *sum += weight * element;
                }
            }
            if at % pause_every == 0 {
                pace.pause()?;
            }
        }
        // The weights have the mean 0, so the mean of the vectors takes no part.
        directions = turned;
        orthonormalise(&mut directions);
        pace.reach(PAIR_STEPS + turn as u64 + 1)?;
    }
    directions
        .iter_mut()
        .for_each(|direction| point_up(direction));
    let along_mean = along(&directions, &mean);
    let mut places = Vec::with_capacity(sample.len());
    for (at, vector) in sample.vectors().enumerate() {
        let here = along(&directions, vector);
        places.push([here[0] - along_mean[0], here[1] - along_mean[1]]);
        if at % pause_every == 0 {
            pace.pause()?;
        }
    }
    Ok(places)
}

fn mean(
    sample: &VectorSample,
    pause_every: usize,
    pace: &mut LayoutPace<'_>,
) -> Result<Vec<f32>, LayoutStopped> {
    let mut sums = vec![0.0_f64; sample.dimensions()];
    for (at, vector) in sample.vectors().enumerate() {
        for (sum, element) in sums.iter_mut().zip(vector) {
            *sum += f64::from(*element);
        }
        if at % pause_every == 0 {
            pace.pause()?;
        }
    }
    let vectors = sample.len().max(1) as f64;
    Ok(sums.iter().map(|sum| (sum / vectors) as f32).collect())
}

fn along(directions: &[Vec<f32>; 2], vector: &[f32]) -> Position {
    products(vector, [&directions[0], &directions[1]])
}

/// Makes the second direction a right angle with the first, and both of length 1. A direction in
/// which nothing varies becomes 0.
fn orthonormalise([first, second]: &mut [Vec<f32>; 2]) {
    normalise(first);
    let common = product(first, second);
    for (second, first) in second.iter_mut().zip(first.iter()) {
        *second -= common * first;
    }
    normalise(second);
}

fn normalise(direction: &mut [f32]) {
    let length = product(direction, direction).sqrt();
    if length > 0.0 {
        direction.iter_mut().for_each(|element| *element /= length);
    }
}

/// Chooses one of the two senses of a direction, so that a map is not mirrored by chance.
fn point_up(direction: &mut [f32]) {
    let most = direction
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    if most.is_some_and(|most| most < 0.0) {
        direction
            .iter_mut()
            .for_each(|element| *element = -*element);
    }
}
