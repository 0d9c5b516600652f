//! Compares the recall of two contenders.

use super::contenders::Searched;

/// Recall may be below hnswlib's by this much.
const ALLOWED: f64 = 0.005;
/// Recall after deletes may be below hnswlib's by this much.
const ALLOWED_AFTER_CHANGES: f64 = 0.01;

/// The comparison of our recall with hnswlib's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Our recall, less hnswlib's.
    pub difference: f64,
    /// The standard error of the difference, of the same queries.
    pub error: f64,
    /// The difference below 0 that is allowed.
    pub allowed: f64,
}

impl Verdict {
    /// Compares results of the same queries.
    pub fn new(ours: &Searched, theirs: &Searched, changed: bool) -> Verdict {
        let pairs = ours.found.iter().zip(&theirs.found);
        let differences: Vec<f64> = pairs
            .map(|(of_us, of_them)| (f64::from(*of_us) - f64::from(*of_them)) / ours.k as f64)
            .collect();
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let squares = differences.iter().map(|d| (d - mean).powi(2));
        let error = (squares.sum::<f64>() / (count - 1.0).max(1.0) / count).sqrt();
        let allowed = match changed {
            true => ALLOWED_AFTER_CHANGES,
            false => ALLOWED,
        };
        Verdict {
            difference: mean,
            error,
            allowed: allowed.max(2.0 * error),
        }
    }

    /// Whether our recall is not below hnswlib's by more than is allowed.
    pub fn passes(&self) -> bool {
        self.difference >= -self.allowed
    }

    /// The word for it in tables.
    pub fn word(&self) -> &'static str {
        match self.passes() {
            true => "PASS",
            false => "MISS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(found: &[u8]) -> Searched {
        Searched {
            ef: 128,
            k: 10,
            seconds: 1.0,
            found: found.to_vec(),
            work: None,
        }
    }

    #[test]
    fn a_small_difference_passes_and_a_large_one_misses() {
        let theirs = searched(&[10; 1_000]);
        let with_misses = |count: usize| {
            let mut found = vec![10; 1_000];
            found[..count].fill(8);
            Verdict::new(&searched(&found), &theirs, false)
        };
        assert!(with_misses(0).passes());
        assert!(with_misses(20).passes());
        let verdict = with_misses(100);
        assert!(!verdict.passes(), "{verdict:?}");
        assert!((verdict.difference + 0.02).abs() < 1e-12);
        assert!((verdict.error - 0.0019).abs() < 1e-4);
    }

    #[test]
    fn more_is_allowed_where_queries_differ_much() {
        // One query of a hundred finds nothing, which may be chance.
        let mut found = vec![10; 100];
        found[0] = 0;
        let verdict = Verdict::new(&searched(&found), &searched(&[10; 100]), false);
        assert!(verdict.passes() && verdict.difference < -0.009);
    }

    #[test]
    fn more_is_allowed_after_deletes() {
        let mut found = vec![10; 1_000];
        found[..80].fill(9);
        let compare = |changed| Verdict::new(&searched(&found), &searched(&[10; 1_000]), changed);
        assert!(!compare(false).passes());
        assert!(compare(true).passes());
    }
}
