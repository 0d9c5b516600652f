//! The ids that satisfy a condition, or a few more, as postings.

use ann::IdSet;

use crate::dictionary::Dictionary;
use crate::order::Run;
use crate::posting::Posting;

/// Ids among which are all that satisfy a condition.
#[derive(Debug)]
pub(crate) enum Candidates<'a> {
    /// All ids of a set.
    All(&'a IdSet),
    /// Ids that have one of some terms.
    Having(Terms<'a>),
    /// Ids of a set that have none of some terms.
    Without(&'a IdSet, Terms<'a>),
}

/// Some terms of a dictionary.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub dictionary: &'a Dictionary,
    pub codes: Codes,
}

/// The codes of some terms.
#[derive(Debug)]
pub(crate) enum Codes {
    /// Codes, ascending, without repeats.
    Listed(Vec<u32>),
    /// The codes of runs that do not overlap.
    Runs(Vec<Run>),
}

impl Candidates<'_> {
    /// The number of ids, or more where rows have several terms.
    pub fn len(&self) -> usize {
        match self {
            Candidates::All(ids) => ids.len(),
            Candidates::Having(terms) => terms.len(),
            Candidates::Without(ids, terms) => ids.len().saturating_sub(terms.len()),
        }
    }

    /// The dictionary and the codes of listed terms, one of which all candidates have.
    pub fn listed(&self) -> Option<(&Dictionary, &[u32])> {
        match self {
            Candidates::Having(Terms {
                dictionary,
                codes: Codes::Listed(codes),
            }) => Some((dictionary, codes)),
            _ => None,
        }
    }

    /// The candidates as a set.
    pub fn ids(&self) -> IdSet {
        match self {
            Candidates::All(ids) => (*ids).clone(),
            Candidates::Having(terms) => terms.ids(),
            Candidates::Without(ids, terms) => {
                let mut ids = (*ids).clone();
                ids -= &terms.ids();
                ids
            }
        }
    }

    /// About how many ids are touched to make the set of them.
    pub fn cost(&self) -> usize {
        match self {
            Candidates::All(_) => 0,
            Candidates::Having(terms) | Candidates::Without(_, terms) => terms.cost(),
        }
    }
}

impl Terms<'_> {
    fn len(&self) -> usize {
        match &self.codes {
            Codes::Listed(codes) => {
                let lens = codes
                    .iter()
                    .map(|code| self.dictionary.posting(*code).len());
                lens.sum()
            }
            Codes::Runs(runs) => runs.iter().map(|run| self.dictionary.count(*run)).sum(),
        }
    }

    /// The ids that have one of the terms.
    fn ids(&self) -> IdSet {
        let mut ready = IdSet::default();
        let mut others = Vec::new();
        self.for_each(|posting| match posting {
            Posting::One(id) => others.push(*id),
            Posting::Few(ids) => others.extend(ids),
            Posting::Many(ids) => ready |= ids,
        });
        if !others.is_empty() {
            ready |= &IdSet::from_iter(others);
        }
        ready
    }

    fn for_each(&self, mut visit: impl FnMut(&Posting)) {
        let mut visit = |code: &u32| visit(self.dictionary.posting(*code));
        match &self.codes {
            Codes::Listed(codes) => codes.iter().for_each(visit),
            Codes::Runs(runs) => {
                for run in runs {
                    self.dictionary.codes(*run).flatten().for_each(&mut visit);
                }
            }
        }
    }

    fn cost(&self) -> usize {
        match &self.codes {
            Codes::Listed(codes) => {
                let costs = codes
                    .iter()
                    .map(|code| self.dictionary.posting(*code).cost());
                costs.sum()
            }
            Codes::Runs(_) => self.len(),
        }
    }
}
