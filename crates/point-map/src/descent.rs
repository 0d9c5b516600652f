//! The way of points to the balance of attraction and repulsion: steps down a gradient, with
//! momentum and a gain for each coordinate, as in the first paper on t-SNE.

use crate::Position;
use crate::affinity::NeighbourWeights;
use crate::drawing::RandomDraws;
use crate::nearest::PAIR_STEPS;
use crate::pace::{LayoutPace, LayoutStopped};
use crate::principal::AXIS_STEPS;
use crate::quad_tree::QuadTree;

/// The number of steps.
pub(crate) const STEPS: usize = 500;

/// The number of first steps in which points attract each other more, so that groups come together
/// before they are in each other's way.
const GATHERING_STEPS: usize = 200;

/// How many times as much points attract each other in these steps.
const GATHERING: f32 = 6.0;

/// The part of a move that goes on in the next step, in the first steps and later.
const MOMENTUM: (f32, f32) = (0.5, 0.8);

/// The length of a step is the number of points divided by this (Belkina and others: Automated
/// optimized parameters for t-SNE, 2019), or the least one.
const POINTS_PER_RATE: f32 = 12.0;
const RATE_MIN: f32 = 10.0;

/// The most that a coordinate moves in a step. Only few points of strange data would move as far.
const MOVE_MAX: f32 = 5.0;

/// The deviation of the first positions, at which attraction is the same for all, and a part of it
/// by which those of equal vectors differ.
const BEGIN_DEVIATION: f32 = 1e-4;
const BEGIN_SPREAD: f32 = 0.1;

/// The points of a map on their way.
#[derive(Debug)]
pub(crate) struct Descent {
    positions: Vec<Position>,
    moves: Vec<Position>,
    gains: Vec<Position>,
    forces: Vec<Position>,
    tree: QuadTree,
}

impl Descent {
    /// Begins near the places of the vectors along their principal components.
    pub(crate) fn begin(axes: &[Position], draws: &mut RandomDraws) -> Descent {
        let squares = axes.iter().map(|[along, _]| f64::from(*along).powi(2));
        let deviation = (squares.sum::<f64>() / axes.len().max(1) as f64).sqrt();
        let factor = if deviation > 0.0 {
            f64::from(BEGIN_DEVIATION) / deviation
        } else {
            0.0
        };
        let mut place = |along: f32| {
            let apart = BEGIN_DEVIATION * BEGIN_SPREAD * draws.signed_unit();
            (f64::from(along) * factor) as f32 + apart
        };
        let positions = axes.iter().map(|[x, y]| [place(*x), place(*y)]);
        let positions: Vec<Position> = positions.collect();
        Descent {
            moves: vec![[0.0; 2]; positions.len()],
            gains: vec![[1.0; 2]; positions.len()],
            forces: vec![[0.0; 2]; positions.len()],
            tree: QuadTree::default(),
            positions,
        }
    }

    /// Takes all steps.
    pub(crate) fn run(
        &mut self,
        weights: &NeighbourWeights,
        pace: &mut LayoutPace<'_>,
    ) -> Result<(), LayoutStopped> {
        // One point has nothing to be attracted by.
        if self.positions.len() < 2 {
            return pace.reach(PAIR_STEPS + AXIS_STEPS + STEPS as u64);
        }
        for step in 0..STEPS {
            self.step(step < GATHERING_STEPS, weights, pace)?;
            pace.reach(PAIR_STEPS + AXIS_STEPS + step as u64 + 1)?;
        }
        Ok(())
    }

    /// The positions now.
    pub(crate) fn positions(&self) -> &[Position] {
        &self.positions
    }

    fn step(
        &mut self,
        gathers: bool,
        weights: &NeighbourWeights,
        pace: &mut LayoutPace<'_>,
    ) -> Result<(), LayoutStopped> {
        self.tree.build(&self.positions);
        let nearness = self.tree.repulse(&mut self.forces, pace)?;
        let gathering = if gathers { GATHERING } else { 1.0 };
        let per_nearness = nearness.max(f64::MIN_POSITIVE).recip() as f32;
        for (at, force) in self.forces.iter_mut().enumerate() {
            let [x, y] = self.positions[at];
            let mut attraction = [0.0; 2];
            for neighbour in weights.of(at) {
                let [other_x, other_y] = self.positions[neighbour.at as usize];
                let (dx, dy) = (x - other_x, y - other_y);
                let near = neighbour.weight / (1.0 + dx * dx + dy * dy);
                attraction = [attraction[0] + near * dx, attraction[1] + near * dy];
            }
            *force = [0, 1].map(|axis: usize| {
                4.0 * (gathering * attraction[axis] - force[axis] * per_nearness)
            });
        }
        let momentum = if gathers { MOMENTUM.0 } else { MOMENTUM.1 };
        self.go(momentum);
        Ok(())
    }

    /// Moves all points against the gradient in `forces`, and puts their mean back in the middle.
    fn go(&mut self, momentum: f32) {
        let points = self.positions.len() as f32;
        let rate = (points / POINTS_PER_RATE).max(RATE_MIN);
        let mut sums = [0.0_f64; 2];
        let rows = self.positions.iter_mut().zip(&mut self.moves);
        for (((position, moves), gains), forces) in rows.zip(&mut self.gains).zip(&self.forces) {
            for axis in [0, 1] {
                let goes_on = (forces[axis] > 0.0) != (moves[axis] > 0.0);
                gains[axis] = match goes_on {
                    true => gains[axis] + 0.2,
                    false => (gains[axis] * 0.8).max(0.01),
                };
                let next = momentum * moves[axis] - rate * gains[axis] * forces[axis];
                moves[axis] = next.clamp(-MOVE_MAX, MOVE_MAX);
                position[axis] += moves[axis];
                sums[axis] += f64::from(position[axis]);
            }
        }
        let mean = sums.map(|sum| (sum / f64::from(points)) as f32);
        for position in &mut self.positions {
            *position = [position[0] - mean[0], position[1] - mean[1]];
        }
    }
}
