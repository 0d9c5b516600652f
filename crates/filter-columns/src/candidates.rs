//! The ids that satisfy a condition, or a few more, as postings.

use ann::IdSet;

use crate::dictionary::TermDictionary;
use crate::order::CodeRun;
use crate::posting::IdPosting;

/// Ids among which are all that satisfy a condition.
#[derive(Debug)]
pub(crate) enum CandidateIds<'a> {
    /// All ids of a set.
    All(&'a IdSet),
    /// Ids that have one of some terms.
    Having(DictionaryTerms<'a>),
    /// Ids of a set that have none of some terms.
    Without(&'a IdSet, DictionaryTerms<'a>),
}

/// Some terms of a dictionary.
#[derive(Debug)]
pub(crate) struct DictionaryTerms<'a> {
    pub dictionary: &'a TermDictionary,
    pub codes: TermCodes,
}

/// The codes of some terms.
#[derive(Debug)]
pub(crate) enum TermCodes {
    /// Codes, ascending, without repeats.
    Listed(Vec<u32>),
    /// The codes of runs that do not overlap.
    Runs(Vec<CodeRun>),
}

impl CandidateIds<'_> {
    /// The number of ids, or more where rows have several terms.
    pub fn len(&self) -> usize {
        match self {
            CandidateIds::All(ids) => ids.len(),
            CandidateIds::Having(terms) => terms.len(),
            CandidateIds::Without(ids, terms) => ids.len().saturating_sub(terms.len()),
        }
    }

    /// The dictionary and the codes of listed terms, one of which all candidates have.
    pub fn listed(&self) -> Option<(&TermDictionary, &[u32])> {
        match self {
            CandidateIds::Having(DictionaryTerms {
                dictionary,
                codes: TermCodes::Listed(codes),
            }) => Some((dictionary, codes)),
            _ => None,
        }
    }

    /// The candidates as a set.
    pub fn ids(&self) -> IdSet {
        match self {
            CandidateIds::All(ids) => (*ids).clone(),
            CandidateIds::Having(terms) => terms.ids(),
            CandidateIds::Without(ids, terms) => {
                let mut ids = (*ids).clone();
                ids -= &terms.ids();
                ids
            }
        }
    }

    /// About how many ids are touched to make the set of them.
    pub fn cost(&self) -> usize {
        match self {
            CandidateIds::All(_) => 0,
            CandidateIds::Having(terms) | CandidateIds::Without(_, terms) => terms.cost(),
        }
    }
}

impl DictionaryTerms<'_> {
    fn len(&self) -> usize {
        match &self.codes {
            TermCodes::Listed(codes) => {
                let lens = codes
                    .iter()
                    .map(|code| self.dictionary.posting(*code).len());
                lens.sum()
            }
            TermCodes::Runs(runs) => runs.iter().map(|run| self.dictionary.count(*run)).sum(),
        }
    }

    /// The ids that have one of the terms.
    fn ids(&self) -> IdSet {
        let mut ready = IdSet::default();
        let mut others = Vec::new();
        self.for_each(|posting| match posting {
            IdPosting::One(id) => others.push(*id),
            IdPosting::Few(ids) => others.extend(ids),
            IdPosting::Many(ids) => ready |= ids,
        });
        if !others.is_empty() {
            ready |= &IdSet::from_iter(others);
        }
        ready
    }

    fn for_each(&self, mut visit: impl FnMut(&IdPosting)) {
        let mut visit = |code: &u32| visit(self.dictionary.posting(*code));
        match &self.codes {
            TermCodes::Listed(codes) => codes.iter().for_each(visit),
            TermCodes::Runs(runs) => {
                for run in runs {
                    self.dictionary.codes(*run).flatten().for_each(&mut visit);
                }
            }
        }
    }

    fn cost(&self) -> usize {
        match &self.codes {
            TermCodes::Listed(codes) => {
                let costs = codes
                    .iter()
                    .map(|code| self.dictionary.posting(*code).cost());
                costs.sum()
            }
            TermCodes::Runs(_) => self.len(),
        }
    }
}
