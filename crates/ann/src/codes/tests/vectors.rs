//! Random vectors, and exact arithmetic on them.

/// Random numbers without a dependency.
pub(super) struct Source(pub(super) u64);

impl Source {
    /// Uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = (self.0 ^ (self.0 >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller, 1958.
    fn gaussian(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.gaussian() as f32).collect()
    }
}

pub(super) fn unit(vector: &[f32]) -> Vec<f32> {
    let length = dot(vector, vector).sqrt();
    vector
        .iter()
        .map(|&x| (f64::from(x) / length) as f32)
        .collect()
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y));
    products.sum()
}

pub(super) fn minus(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}

pub(super) fn squared_l2(a: &[f32], b: &[f32]) -> f64 {
    let difference = minus(a, b);
    dot(&difference, &difference)
}

/// Vectors off the origin, in a few clusters and of uneven energy, as embeddings are.
pub(super) fn clustered(source: &mut Source, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    let offset = source.vector(dimensions);
    let centres: Vec<_> = (0..10).map(|_| source.vector(dimensions)).collect();
    let vector = |i: usize| {
        let noise = source.vector(dimensions);
        let element = |j: usize| {
            let uneven = 3.0 / (1.0 + j as f32 / 8.0);
            2.0 * offset[j] + uneven * centres[i % 10][j] + 0.5 * noise[j]
        };
        unit(&(0..dimensions).map(element).collect::<Vec<_>>())
    };
    (0..count).map(vector).collect()
}

pub(super) fn gaussian(source: &mut Source, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    (0..count).map(|_| source.vector(dimensions)).collect()
}
