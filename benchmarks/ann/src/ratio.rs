//! Reads off the speed of a contender at a recall, and its ratio to the baseline's.

use contender::Effort;

use crate::statistics::Spread;
use crate::sweep::{Curve, Scope};

/// The recalls that results are given for.
pub const RECALLS: [f64; 4] = [0.90, 0.95, 0.98, 0.99];

/// The speed of a contender at one recall.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Queries a second of processor time, in the median round.
    pub qps: f64,
    /// The ratio to the baseline's queries a second of processor time, over the rounds.
    pub ratio: Option<Spread>,
    /// The ratio to the baseline's queries a second by the clock, over the rounds.
    pub wall_ratio: Option<Spread>,
    /// The recall of the fastest width, if even that is above the recall asked for.
    pub recall_above: Option<f64>,
    /// The effort of the nearest width that reaches the recall.
    pub effort: Option<Effort>,
}

/// Reads off the speed of a contender at a recall, beside the baseline. Returns `None` if the
/// contender does not reach it.
pub fn read(
    curve: &Curve,
    baseline: Option<&Curve>,
    scope: &Scope,
    (k, rounds): (usize, usize),
    recall: f64,
) -> Option<Reading> {
    let place = curve.place(scope, k, recall)?;
    let setting = &curve.settings[place.setting()];
    let ratio = |of: fn(contender::Elapsed) -> f64| {
        let baseline = baseline?;
        let base_place = baseline.place(scope, k, recall)?;
        let of_round = |round| {
            let base = base_place.seconds(|s| of(baseline.settings[s].of_round(scope, round)));
            base / place.seconds(|s| of(curve.settings[s].of_round(scope, round)))
        };
        Spread::of((0..rounds).map(of_round).collect())
    };
    let reached = setting.recall(scope, k);
    let below = matches!(place, annulus_bench::front::RecallPosition::Below(_)) && reached > recall;
    Some(Reading {
        qps: 1.0 / place.seconds(|s| curve.settings[s].seconds(scope).unwrap_or(f64::NAN)),
        ratio: ratio(|elapsed| elapsed.cpu_seconds),
        wall_ratio: ratio(|elapsed| elapsed.wall_seconds),
        recall_above: below.then_some(reached),
        effort: setting.effort,
    })
}
