//! Comparison of every set with the scalar one.

mod codes;
mod quantize;
mod vectors;

use proptest::prelude::*;

use super::{HopKernel, Kernels, supported};

/// Codes as they are in blocks: aligned, apart from each other, each with a line after it.
pub(super) struct Codes {
    lines: Vec<Line>,
    /// Lines from one code to the next.
    stride: usize,
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Codes {
    /// All codes have the same length, whole lines.
    pub(super) fn new(codes: &[impl AsRef<[u8]>]) -> Codes {
        let length = codes.first().map_or(0, |code| code.as_ref().len());
        let stride = length / 64 + 1;
        let mut lines = Vec::with_capacity(stride * codes.len());
        for code in codes {
            let (code, []) = code.as_ref().as_chunks() else {
                panic!("codes are whole lines")
            };
            lines.extend(code.iter().map(|&line| Line(line)));
            lines.push(Line([0xa5; 64]));
        }
        Codes { lines, stride }
    }

    pub(super) fn pointers(&self) -> Vec<*const u8> {
        let codes = self.lines.chunks(self.stride);
        codes.map(|code| code.as_ptr().cast()).collect()
    }
}

/// The results of a kernel for these codes, none of which is shorter than the query calls for.
fn run<Q, R: Clone + Default>(kernel: HopKernel<Q, R>, query: &[Q], codes: &Codes) -> Vec<R> {
    let codes = codes.pointers();
    let mut out = vec![R::default(); codes.len()];
    // SAFETY: `Codes` holds whole lines, and the tests give codes of the length of their query.
    unsafe { kernel(query, &codes, &mut out) };
    out
}

fn float_bytes(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|float| float.to_ne_bytes())
        .collect()
}

/// The sets other than the scalar one. On a processor without any the tests have nothing to
/// compare.
fn scalar_and_others() -> (&'static Kernels, Vec<&'static Kernels>) {
    let mut sets = supported();
    let scalar = sets.remove(0);
    assert_eq!(scalar.name, "scalar");
    (scalar, sets)
}

/// Elements of many magnitudes, zeros and denormals among them.
fn element() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![
        8 => -1.0f32..1.0,
        2 => -1e4f32..1e4,
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(1e-40), Just(-1e-45), Just(1e-20), Just(3e4)],
    ]
}

fn signed_byte() -> impl Strategy<Value = i8> + Clone {
    prop_oneof![4 => any::<i8>(), 1 => prop_oneof![Just(-128i8), Just(127), Just(0)]]
}

fn byte() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![4 => any::<u8>(), 1 => prop_oneof![Just(0xffu8), Just(0xf0), Just(0x0f), Just(0)]]
}

/// Checks that the sum of these terms is within the bound that the module states.
fn assert_near(name: &str, sum: f32, terms: impl Iterator<Item = f64> + Clone) {
    let n = terms.clone().count() as f64;
    let exact: f64 = terms.clone().sum();
    let absolute: f64 = terms.map(f64::abs).sum();
    let bound = (n / 16.0 + 8.0) * 2f64.powi(-24) * absolute + n * 2f64.powi(-149);
    let error = (f64::from(sum) - exact).abs();
    assert!(
        error <= bound,
        "{name}: {sum} for {exact}: {error:e} above {bound:e}"
    );
}

fn products<'a>(a: &'a [f32], b: &'a [f32]) -> impl Iterator<Item = f64> + Clone + 'a {
    a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y))
}

fn squares<'a>(a: &'a [f32], b: &'a [f32]) -> impl Iterator<Item = f64> + Clone + 'a {
    let pairs = a.iter().zip(b);
    pairs.map(|(&x, &y)| (f64::from(x) - f64::from(y)).powi(2))
}

#[test]
fn the_choice_is_the_best_set_or_the_one_asked_for() {
    let sets = supported();
    let best = sets[sets.len() - 1].name;
    for set in &sets {
        assert_eq!(super::choose(&sets, Some(set.name)).name, set.name);
    }
    assert_eq!(super::choose(&sets, None).name, best);
    assert_eq!(super::choose(&sets, Some("abacus")).name, best);
}
