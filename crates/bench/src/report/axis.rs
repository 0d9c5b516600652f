//! Places values on an axis.

const TICKS: usize = 6;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChartScale {
    /// Equal differences at equal distances.
    Linear,
    /// Powers of ten at equal distances; values above zero only.
    Logarithmic,
}

impl ChartScale {
    /// Whether a value has a place on the scale.
    pub(super) fn takes(self, value: f64) -> bool {
        value.is_finite() && (self == ChartScale::Linear || value > 0.0)
    }
}

/// Places values between the two ends of a line.
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// The values that are written next to the line, from the low end up.
    pub(super) ticks: Vec<f64>,
}

impl Axis {
    /// An axis for values between two ends. `from_zero` makes a linear one begin at zero.
    pub(super) fn new(scale: ChartScale, (low, high): (f64, f64), from_zero: bool) -> Axis {
        match scale {
            ChartScale::Linear => Axis::linear(low, high, from_zero),
            ChartScale::Logarithmic => Axis::logarithmic(low, high),
        }
    }

    fn linear(low: f64, high: f64, from_zero: bool) -> Axis {
        let low = if from_zero { low.min(0.0) } else { low };
        let range = if high > low {
            high - low
        } else {
            high.abs().max(1.0)
        };
        let step = round_step(range / TICKS as f64);
        let first = (low / step).floor();
        let last = (high / step).ceil().max(first + 1.0);
        let ticks: Vec<f64> = (0..=(last - first) as usize)
            .map(|at| (first + at as f64) * step)
            .collect();
        Axis {
            low: first * step,
            high: last * step,
            logarithmic: false,
            ticks,
        }
    }

    /// A logarithmic axis. Both ends must be above zero.
    fn logarithmic(low: f64, high: f64) -> Axis {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let (low, high) = (10_f64.powi(first), 10_f64.powi(last));
        // Over many powers of ten the ticks between the powers would overlap.
        let digits: &[f64] = match last - first {
            ..=3 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let ticks = (first..=last)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        Axis {
            low,
            high,
            logarithmic: true,
            ticks: ticks.filter(|tick| *tick <= high * 1.001).collect(),
        }
    }

    /// The place of a value: 0 at the low end, 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// The least of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let digits = [1.0, 2.0, 5.0];
    let fits = digits.iter().find(|digit| *digit * power >= step * 0.999);
    fits.map_or(10.0 * power, |digit| digit * power)
}

/// Writes a number with few digits.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            Axis::linear(0.0, 970.0, true).ticks,
            [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]
        );
        assert_eq!(
            Axis::logarithmic(0.3, 4.0).ticks,
            [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
        );
        assert_eq!(Axis::logarithmic(2.0, 90_000.0).ticks.len(), 6);
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(1200.0), "1200");
    }
}
