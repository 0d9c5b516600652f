//! The distance kernels: the inner loops of walks, rescoring, exact scans and encoding.
//!
//! Each kernel exists once for every instruction set, under the same contract, and [`Kernels`] is
//! the table of one set. [`kernels`] gives the best table for this processor; it is chosen once and
//! stored. The scalar set in `scalar.rs` is the definition of what each kernel computes and the
//! oracle that the others are tested against.
//!
//! Two kinds of kernel:
//!
//! - **Walk codes.** A walk compares one query with all unseen neighbours of a node at once, a hop.
//!   Their codes are scattered in memory, so most of a hop is waiting for it: the kernels take the
//!   whole hop, work on four codes at a time (each load of the query serves four) and prefetch the
//!   codes that come after (`hop.rs`).
//! - **Full vectors**, of any length and at any alignment.
//!
//! # Agreement of the sets
//!
//! - Integers agree to the bit: `dots_u4`, `dots_u8`, `differing_bits`, `hamming`.
//! - What is stored or answered agrees to the bit too, so that it does not depend on the processor:
//!   `quantize_*` and the `*_f64` kernels sum in the same lanes and the same order everywhere, and
//!   fuse no multiplication with an addition unless the product is exact.
//! - Sums in `f32` differ in order and in fusing. Each is within `(n / 16 + 8) 2^-24 S + n 2^-149`
//!   of the real value, `n` the number of elements and `S` the sum of the absolute values of the
//!   terms: `n / 16` additions in a lane, 4 that fold the lanes, and the roundings of a term.
//! - Overflow gives infinity or NaN, never a panic.

/// A safe way into a kernel, for the tables that only `detect` hands out.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! enter {
    ($kernel:path, $($argument:ident),+) => {
        |$($argument),+| {
            // SAFETY: `detect` hands out the table only where the processor has what it needs.
            unsafe { $kernel($($argument),+) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod half;
mod hop;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

pub(crate) use hop::prefetch_bytes;

/// The variable that lowers the choice of [`kernels`] to the set it names, if the processor can run
/// it.
const CHOICE_VARIABLE: &str = "ANN_KERNELS";

/// Compares a query with each of several codes, and writes one result a code.
///
/// # Safety
///
/// Each code points to as many readable bytes as the query's length calls for, aligned to 64, and
/// no one writes them meanwhile. What follows a code is prefetched, but not read.
///
/// # Panics
///
/// If there are not as many results as codes, or the query's length is no multiple of what the
/// kernel requires.
pub(crate) type HopKernel<Query, Result> =
    unsafe fn(query: &[Query], codes: &[*const u8], out: &mut [Result]);

/// Compares two vectors of one length; panics if they differ in length.
pub(crate) type PairKernel<Left, Right, Result> = fn(&[Left], &[Right]) -> Result;

/// The distance kernels of one instruction set.
pub(crate) struct Kernels {
    /// The name of the set: `scalar`, `avx2`, `avx512` or `neon`.
    pub name: &'static str,

    /// The sum of `nibble * query`, exactly. The query has `128 n` elements, a code `64 n` bytes:
    /// in its 64-byte block `b`, byte `j` holds dimension `128 b + j` in the low nibble and
    /// `128 b + 64 + j` in the high one. At most 2^20 dimensions.
    pub dots_u4: HopKernel<i8, i32>,
    /// The sum of `byte * query`, exactly, bytes being 0 to 255. The query has `64 n` elements, a
    /// code as many bytes. At most 2^16 dimensions.
    pub dots_u8: HopKernel<i8, i32>,
    /// Squared Euclidean distance. The query has `16 n` elements, a code as many `f32`.
    pub squared_l2s_f32: HopKernel<f32, f32>,
    /// Dot product. The query has `16 n` elements, a code as many `f32`.
    pub dots_f32: HopKernel<f32, f32>,
    /// The number of differing bits. The query has `64 n` bytes, a code as many.
    pub differing_bits: HopKernel<u8, u32>,

    /// Dot product, summed in `f32`.
    pub dot_f32: PairKernel<f32, f32, f32>,
    /// Squared Euclidean distance, summed in `f32`.
    pub squared_l2_f32: PairKernel<f32, f32, f32>,
    /// Dot product, multiplied and summed in `f64`: the distances of answers.
    pub dot_f64: PairKernel<f32, f32, f64>,
    /// Squared Euclidean distance, subtracted, squared and summed in `f64`.
    pub squared_l2_f64: PairKernel<f32, f32, f64>,
    /// Dot product of a query and a vector stored as the bits of half floats.
    pub dot_f16: PairKernel<f32, u16, f32>,
    /// Squared Euclidean distance of a query and a vector stored as the bits of half floats.
    pub squared_l2_f16: PairKernel<f32, u16, f32>,
    /// Dot product of a query and a vector stored as the bits of bfloat16s.
    pub dot_bf16: PairKernel<f32, u16, f32>,
    /// Squared Euclidean distance of a query and a vector stored as the bits of bfloat16s.
    pub squared_l2_bf16: PairKernel<f32, u16, f32>,
    /// Dot product of a query and a vector stored as signed bytes.
    pub dot_i8: PairKernel<f32, i8, f32>,
    /// The number of differing bits.
    pub hamming: PairKernel<u8, u8, u32>,

    /// The largest absolute value; 0 if there are no values. NaN is passed over.
    pub max_abs: fn(&[f32]) -> f32,
    /// Writes `round(value * factor)`, cut to -127..=127, and returns the sum of what it wrote.
    ///
    /// Here and below, halves round to the even integer, NaN becomes the lowest level, and the
    /// output has one element for each value (panics otherwise).
    pub quantize_i8: fn(values: &[f32], factor: f32, out: &mut [i8]) -> i32,
    /// Writes `nibble = round(value * factor + 7.5)`, cut to 0..=15, in the layout of `dots_u4`
    /// (`128 n` values, `64 n` bytes), and returns the sum of `value * (nibble - 7.5)`.
    pub quantize_u4: fn(values: &[f32], factor: f32, out: &mut [u8]) -> f32,
}

/// The best kernels for this processor, chosen once. `ANN_KERNELS=scalar|avx2|avx512|neon` in the
/// environment picks another set, to measure it; a name that the processor can't run is ignored.
pub(crate) fn kernels() -> &'static Kernels {
    static CHOSEN: LazyLock<&Kernels> = LazyLock::new(|| {
        let asked = std::env::var(CHOICE_VARIABLE).ok();
        choose(&supported(), asked.as_deref())
    });
    *CHOSEN
}

/// Every set this processor can run, the slowest (scalar) first and the fastest last.
pub(crate) fn supported() -> Vec<&'static Kernels> {
    #[cfg(target_arch = "x86_64")]
    let faster = [avx2::detect(), avx512::detect()];
    #[cfg(target_arch = "aarch64")]
    let faster = [neon::detect()];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let faster: [Option<&'static Kernels>; 0] = [];
    let scalar = std::iter::once(&scalar::KERNELS);
    scalar.chain(faster.into_iter().flatten()).collect()
}

fn choose(supported: &[&'static Kernels], asked: Option<&str>) -> &'static Kernels {
    let named = supported.iter().find(|set| asked == Some(set.name));
    named.or(supported.last()).unwrap_or(&&scalar::KERNELS)
}
