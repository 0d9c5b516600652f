//! The kernels without SIMD, which define in plain Rust what each kernel computes.
//!
//! They are the oracle of the other sets, and the set of a processor that has none of those. Sums
//! of floats run in lanes, which are more exact, and which compilers turn into vector code.

mod codes;
mod quantize;
mod vectors;

use super::Kernels;

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    dots_u4: codes::dots_u4,
    dots_u8: codes::dots_u8,
    squared_l2s_f32: codes::squared_l2s_f32,
    dots_f32: codes::dots_f32,
    differing_bits: codes::differing_bits,
    dot_f32: vectors::dot_f32,
    squared_l2_f32: vectors::squared_l2_f32,
    dot_f64: vectors::dot_f64,
    squared_l2_f64: vectors::squared_l2_f64,
    dot_f16: vectors::dot_f16,
    squared_l2_f16: vectors::squared_l2_f16,
    dot_bf16: vectors::dot_bf16,
    squared_l2_bf16: vectors::squared_l2_bf16,
    dot_i8: vectors::dot_i8,
    hamming: vectors::hamming,
    max_abs: quantize::max_abs,
    quantize_i8: quantize::quantize_i8,
    quantize_u4: quantize::quantize_u4,
};
