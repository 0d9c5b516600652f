//! Computes medians, spreads and percentiles.

/// The value in the middle, or the mean of the two in the middle. `None` if there are no values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// A median with the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of some values; `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        Some(Spread {
            median: median(&mut values)?,
            min: *values.first()?,
            max: *values.last()?,
        })
    }
}

/// The smallest value such that at least the share `p` of all values are at most as large; `None`
/// if there are no values.
pub fn percentile(values: &mut [f64], p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let place = (p * values.len() as f64).ceil() as usize;
    values.get(place.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_counts() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn one_in_a_hundred_is_above_the_99th_percentile() {
        let mut values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), Some(198.0));
        assert_eq!(percentile(&mut values, 1.0), Some(200.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
