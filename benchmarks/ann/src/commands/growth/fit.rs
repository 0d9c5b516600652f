//! Fits how a quantity grows with the number of vectors.
//!
//! The slope of a straight line through the logarithms is one number for that: 1 is in proportion,
//! 0 is no growth. Beyond what was measured the quantity is extrapolated by two laws, and the truth
//! is expected between them. A power errs upwards, as the measured slope includes two effects that
//! come to an end: the step from the caches to memory, and samples of one distribution that grow
//! denser and so of higher dimension. The logarithm is what graphs promise at one dimension, and
//! errs downwards.

use super::size::Size;

/// A quantity that grows with the number of vectors.
pub struct Quantity {
    pub name: &'static str,
    /// The title of the chart that it is drawn in.
    pub chart: &'static str,
    pub unit: &'static str,
    pub of: fn(&Size) -> Option<f64>,
    pub beyond: Beyond,
}

/// How a quantity is extrapolated beyond what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beyond {
    /// In proportion to the vectors, from the largest measured number.
    Proportion,
    /// Between the two laws.
    Laws,
    /// Between the two laws for a single vector's share of it.
    LawsOfShare,
}

/// The quantities that are fitted and drawn.
pub const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "build, processor time",
        chart: "Build time against vectors",
        unit: "s",
        of: |size| Some(size.build.cpu_seconds),
        beyond: Beyond::LawsOfShare,
    },
    Quantity {
        name: "build, by the clock",
        chart: "Build time against vectors",
        unit: "s",
        of: |size| Some(size.build.wall_seconds),
        beyond: Beyond::LawsOfShare,
    },
    Quantity {
        name: "in RAM",
        chart: "Memory against vectors",
        unit: "MiB",
        of: |size| Some(size.bytes_in_ram as f64 / f64::from(1 << 20)),
        beyond: Beyond::Proportion,
    },
    Quantity {
        name: "a search at recall 0.95",
        chart: "Processor time of a search against vectors",
        unit: "µs",
        of: |size| microseconds(size, 0.95),
        beyond: Beyond::Laws,
    },
    Quantity {
        name: "a search at recall 0.99",
        chart: "Processor time of a search against vectors",
        unit: "µs",
        of: |size| microseconds(size, 0.99),
        beyond: Beyond::Laws,
    },
    Quantity {
        name: "distances at recall 0.95",
        chart: "Distances of a search against vectors",
        unit: "distances",
        of: |size| distances(size, 0.95),
        beyond: Beyond::Laws,
    },
    Quantity {
        name: "distances at recall 0.99",
        chart: "Distances of a search against vectors",
        unit: "distances",
        of: |size| distances(size, 0.99),
        beyond: Beyond::Laws,
    },
];

/// The microseconds of a search at a recall; `None` if the fastest search finds more than that. A
/// set so small has no such point.
fn microseconds(size: &Size, recall: f64) -> Option<f64> {
    let search = size
        .at(recall)
        .filter(|search| search.recall_above.is_none())?;
    Some(1e6 / search.queries_per_cpu_second.median)
}

fn distances(size: &Size, recall: f64) -> Option<f64> {
    let search = size
        .at(recall)
        .filter(|search| search.recall_above.is_none())?;
    Some(search.effort?.distances)
}

/// The number of sizes that are fitted, from the largest down. In small ones searches are as narrow
/// as they can be, and all is in caches.
const SIZES_FITTED: usize = 3;

impl Quantity {
    /// The slope through the logarithms of vectors and values; `None` if there are too few sizes.
    pub fn slope(&self, sizes: &[Size]) -> Option<f64> {
        Some(Growth::fit(Law::Power, &self.points(sizes))?.slope)
    }

    /// The range of the quantity with another number of vectors, as least and most.
    pub fn at(&self, sizes: &[Size], vectors: f64) -> Option<(f64, f64)> {
        let mut points = self.points(sizes);
        let fit = |points: &[(f64, f64)]| {
            let at = |law| Some(Growth::fit(law, points)?.at(vectors));
            Some((at(Law::Logarithm)?, at(Law::Power)?))
        };
        match self.beyond {
            Beyond::Proportion => {
                let (most, value) = *points.last()?;
                let value = value * vectors / most;
                Some((value, value))
            }
            Beyond::Laws => fit(&points),
            Beyond::LawsOfShare => {
                for (vectors, value) in &mut points {
                    *value /= *vectors;
                }
                let (from, to) = fit(&points)?;
                Some((from * vectors, to * vectors))
            }
        }
    }

    /// The points `(vectors, value)` of the sizes that are fitted.
    fn points(&self, sizes: &[Size]) -> Vec<(f64, f64)> {
        let point = |size: &Size| Some((size.vectors as f64, (self.of)(size)?));
        let points: Vec<(f64, f64)> = sizes.iter().filter_map(point).collect();
        points[points.len().saturating_sub(SIZES_FITTED)..].to_vec()
    }
}

/// A law of growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// `value = factor * vectors ^ slope`, a straight line through the logarithms of both.
    Power,
    /// `value = start + slope * ln(vectors)`, which grows by as much with every tenfold.
    Logarithm,
}

/// A line that was fitted by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    law: Law,
    pub slope: f64,
    start: f64,
}

impl Growth {
    /// Fits a line through `(vectors, value)`, all above 0. Returns `None` if there are fewer than
    /// two numbers of vectors.
    pub fn fit(law: Law, points: &[(f64, f64)]) -> Option<Growth> {
        let count = points.len() as f64;
        let lengths = || points.iter().map(|&(x, y)| (x.ln(), law.length(y)));
        let (sum_x, sum_y) = lengths().fold((0.0, 0.0), |(x, y), (lx, ly)| (x + lx, y + ly));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let variance: f64 = lengths().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let together: f64 = lengths().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        if variance.is_nan() || variance <= 0.0 {
            return None;
        }
        let slope = together / variance;
        Some(Growth {
            law,
            slope,
            start: mean_y - slope * mean_x,
        })
    }

    /// The value of the line for a number of vectors.
    pub fn at(self, vectors: f64) -> f64 {
        self.law.value(self.start + self.slope * vectors.ln())
    }
}

impl Law {
    /// The value as the line's vertical coordinate.
    fn length(self, value: f64) -> f64 {
        match self {
            Law::Power => value.ln(),
            Law::Logarithm => value,
        }
    }

    fn value(self, length: f64) -> f64 {
        match self {
            Law::Power => length.exp(),
            Law::Logarithm => length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_by_a_law_goes_on_by_it() {
        let laws: [(Law, fn(f64) -> f64, f64); 2] = [
            (Law::Power, |x| 7.0 * x.powf(1.2), 1.2),
            (Law::Logarithm, |x| 40.0 + 3.0 * x.ln(), 3.0),
        ];
        for (law, of, slope) in laws {
            let points = [1e4, 3e4, 1e5].map(|x: f64| (x, of(x)));
            let growth = Growth::fit(law, &points).unwrap();
            assert!((growth.slope - slope).abs() < 1e-9, "{growth:?}");
            assert!((growth.at(1e7) / of(1e7) - 1.0).abs() < 1e-9, "{growth:?}");
        }
    }

    #[test]
    fn one_size_has_no_slope() {
        for points in [&[][..], &[(1e4, 2.0)], &[(1e4, 2.0), (1e4, 3.0)]] {
            assert_eq!(Growth::fit(Law::Power, points), None);
        }
    }
}
