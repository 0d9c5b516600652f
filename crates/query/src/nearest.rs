//! The best of a stream of scored rows.

use std::cmp::Ordering;

/// Keeps the `limit` best of the items it is given, and at most twice as many (64 at least) in
/// memory.
pub struct TopScored<T> {
    limit: usize,
    scored: Vec<(f32, usize, T)>,
    seen: usize,
}

impl<T> TopScored<T> {
    /// Makes a collector without items.
    pub fn new(limit: usize) -> Self {
        TopScored {
            limit,
            scored: Vec::new(),
            seen: 0,
        }
    }

    /// Adds an item with its score.
    pub fn push(&mut self, score: f32, item: T) {
        self.scored.push((score, self.seen, item));
        self.seen += 1;
        if self.scored.len() >= self.limit.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    /// The items that are in memory, in no order.
    pub fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.scored.iter_mut().map(|(_, _, item)| item)
    }

    fn cut(&mut self) {
        self.scored
            .sort_unstable_by(|a, b| by_score(a.0, b.0).then(a.1.cmp(&b.1)));
        self.scored.truncate(self.limit);
    }

    /// The best items first. Those of equal scores stay in the order they were given; scores that
    /// are no finite numbers come last.
    pub fn into_best(mut self) -> impl Iterator<Item = T> {
        self.cut();
        self.scored.into_iter().map(|(_, _, item)| item)
    }
}

fn by_score(a: f32, b: f32) -> Ordering {
    b.is_finite()
        .cmp(&a.is_finite())
        .then_with(|| b.total_cmp(&a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_ties_stay_in_order() {
        let mut nearest = TopScored::new(4);
        for (score, item) in [
            (0.5, 'a'),
            (f32::NAN, 'b'),
            (0.9, 'c'),
            (0.5, 'd'),
            (f32::INFINITY, 'e'),
        ] {
            nearest.push(score, item);
        }
        assert_eq!(
            nearest.into_best().collect::<String>(),
            "cade".replace('e', "b")
        );
    }

    #[test]
    fn memory_stays_bounded() {
        let mut nearest = TopScored::new(3);
        for number in 0..10_000 {
            nearest.push(number as f32, number);
            assert!(nearest.scored.len() <= 64);
        }
        let best: Vec<i32> = nearest.into_best().collect();
        assert_eq!(best, [9_999, 9_998, 9_997]);
    }
}
