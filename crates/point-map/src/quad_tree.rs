//! The repulsion of points, of which those far away count as one.
//!
//! Points are sorted along a curve that goes through all quarters of a square before it leaves it
//! (Morton order), so that each square of a tree is a range of them. A leaf is a few points that
//! are near each other, and looks at the tree once for all of them: a square that is small from
//! where the leaf is counts as one heavy point, others are looked into.

use crate::Position;
use crate::pace::{LayoutPace, LayoutStopped};

/// The most points of a leaf, but for points that no square tells apart.
const LEAF_POINTS: usize = 8;

/// The bits of a coordinate in the order of points.
const COORDINATE_BITS: u32 = 16;

/// The square of the size of a square, seen from a leaf as a part of the distance, from which on it
/// is looked into.
const SIZE_PER_DISTANCE_SQUARED: f32 = 1.0;

/// Points that repel at once.
const LANES: usize = 8;

/// The number of leaves between two pauses: about a millisecond.
const LEAVES_BETWEEN_PAUSES: usize = 512;

/// A tree over the points of a map. It is made again after each move, in the memory that it has.
#[derive(Debug, Default)]
pub(crate) struct QuadTree {
    /// Squares, each before those in it.
    squares: Vec<TreeSquare>,
    /// The points in the order of the curve: the number on the curve, and the place in the sample.
    order: Vec<(u32, u32)>,
    sorted: Vec<(u32, u32)>,
    /// The positions in that order.
    positions: Vec<Position>,
    seen: SeenPoints,
}

/// A square of the tree.
#[derive(Clone, Copy, Debug, Default)]
struct TreeSquare {
    centre: Position,
    points: f32,
    size_squared: f32,
    /// The number of the square that comes after all in this one.
    next: usize,
    begin: usize,
    end: usize,
    is_leaf: bool,
}

/// The points that a leaf sees, heavy ones for squares among them.
#[derive(Debug, Default)]
struct SeenPoints {
    x: Vec<f32>,
    y: Vec<f32>,
    weights: Vec<f32>,
}

/// The repulsion of one point.
#[derive(Clone, Copy, Debug, Default)]
struct Repulsion {
    force: Position,
    nearness: f32,
}

impl QuadTree {
    /// Makes the tree over these points.
    pub(crate) fn build(&mut self, positions: &[Position]) {
        let side = self.put_in_order(positions);
        self.positions.clear();
        let in_order = self.order.iter();
        self.positions
            .extend(in_order.map(|(_, at)| positions[*at as usize]));
        self.squares.clear();
        if !positions.is_empty() {
            self.add_square(0, positions.len(), 2 * COORDINATE_BITS, side * side);
        }
    }

    /// Sorts points along the curve. Returns the side of the square that has all.
    fn put_in_order(&mut self, positions: &[Position]) -> f32 {
        let lowest = |axis: usize| {
            let coordinates = positions.iter().map(|position| position[axis]);
            coordinates.fold(f32::INFINITY, f32::min)
        };
        let low = [lowest(0), lowest(1)];
        let reach = |axis: usize| {
            let coordinates = positions.iter().map(|position| position[axis]);
            coordinates.fold(0.0, |most: f32, here| most.max(here - low[axis]))
        };
        let side = reach(0).max(reach(1)).max(f32::MIN_POSITIVE);
        let most = ((1_u32 << COORDINATE_BITS) - 1) as f32;
        self.order.clear();
        for (position, at) in positions.iter().zip(0..) {
            let [x, y] = [0, 1].map(|axis: usize| (position[axis] - low[axis]) / side * most);
            self.order
                .push((spread(x as u32) | spread(y as u32) << 1, at));
        }
        self.sort();
        side
    }

    /// Sorts by the number on the curve, a few bits at a time.
    fn sort(&mut self) {
        const DIGIT_BITS: u32 = 11;
        const DIGITS: usize = 1 << DIGIT_BITS;
        self.sorted.resize(self.order.len(), (0, 0));
        for shift in (0..2 * COORDINATE_BITS).step_by(DIGIT_BITS as usize) {
            let digit = |number: u32| (number >> shift) as usize % DIGITS;
            let mut places = [0; DIGITS];
            self.order
                .iter()
                .for_each(|(number, _)| places[digit(*number)] += 1);
            let mut begin = 0;
            for place in &mut places {
                begin += std::mem::replace(place, begin);
            }
            for entry in &self.order {
                let place = &mut places[digit(entry.0)];
                self.sorted[*place] = *entry;
                *place += 1;
            }
            std::mem::swap(&mut self.order, &mut self.sorted);
        }
    }

