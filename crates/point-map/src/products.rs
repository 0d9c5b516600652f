//! Products of vectors, in a form that compilers make vector instructions of.

/// Numbers that are multiplied at once.
const LANES: usize = 8;

/// The product of two vectors of one length.
pub(crate) fn product(one: &[f32], other: &[f32]) -> f32 {
    let [product] = products(one, [other]);
    product
}

/// The products of a vector with others of its length. Its elements are read once for all of them.
#[inline]
pub(crate) fn products<const N: usize>(one: &[f32], others: [&[f32]; N]) -> [f32; N] {
    let (chunks, rest) = one.as_chunks::<LANES>();
    let others = others.map(|other| other[..one.len()].as_chunks::<LANES>());
    let mut sums = [[0.0_f32; LANES]; N];
    for (at, chunk) in chunks.iter().enumerate() {
        for (sums, (other, _)) in sums.iter_mut().zip(&others) {
            for ((sum, one), other) in sums.iter_mut().zip(chunk).zip(&other[at]) {
                *sum += one * other;
            }
        }
    }
    let mut products = sums.map(|sums| sums.iter().sum());
    for (product, (_, other)) in products.iter_mut().zip(&others) {
        *product += rest
            .iter()
            .zip(*other)
            .map(|(one, other)| one * other)
            .sum::<f32>();
    }
    products
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_elements_are_multiplied_at_any_length() {
        for length in 0..40_u16 {
            let one: Vec<f32> = (0..length).map(f32::from).collect();
            let two: Vec<f32> = one.iter().map(|element| element + 1.0).collect();
            let sum = |other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
            assert_eq!(
                products(&one, [&one, &two]),
                [sum(&one), sum(&two)],
                "{length}"
            );
            assert_eq!(product(&one, &two), sum(&two));
        }
    }
}
