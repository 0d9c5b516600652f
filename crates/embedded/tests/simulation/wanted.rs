//! Filters of searches, and the rows that satisfy them.

use store_api::types::{Filter, Restriction};

use crate::model::{Key, Shown};
use crate::random::Random;

/// A filter on the columns of the table, each of which it may leave alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    partition: Option<i32>,
    clustering_from: Option<i32>,
    number_below: Option<i32>,
}

impl Wanted {
    /// A random filter. `by_number` says whether it may restrict the column of numbers.
    pub fn random(random: &mut Random, by_number: bool) -> Wanted {
        let mut perhaps = |end| random.one_in(3).then(|| random.below(end) as i32);
        Wanted {
            partition: perhaps(3),
            clustering_from: perhaps(4),
            number_below: perhaps(100).filter(|_| by_number),
        }
    }

    /// Whether it restricts the column of numbers, which is none of the key.
    pub fn is_by_number(&self) -> bool {
        self.number_below.is_some()
    }

    pub fn holds(&self, key: Key, (_, number): Shown) -> bool {
        self.partition.is_none_or(|partition| key.0 == partition)
            && self.clustering_from.is_none_or(|from| key.1 >= from)
            && self
                .number_below
                .is_none_or(|below| number.is_some_and(|number| number < below))
    }

    /// The filter in the words of the index service.
    pub fn filter(&self) -> Filter {
        let partition = self.partition.map(|value| Restriction::Eq {
            lhs: "p".to_owned(),
            rhs: value.into(),
        });
        let clustering = self.clustering_from.map(|value| Restriction::Ge {
            lhs: "c".to_owned(),
            rhs: value.into(),
        });
        let number = self.number_below.map(|value| Restriction::Lt {
            lhs: "n".to_owned(),
            rhs: value.into(),
        });
        Filter {
            restrictions: [partition, clustering, number]
                .into_iter()
                .flatten()
                .collect(),
            allow_filtering: true,
        }
    }
}