    /// Adds the square of a range of points, which have the same number on the curve but for the
    /// lowest `bits`.
    fn add_square(&mut self, begin: usize, end: usize, bits: u32, size_squared: f32) {
        let at = self.squares.len();
        self.squares.push(TreeSquare::default());
        let is_leaf = end - begin <= LEAF_POINTS || bits == 0;
        let mut sum = [0.0; 2];
        if is_leaf {
            for position in &self.positions[begin..end] {
                sum = [sum[0] + position[0], sum[1] + position[1]];
            }
        } else {
            let mut first = begin;
            while first < end {
                let quarter = self.order[first].0 >> (bits - 2);
                let others = self.order[first..end].iter();
                let points = others.take_while(|(number, _)| number >> (bits - 2) == quarter);
                let last = first + points.count();
                let child = self.squares.len();
                self.add_square(first, last, bits - 2, size_squared / 4.0);
                let TreeSquare { centre, points, .. } = self.squares[child];
                sum = [sum[0] + points * centre[0], sum[1] + points * centre[1]];
                first = last;
            }
        }
        let points = (end - begin) as f32;
        self.squares[at] = TreeSquare {
            centre: sum.map(|sum| sum / points),
            points,
            size_squared,
            next: self.squares.len(),
            begin,
            end,
            is_leaf,
        };
    }

    /// Puts the repulsion of each point into `forces`, in the order of the sample, and returns the
    /// sum of the nearness of all pairs, by which forces are divided.
    pub(crate) fn repulse(
        &mut self,
        forces: &mut [Position],
        pace: &mut LayoutPace<'_>,
    ) -> Result<f64, LayoutStopped> {
        let mut nearness = 0.0;
        let leaves = self.squares.iter().filter(|square| square.is_leaf);
        for (number, leaf) in leaves.enumerate() {
            if number % LEAVES_BETWEEN_PAUSES == 0 {
                pace.pause()?;
            }
            let points = &self.positions[leaf.begin..leaf.end];
            self.seen.look(points, &self.squares, &self.positions);
            for (position, (_, at)) in points.iter().zip(&self.order[leaf.begin..leaf.end]) {
                let repulsion = self.seen.repulse(*position);
                forces[*at as usize] = repulsion.force;
                // A point sees itself.
                nearness += f64::from(repulsion.nearness) - 1.0;
            }
        }
        Ok(nearness)
    }
}

impl SeenPoints {
    /// Looks at the tree from the points of a leaf.
    fn look(&mut self, points: &[Position], squares: &[TreeSquare], positions: &[Position]) {
        self.x.clear();
        self.y.clear();
        self.weights.clear();
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for position in points {
            for axis in [0, 1] {
                low[axis] = low[axis].min(position[axis]);
                high[axis] = high[axis].max(position[axis]);
            }
        }
        let apart = |centre: f32, low: f32, high: f32| (low - centre).max(centre - high).max(0.0);
        let mut at = 0;
        while let Some(square) = squares.get(at) {
            let dx = apart(square.centre[0], low[0], high[0]);
            let dy = apart(square.centre[1], low[1], high[1]);
            let distance_squared = dx * dx + dy * dy;
            at = if square.size_squared < SIZE_PER_DISTANCE_SQUARED * distance_squared {
                self.add(square.centre, square.points);
                square.next
            } else if square.is_leaf {
                for position in &positions[square.begin..square.end] {
                    self.add(*position, 1.0);
                }
                square.next
            } else {
                at + 1
            };
        }
        while !self.x.len().is_multiple_of(LANES) {
            self.add([0.0; 2], 0.0);
        }
    }

    fn add(&mut self, [x, y]: Position, weight: f32) {
        self.x.push(x);
        self.y.push(y);
        self.weights.push(weight);
    }

