//! Thousands of random steps beside an exact index: whatever one answers, the other has to.
//!
//! A [scenario](scenario) is an index of some metric, codes and dimensions and a seed, from which
//! every step of it follows; a [driver](driver) takes its steps. A failure names its scenario. For
//! a long run set `ANN_MODEL_STEPS`, and for other seeds `ANN_MODEL_SEED`.

mod driver;
mod scenario;

use std::collections::HashMap;

use ann::Metric;

use driver::{Driver, Recall};
use scenario::{COMBINATIONS, Scenario};

/// Steps of one scenario: about three times over the size at which an index trains.
const STEPS: usize = 2_000;

/// Steps of all scenarios, if `ANN_MODEL_STEPS` does not say otherwise: two for each combination.
const STEPS_DEFAULT: usize = 2 * COMBINATIONS * STEPS;

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Every n-th scenario, so that several tests share the cores.
fn run(part: usize, parts: usize) {
    let scenarios = setting("ANN_MODEL_STEPS", STEPS_DEFAULT).div_ceil(STEPS);
    let seed = setting("ANN_MODEL_SEED", 0);
    let mut recalls = HashMap::<Metric, Recall>::new();
    for number in (part..scenarios).step_by(parts) {
        let scenario = Scenario::numbered(seed + number);
        let mut driver = Driver::new(scenario);
        for _ in 0..STEPS {
            driver.step();
        }
        let metric = scenario.options.metric;
        recalls.entry(metric).or_default().add(driver.finish());
    }
    println!("{recalls:?}");
    for (metric, recall) in recalls {
        recall.check(walks_recall_min(metric));
    }
}

/// What walks of 100 to 300 candidates find at the least, on average. Vectors whose elements are all
/// independent are the hardest there are, and where one in twenty is three times as long as the
/// others, the dot product is harder still.
fn walks_recall_min(metric: Metric) -> f64 {
    match metric {
        Metric::Cosine | Metric::Hamming => 0.99,
        Metric::Euclidean => 0.95,
        Metric::DotProduct => 0.80,
    }
}

#[test]
fn even_scenarios() {
    run(0, 2);
}

#[test]
fn odd_scenarios() {
    run(1, 2);
}
