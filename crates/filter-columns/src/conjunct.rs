//! A condition, with the values it names looked up.

use std::slice::from_ref;

use bytes::Bytes;
use value::predicate::{ComparisonOperator, Predicate, SearchedCollection, TuplePredicate};
use value::{CqlType, compare, split_elements, split_entries, validate};

use crate::candidates::{CandidateIds, DictionaryTerms, TermCodes};
use crate::column::TermColumn;
use crate::dictionary::TermDictionary;
use crate::members::SortedTuples;
use crate::order::CodeRun;
use crate::{FilterColumns, FilterCondition};

/// How many ids of a posting are touched in the time of one [`Conjunct::admits`].
pub(crate) const CHECK_COST: usize = 4;

/// A condition, or a part of one that is looked up by itself.
#[derive(Debug)]
pub(crate) struct Conjunct<'a> {
    pub candidates: CandidateIds<'a>,
    len: usize,
    check: IdCheck<'a>,
}

/// How an id is checked.
#[derive(Debug)]
enum IdCheck<'a> {
    /// The row has a code of the candidates. All candidates satisfy the condition.
    Codes(&'a TermColumn),
    /// A posting of the candidates has the id. All candidates satisfy the condition.
    Postings,
    /// The condition holds for the row. All candidates satisfy it.
    Holds(&'a FilterCondition),
    /// The condition holds for the row. It may not for a candidate.
    MayHold(&'a FilterCondition),
    /// The row is among the members of an IN. A candidate may not be.
    IsMember(SortedTuples<'a>),
}

impl<'a> Conjunct<'a> {
    fn new(candidates: CandidateIds<'a>, check: IdCheck<'a>) -> Self {
        Conjunct {
            len: candidates.len(),
            candidates,
            check,
        }
    }

    /// The conjuncts that together say a condition.
    pub fn all_of(columns: &'a FilterColumns, condition: &'a FilterCondition) -> Vec<Conjunct<'a>> {
        match condition {
            FilterCondition::Column { column, predicate } => {
                vec![Conjunct::of_column(columns, column, condition, predicate)]
            }
            FilterCondition::Tuple {
                columns: compared,
                predicate,
            } => equal_columns(columns, compared, predicate).unwrap_or_else(|| {
                vec![Conjunct::of_tuple(columns, compared, condition, predicate)]
            }),
        }
    }

    fn of_column(
        columns: &'a FilterColumns,
        number: &'a usize,
        condition: &'a FilterCondition,
        predicate: &'a Predicate,
    ) -> Self {
        let column = columns.column(*number);
        if let Some(candidates) = lookup(column, predicate) {
            let check = match predicate {
                Predicate::ContainsKey { .. } => IdCheck::Postings,
                _ if candidates.listed().is_some() => IdCheck::Codes(column),
                _ => IdCheck::Holds(condition),
            };
            return Conjunct::new(candidates, check);
        }
        let members = match predicate {
            Predicate::In(list) => {
                let tuples = list.values().iter().map(|value| vec![&value[..]]);
                SortedTuples::new(
                    from_ref(number),
                    from_ref(list.cql_type()),
                    tuples.collect(),
                )
            }
            _ => None,
        };
        let check = members.map_or(IdCheck::MayHold(condition), IdCheck::IsMember);
        Conjunct::new(whole_collection(column, predicate), check)
    }

    fn of_tuple(
        columns: &'a FilterColumns,
        compared: &'a [usize],
        condition: &'a FilterCondition,
        predicate: &'a TuplePredicate,
    ) -> Self {
        let column = |position: usize| Some(columns.column(*compared.get(position)?));
        let (candidates, members) = match predicate {
            // The first column decides, unless it has its value itself.
            TuplePredicate::Compare {
                types,
                comparison,
                values,
            } => {
                let first = column(0).zip(types.first().zip(values.first()));
                let candidates = first.and_then(|(column, (cql_type, value))| {
                    in_run(column, cql_type, of_first(*comparison), value)
                });
                (candidates, None)
            }
            // Every column must have one of its values.
            TuplePredicate::In(list) => {
                let (types, tuples) = (list.types(), list.tuples());
                let candidates = types.iter().enumerate().filter_map(|(position, cql_type)| {
                    let values = tuples.iter().map(|tuple| tuple.get(position));
                    let values = values.map(|value| value.map(|value| &value[..]));
                    having_equal(column(position)?, cql_type, values.collect::<Option<_>>()?)
                });
                let slices = |tuple: &'a Vec<_>| tuple.iter().map(|value: &Bytes| &value[..]);
                let tuples = tuples.iter().map(|tuple| slices(tuple).collect());
                let members = SortedTuples::new(compared, types, tuples.collect());
                (candidates.min_by_key(CandidateIds::len), members)
            }
        };
        let check = members.map_or(IdCheck::MayHold(condition), IdCheck::IsMember);
        Conjunct::new(
            candidates.unwrap_or(CandidateIds::All(columns.ids())),
            check,
        )
    }

    /// The number of candidates, or more where rows have several of the terms.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all candidates satisfy the condition, or this part of it.
    pub fn is_exact(&self) -> bool {
        match self.check {
            IdCheck::Codes(_) | IdCheck::Postings | IdCheck::Holds(_) => true,
            IdCheck::MayHold(_) | IdCheck::IsMember(_) => false,
        }
    }

    /// Whether the row of an id satisfies the condition, or this part of it.
    pub fn admits(&self, columns: &FilterColumns, id: u32) -> bool {
        match &self.check {
            IdCheck::Codes(column) => {
                let listed = self.candidates.listed();
                listed.is_some_and(|(_, codes)| column.has_any(id, codes))
            }
            IdCheck::Postings => self.candidates.listed().is_some_and(|(dictionary, codes)| {
                let mut postings = codes.iter().map(|code| dictionary.posting(*code));
                postings.any(|posting| posting.contains(id))
            }),
            IdCheck::Holds(condition) | IdCheck::MayHold(condition) => condition.holds(columns, id),
            IdCheck::IsMember(members) => members.contain(columns, id),
        }
    }
}

/// The conjuncts of `(a, b) = (1, 2)`, one for each column; `None` for other predicates.
fn equal_columns<'a>(
    columns: &'a FilterColumns,
    compared: &[usize],
    predicate: &TuplePredicate,
) -> Option<Vec<Conjunct<'a>>> {
    let TuplePredicate::Compare {
        types,
        comparison: ComparisonOperator::Eq,
        values,
    } = predicate
    else {
        return None;
    };
    if compared.len() != types.len() || values.len() != types.len() || types.is_empty() {
        return None;
    }
    let parts = compared.iter().zip(types.iter().zip(values));
    let parts = parts.map(|(column, (cql_type, value))| {
        let column = columns.column(*column);
        let candidates = having_equal(column, cql_type, vec![value])?;
        Some(Conjunct::new(candidates, IdCheck::Codes(column)))
    });
    parts.collect()
}

