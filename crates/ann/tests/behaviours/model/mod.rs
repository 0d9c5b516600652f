//! Thousands of random steps in an index and in an exact one, which have to give the same answers.
//!
//! A [scenario](scenario) is an index of some codes and dimensions and a seed, from which all its
//! steps follow; a [driver](driver) takes the steps. A failure names its scenario. For a long run
//! set `ANN_MODEL_STEPS` (of every metric), and for other scenarios `ANN_MODEL_SEED`.

mod driver;
mod scenario;

use ann::DistanceMetric;
use driver::{Driver, Recall};
use scenario::Scenario;

/// Number of steps of one scenario: the index grows and shrinks several times.
const STEPS: usize = 2_000;

/// Number of steps of each metric, if `ANN_MODEL_STEPS` does not say otherwise: eight scenarios.
const STEPS_DEFAULT: usize = 16_000;

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Runs the scenarios of a metric, of another kind of data each. `walks_min` is the least average
/// recall of walks of 100 to 300 candidates.
fn run(metric: DistanceMetric, walks_min: f64) {
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
    run(DistanceMetric::Cosine, 0.99);
}

#[test]
fn euclidean() {
    run(DistanceMetric::Euclidean, 0.99);
}

/// The dot product is harder where some vectors are much longer than others.
#[test]
fn dot_product() {
    run(DistanceMetric::DotProduct, 0.98);
}

#[test]
fn hamming() {
    run(DistanceMetric::Hamming, 0.99);
}
