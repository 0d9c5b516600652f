//! Thousands of random steps beside an exact index: whatever one answers, the other has to.
//!
//! A [scenario](scenario) is an index of some codes and dimensions and a seed, from which every step
//! of it follows; a [driver](driver) takes its steps. A failure names its scenario. For a long run
//! set `ANN_MODEL_STEPS` (of every metric), and for other scenarios `ANN_MODEL_SEED`.

mod driver;
mod scenario;

use ann::Metric;

use driver::{Driver, Recall};
use scenario::Scenario;

/// Steps of one scenario: the index grows and shrinks several times.
const STEPS: usize = 2_000;

/// Steps of each metric, if `ANN_MODEL_STEPS` does not say otherwise: eight scenarios.
const STEPS_DEFAULT: usize = 16_000;

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Runs the scenarios of a metric. `walks_min` is what walks of 100 to 300 candidates find at the
/// least, on average: vectors whose elements are all independent are the hardest there are.
fn run(metric: Metric, walks_min: f64) {
    let scenarios = setting("ANN_MODEL_STEPS", STEPS_DEFAULT).div_ceil(STEPS);
    let seed = setting("ANN_MODEL_SEED", 0);
    let mut recall = Recall::default();
    for number in seed..seed + scenarios {
        let mut driver = Driver::new(Scenario::numbered(metric, number));
        for _ in 0..STEPS {
            driver.step();
        }
        recall.add(driver.finish());
    }
    println!("{metric:?}: {recall:?}");
    recall.check(walks_min);
}

#[test]
fn cosine() {
    run(Metric::Cosine, 0.99);
}

#[test]
fn euclidean() {
    run(Metric::Euclidean, 0.95);
}

/// Where one in twenty is three times as long as the others, the dot product is harder still.
#[test]
fn dot_product() {
    run(Metric::DotProduct, 0.80);
}

#[test]
fn hamming() {
    run(Metric::Hamming, 0.99);
}