    /// The repulsion of a point by all that is seen.
    fn repulse(&self, [x, y]: Position) -> Repulsion {
        let mut force_x = [0.0_f32; LANES];
        let mut force_y = [0.0_f32; LANES];
        let mut nearness = [0.0_f32; LANES];
        let (xs, _) = self.x.as_chunks::<LANES>();
        let (ys, _) = self.y.as_chunks::<LANES>();
        let (weights, _) = self.weights.as_chunks::<LANES>();
        for ((xs, ys), weights) in xs.iter().zip(ys).zip(weights) {
            for lane in 0..LANES {
                let (dx, dy) = (x - xs[lane], y - ys[lane]);
                let near = 1.0 / (1.0 + dx * dx + dy * dy);
                let weighed = weights[lane] * near;
                nearness[lane] += weighed;
                force_x[lane] += weighed * near * dx;
                force_y[lane] += weighed * near * dy;
            }
        }
        Repulsion {
            force: [force_x.iter().sum(), force_y.iter().sum()],
            nearness: nearness.iter().sum(),
        }
    }
}

/// Puts a 0 between any two bits of a coordinate.
fn spread(coordinate: u32) -> u32 {
    let mut bits = coordinate & 0xffff;
    bits = (bits | bits << 8) & 0x00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333;
    (bits | bits << 1) & 0x5555_5555
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::RandomDraws;

    /// The repulsion by a look at all pairs.
    fn of_all_pairs(positions: &[Position]) -> (Vec<[f64; 2]>, f64) {
        let mut sum = 0.0;
        let forces = positions.iter().enumerate().map(|(one, [x, y])| {
            let mut force = [0.0; 2];
            for (other, [other_x, other_y]) in positions.iter().enumerate() {
                let (dx, dy) = (f64::from(x - other_x), f64::from(y - other_y));
                let near = 1.0 / (1.0 + dx * dx + dy * dy);
                if one != other {
                    sum += near;
                    force = [force[0] + near * near * dx, force[1] + near * near * dy];
                }
            }
            force
        });
        (forces.collect(), sum)
    }

    fn by_tree(positions: &[Position]) -> (Vec<Position>, f64) {
        let mut tree = QuadTree::default();
        tree.build(positions);
        let mut forces = vec![[0.0; 2]; positions.len()];
        let mut go_on = |_| true;
        let sum = tree
            .repulse(&mut forces, &mut LayoutPace::new(&mut go_on))
            .unwrap();
        (forces, sum)
    }

    #[test]
    fn the_tree_repels_about_as_all_pairs_do() {
        let mut draws = RandomDraws::new(3);
        for reach in [0.001, 1.0, 60.0] {
            let mut place = || {
                [
                    reach * draws.signed_unit(),
                    reach * draws.signed_unit().powi(3),
                ]
            };
            let positions: Vec<Position> = (0..1500).map(|_| place()).collect();
            let (wanted, sum) = of_all_pairs(&positions);
            let (forces, sum_by_tree) = by_tree(&positions);
            assert!(
                (sum_by_tree / sum - 1.0).abs() < 0.04,
                "{reach}: {sum_by_tree} {sum}"
            );
            let length = |force: [f64; 2]| force[0].hypot(force[1]);
            let all: f64 = wanted.iter().copied().map(length).sum();
            let wrong = wanted.iter().zip(&forces).map(|(wanted, force)| {
                length([
                    wanted[0] - f64::from(force[0]),
                    wanted[1] - f64::from(force[1]),
                ])
            });
            let wrong: f64 = wrong.sum();
            assert!(wrong < 0.05 * all, "{reach}: {wrong} of {all}");
        }
    }

    #[test]
    fn few_points_and_points_at_one_place_repel() {
        assert!(by_tree(&[]).0.is_empty());
        let (forces, sum) = by_tree(&[[5.0, 5.0]]);
        assert_eq!((forces, sum), (vec![[0.0; 2]], 0.0));
        let (forces, sum) = by_tree(&[[1.0, 1.0]; 40]);
        assert!(forces.iter().all(|force| *force == [0.0; 2]));
        assert!((sum - 40.0 * 39.0).abs() < 1e-3, "{sum}");
    }
}
