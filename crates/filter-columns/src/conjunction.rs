//! Conditions all of which a row must satisfy.

use ann::IdSet;

use crate::conjunct::{CHECK_COST, Conjunct};
use crate::{FilterColumns, FilterCondition};

/// Conditions all of which a row must satisfy, with the values they name looked up in the columns.
///
/// [`Conjunction::select`] takes time by the rows that satisfy the rarest condition, and
/// [`Conjunction::matches`] a fraction of a microsecond, also where an IN has many values.
#[derive(Debug)]
pub struct Conjunction<'a> {
    columns: &'a FilterColumns,
    /// The conditions, the rarest first.
    conjuncts: Vec<Conjunct<'a>>,
}

impl FilterColumns {
    /// Looks up the values that conditions name, all of which a row must satisfy. No condition
    /// is satisfied by every id that has a row.
    pub fn resolve<'a>(&'a self, conditions: &'a [FilterCondition]) -> Conjunction<'a> {
        Conjunction::new(self, conditions)
    }

    /// Whether the row of an id satisfies all conditions. For many ids a [`Conjunction`] is faster.
    pub fn matches(&self, id: u32, conditions: &[FilterCondition]) -> bool {
        let mut conditions = conditions.iter();
        self.ids().contains(id) && conditions.all(|condition| condition.holds(self, id))
    }
}

impl<'a> Conjunction<'a> {
    fn new(columns: &'a FilterColumns, conditions: &'a [FilterCondition]) -> Self {
        let conjuncts = conditions.iter();
        let conjuncts = conjuncts.flat_map(|condition| Conjunct::all_of(columns, condition));
        let mut conjuncts = conjuncts.collect::<Vec<_>>();
        conjuncts.sort_by_key(Conjunct::len);
        Conjunction { columns, conjuncts }
    }

    /// An upper bound of the number of ids that [`Conjunction::select`] finds: the number for the
    /// rarest condition, exact for a comparison, an inequality or an IN on a column that is no
    /// collection.
    pub fn estimate(&self) -> usize {
        let rarest = self.conjuncts.first().map(Conjunct::len);
        rarest.unwrap_or(self.columns.ids().len())
    }

    /// The ids whose rows satisfy all conditions.
    pub fn select(&self) -> IdSet {
        let Some(rarest) = self.conjuncts.first() else {
            return self.columns.ids().clone();
        };
        let mut selected = rarest.candidates.ids();
        for (at, conjunct) in self.conjuncts.iter().enumerate() {
            let is_done = at == 0 && conjunct.is_exact();
            if is_done || selected.is_empty() {
                continue;
            }
            if conjunct.is_exact() && conjunct.candidates.cost() < selected.len() * CHECK_COST {
                selected &= &conjunct.candidates.ids();
            } else {
                let admitted = selected
                    .iter()
                    .filter(|id| conjunct.admits(self.columns, *id));
                selected = admitted.collect();
            }
        }
        selected
    }

    /// Whether the row of an id satisfies all conditions.
    pub fn matches(&self, id: u32) -> bool {
        let mut conjuncts = self.conjuncts.iter();
        self.columns.ids().contains(id)
            && conjuncts.all(|conjunct| conjunct.admits(self.columns, id))
    }
}
