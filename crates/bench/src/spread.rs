//! The median and the range of some values.

/// The median and the range of values that were measured in rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRange {
    /// The smallest value.
    pub least: f64,
    /// The value in the middle, or the mean of the two in the middle if their number is even.
    pub median: f64,
    /// The largest value.
    pub most: f64,
}

impl MedianRange {
    /// The spread of the finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<MedianRange> {
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let mut sorted: Vec<f64> = finite.collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        Some(MedianRange {
            least,
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            most,
        })
    }

    /// The three values, each with its name.
    pub fn figures(self) -> [(&'static str, f64); 3] {
        [
            ("median", self.median),
            ("least", self.least),
            ("most", self.most),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let of =
            |values: &[f64]| MedianRange::of(values).map(|spread| spread.figures().map(|(_, v)| v));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some([2.0, 1.0, 3.0]));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some([2.5, 1.0, 4.0]));
        assert_eq!(of(&[5.0, f64::NAN, f64::INFINITY]), Some([5.0, 5.0, 5.0]));
        assert_eq!(of(&[f64::NAN]), None);
        assert_eq!(of(&[]), None);
    }
}
