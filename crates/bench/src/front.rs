//! Estimates the time of a search at a given recall from the settings that were measured.
//!
//! A setting that another one beats in both recall and time is left out. The remaining settings are
//! the front. Between two settings of the front the logarithm of the time is taken to be linear in
//! the logarithm of `1 - recall`, which is close to how graph indexes behave. A recall below the
//! whole front costs as much as the fastest setting (with `k` neighbours requested, a beam cannot
//! be narrower than `k`). A recall above the front is not reached.

/// The recall and the time of a query with one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecallCost {
    /// Mean share of the true neighbours that were found.
    pub recall: f64,
    /// The time of a query: of a processor, or by the clock.
    pub seconds: f64,
}

/// The place of a recall on a front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecallPosition {
    /// The recall is between two settings, given by their numbers. The third value is the share of
    /// the second setting, in [0, 1].
    Between(usize, usize, f64),
    /// The recall is below that of the fastest setting of the front, given by its number.
    Below(usize),
}

/// The share of misses that counts for recall 1, since 0 has no logarithm.
const MISSES_MIN: f64 = 1e-5;

/// The numbers of the settings that no other one beats, by ascending recall and time.
pub fn front(all: &[RecallCost]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (all[a], all[b]);
        b.recall
            .total_cmp(&a.recall)
            .then(a.seconds.total_cmp(&b.seconds))
    });
    let mut fastest = f64::INFINITY;
    order.retain(|&setting| {
        let faster = all[setting].seconds < fastest;
        fastest = fastest.min(all[setting].seconds);
        faster
    });
    order.reverse();
    order
}

/// The place of `recall` on a front; `None` if it is not reached.
pub fn place(all: &[RecallCost], front: &[usize], recall: f64) -> Option<RecallPosition> {
    let above = front
        .iter()
        .position(|&setting| all[setting].recall >= recall)?;
    let high = front[above];
    if above == 0 {
        return Some(RecallPosition::Below(high));
    }
    let low = front[above - 1];
    let misses = |recall: f64| (1.0 - recall).max(MISSES_MIN).ln();
    let (low_misses, high_misses) = (misses(all[low].recall), misses(all[high].recall));
    let share = (misses(recall) - low_misses) / (high_misses - low_misses);
    Some(RecallPosition::Between(low, high, share))
}

impl RecallPosition {
    /// The time of a query at this place, from the time of each setting.
    pub fn seconds(self, of_setting: impl Fn(usize) -> f64) -> f64 {
        match self {
            RecallPosition::Below(setting) => of_setting(setting),
            RecallPosition::Between(low, high, share) => {
                let (low, high) = (of_setting(low).ln(), of_setting(high).ln());
                (low + share * (high - low)).exp()
            }
        }
    }

    /// The number of the nearest setting that reaches the recall.
    pub fn setting(self) -> usize {
        match self {
            RecallPosition::Below(setting) | RecallPosition::Between(_, setting, _) => setting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(f64, f64)]) -> Vec<RecallCost> {
        let measured = |&(recall, seconds)| RecallCost { recall, seconds };
        of.iter().map(measured).collect()
    }

    #[test]
    fn a_setting_that_another_beats_is_not_on_the_front() {
        let all = settings(&[(0.9, 1.0), (0.95, 3.0), (0.94, 3.5), (0.99, 2.5)]);
        assert_eq!(front(&all), [0, 3]);
        assert_eq!(front(&settings(&[(0.9, 1.0), (0.9, 1.0)])).len(), 1);
    }

    #[test]
    fn between_two_settings_logarithms_are_linear() {
        let all = settings(&[(0.9, 1.0), (0.999, 4.0)]);
        let place = place(&all, &front(&all), 0.99).unwrap();
        let seconds = place.seconds(|setting| all[setting].seconds);
        assert!((seconds - 2.0).abs() < 1e-9, "{seconds}");
        assert_eq!(place.setting(), 1);
    }

    #[test]
    fn a_setting_is_read_as_it_is() {
        let all = settings(&[(0.9, 1.0), (0.95, 3.0), (0.99, 4.0)]);
        for setting in &all {
            let place = place(&all, &front(&all), setting.recall).unwrap();
            let seconds = place.seconds(|setting| all[setting].seconds);
            assert!((seconds - setting.seconds).abs() < 1e-9);
        }
    }

    #[test]
    fn beyond_the_ends() {
        let all = settings(&[(0.9, 1.0), (0.95, 3.0)]);
        assert_eq!(
            place(&all, &front(&all), 0.5),
            Some(RecallPosition::Below(0))
        );
        assert_eq!(place(&all, &front(&all), 0.96), None);
    }
}