/// The ids of a column that satisfy a predicate; `None` if no term says them.
fn lookup<'a>(column: &'a TermColumn, predicate: &Predicate) -> Option<CandidateIds<'a>> {
    match predicate {
        Predicate::Compare {
            cql_type,
            comparison: ComparisonOperator::Eq,
            value,
        } => having_equal(column, cql_type, vec![value]),
        Predicate::Compare {
            cql_type,
            comparison,
            value,
        } => in_run(column, cql_type, *comparison, value),
        Predicate::NotEqual { cql_type, value } => {
            match having_equal(column, cql_type, vec![value])? {
                CandidateIds::Having(terms) => Some(CandidateIds::Without(column.present(), terms)),
                CandidateIds::All(_) | CandidateIds::Without(..) => None,
            }
        }
        Predicate::In(list) => {
            let values = list.values().iter().map(|value| &value[..]);
            having_equal(column, list.cql_type(), values.collect())
        }
        Predicate::Contains { collection, value } => {
            let (SearchedCollection::List(cql_type)
            | SearchedCollection::Set(cql_type)
            | SearchedCollection::MapValues(cql_type)) = collection;
            let is_map = matches!(collection, SearchedCollection::MapValues(_));
            let fits = column.is_collection()
                && column.keys.is_some() == is_map
                && column.terms.cql_type() == cql_type;
            fits.then(|| having(&column.terms, column.terms.equal(value)))
        }
        Predicate::Like(_) => None,
        Predicate::ContainsKey { key_type, key } => {
            let keys = column.keys.as_ref()?;
            (keys.cql_type() == key_type).then(|| having(keys, keys.equal(key)))
        }
        Predicate::Entry {
            key_type,
            value_type,
            key,
            value,
        } => {
            let keys = column.keys.as_ref()?;
            let fits = keys.cql_type() == key_type && column.terms.cql_type() == value_type;
            fits.then(|| having(&column.terms, entry(column, keys, key, value)))
        }
    }
}

fn having(dictionary: &TermDictionary, mut codes: Vec<u32>) -> CandidateIds<'_> {
    codes.sort_unstable();
    codes.dedup();
    CandidateIds::Having(DictionaryTerms {
        dictionary,
        codes: TermCodes::Listed(codes),
    })
}

/// The ids that have one of some values; `None` for a collection.
fn having_equal<'a>(
    column: &'a TermColumn,
    cql_type: &CqlType,
    mut values: Vec<&[u8]>,
) -> Option<CandidateIds<'a>> {
    if column.is_collection() || column.terms.cql_type() != cql_type {
        return None;
    }
    // Neighbours in the order are found faster one after the other. Bytes that are no values have
    // no order, and equal no value.
    values.retain(|value| validate(cql_type, value).is_ok());
    values.sort_unstable_by(|a, b| compare(cql_type, a, b));
    let codes = values.iter().flat_map(|value| column.terms.equal(value));
    Some(having(&column.terms, codes.collect()))
}

/// The ids that have a value for which a comparison holds; `None` for a collection.
fn in_run<'a>(
    column: &'a TermColumn,
    cql_type: &CqlType,
    comparison: ComparisonOperator,
    value: &[u8],
) -> Option<CandidateIds<'a>> {
    let dictionary = &column.terms;
    if column.is_collection() || dictionary.cql_type() != cql_type {
        return None;
    }
    let run = dictionary.run(comparison, value);
    let terms = |runs: Vec<CodeRun>| DictionaryTerms {
        dictionary,
        codes: TermCodes::Runs(runs),
    };
    let present = column.present();
    // The fewer postings are touched.
    Some(if dictionary.count(run) * 2 > present.len() {
        CandidateIds::Without(present, terms(dictionary.outside(run).to_vec()))
    } else {
        CandidateIds::Having(terms(vec![run]))
    })
}

/// The codes of the entries of a map that have a key and a value.
fn entry(column: &TermColumn, keys: &TermDictionary, key: &[u8], value: &[u8]) -> Vec<u32> {
    let mut codes = Vec::new();
    for key in keys.equal(key) {
        codes.extend(column.terms.equal_after(&key.to_be_bytes(), value));
    }
    codes
}

/// Ids among which are all whose collection satisfies a predicate on it as a whole. A collection
/// that equals another has all its elements.
fn whole_collection<'a>(column: &'a TermColumn, predicate: &Predicate) -> CandidateIds<'a> {
    let rarest = match predicate {
        Predicate::Compare {
            cql_type,
            comparison: ComparisonOperator::Eq,
            value,
        } if column.is_collection() && cql_type.frozen() == column.cql_type().frozen() => {
            rarest_element(column, value)
        }
        _ => None,
    };
    rarest.unwrap_or(CandidateIds::All(column.present()))
}

/// The ids that have the rarest element of a collection; `None` if it has none.
fn rarest_element<'a>(column: &'a TermColumn, collection: &[u8]) -> Option<CandidateIds<'a>> {
    let codes: Vec<_> = match &column.keys {
        None => {
            let elements = split_elements(collection).ok()?.into_iter();
            elements.map(|value| column.terms.equal(&value)).collect()
        }
        Some(keys) => {
            let entries = split_entries(collection).ok()?.into_iter();
            let codes = entries.map(|(key, value)| entry(column, keys, &key, &value));
            codes.collect()
        }
    };
    let candidates = codes.into_iter().map(|codes| having(&column.terms, codes));
    candidates.min_by_key(CandidateIds::len)
}

/// The comparison of the first columns of tuples, given that of the tuples.
fn of_first(comparison: ComparisonOperator) -> ComparisonOperator {
    match comparison {
        ComparisonOperator::Eq => ComparisonOperator::Eq,
        ComparisonOperator::Lt | ComparisonOperator::LtEq => ComparisonOperator::LtEq,
        ComparisonOperator::Gt | ComparisonOperator::GtEq => ComparisonOperator::GtEq,
    }
}
