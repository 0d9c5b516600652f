//! A condition, with the values it names looked up.

use std::slice::from_ref;

use bytes::Bytes;
use value::predicate::{Collection, Comparison, Predicate, TuplePredicate};
use value::{CqlType, compare, split_elements, split_entries, validate};

use crate::candidates::{Candidates, Codes, Terms};
use crate::column::Column;
use crate::dictionary::Dictionary;
use crate::members::Members;
use crate::order::Run;
use crate::{Columns, Condition};

/// How many ids of a posting are touched in the time of one [`Conjunct::admits`].
pub(crate) const CHECK_COST: usize = 4;

/// A condition, or a part of one that is looked up by itself.
#[derive(Debug)]
pub(crate) struct Conjunct<'a> {
    pub candidates: Candidates<'a>,
    len: usize,
    check: Check<'a>,
}

/// How an id is checked.
#[derive(Debug)]
enum Check<'a> {
    /// The row has a code of the candidates. All candidates satisfy the condition.
    Codes(&'a Column),
    /// A posting of the candidates has the id. All candidates satisfy the condition.
    Postings,
    /// The condition holds for the row. All candidates satisfy it.
    Holds(&'a Condition),
    /// The condition holds for the row. It may not for a candidate.
    MayHold(&'a Condition),
    /// The row is among the members of an IN. A candidate may not be.
    IsMember(Members<'a>),
}

impl<'a> Conjunct<'a> {
    fn new(candidates: Candidates<'a>, check: Check<'a>) -> Self {
        Conjunct {
            len: candidates.len(),
            candidates,
            check,
        }
    }

    /// The conjuncts that together say a condition.
    pub fn all_of(columns: &'a Columns, condition: &'a Condition) -> Vec<Conjunct<'a>> {
        match condition {
            Condition::Column { column, predicate } => {
                vec![Conjunct::of_column(columns, column, condition, predicate)]
            }
            Condition::Tuple {
                columns: compared,
                predicate,
            } => equal_columns(columns, compared, predicate).unwrap_or_else(|| {
                vec![Conjunct::of_tuple(columns, compared, condition, predicate)]
            }),
        }
    }

    fn of_column(
        columns: &'a Columns,
        number: &'a usize,
        condition: &'a Condition,
        predicate: &'a Predicate,
    ) -> Self {
        let column = columns.column(*number);
        if let Some(candidates) = lookup(column, predicate) {
            let check = match predicate {
                Predicate::ContainsKey { .. } => Check::Postings,
                _ if candidates.listed().is_some() => Check::Codes(column),
                _ => Check::Holds(condition),
            };
            return Conjunct::new(candidates, check);
        }
        let members = match predicate {
            Predicate::In(list) => {
                let tuples = list.values().iter().map(|value| vec![&value[..]]);
                Members::new(
                    from_ref(number),
                    from_ref(list.cql_type()),
                    tuples.collect(),
                )
            }
            _ => None,
        };
        let check = members.map_or(Check::MayHold(condition), Check::IsMember);
        Conjunct::new(whole_collection(column, predicate), check)
    }

    fn of_tuple(
        columns: &'a Columns,
        compared: &'a [usize],
        condition: &'a Condition,
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
                let members = Members::new(compared, types, tuples.collect());
                (candidates.min_by_key(Candidates::len), members)
            }
        };
        let check = members.map_or(Check::MayHold(condition), Check::IsMember);
        Conjunct::new(candidates.unwrap_or(Candidates::All(columns.ids())), check)
    }

    /// The number of candidates, or more where rows have several of the terms.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all candidates satisfy the condition, or this part of it.
    pub fn is_exact(&self) -> bool {
        match self.check {
            Check::Codes(_) | Check::Postings | Check::Holds(_) => true,
            Check::MayHold(_) | Check::IsMember(_) => false,
        }
    }

    /// Whether the row of an id satisfies the condition, or this part of it.
    pub fn admits(&self, columns: &Columns, id: u32) -> bool {
        match &self.check {
            Check::Codes(column) => {
                let listed = self.candidates.listed();
                listed.is_some_and(|(_, codes)| column.has_any(id, codes))
            }
            Check::Postings => self.candidates.listed().is_some_and(|(dictionary, codes)| {
                let mut postings = codes.iter().map(|code| dictionary.posting(*code));
                postings.any(|posting| posting.contains(id))
            }),
            Check::Holds(condition) | Check::MayHold(condition) => condition.holds(columns, id),
            Check::IsMember(members) => members.contain(columns, id),
        }
    }
}

/// The conjuncts of `(a, b) = (1, 2)`, one for each column; `None` for other predicates.
fn equal_columns<'a>(
    columns: &'a Columns,
    compared: &[usize],
    predicate: &TuplePredicate,
) -> Option<Vec<Conjunct<'a>>> {
    let TuplePredicate::Compare {
        types,
        comparison: Comparison::Eq,
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
        Some(Conjunct::new(candidates, Check::Codes(column)))
    });
    parts.collect()
}

/// The ids of a column that satisfy a predicate; `None` if no term says them.
fn lookup<'a>(column: &'a Column, predicate: &Predicate) -> Option<Candidates<'a>> {
    match predicate {
        Predicate::Compare {
            cql_type,
            comparison: Comparison::Eq,
            value,
        } => having_equal(column, cql_type, vec![value]),
        Predicate::Compare {
            cql_type,
            comparison,
            value,
        } => in_run(column, cql_type, *comparison, value),
        Predicate::NotEqual { cql_type, value } => {
            match having_equal(column, cql_type, vec![value])? {
                Candidates::Having(terms) => Some(Candidates::Without(column.present(), terms)),
                Candidates::All(_) | Candidates::Without(..) => None,
            }
        }
        Predicate::In(list) => {
            let values = list.values().iter().map(|value| &value[..]);
            having_equal(column, list.cql_type(), values.collect())
        }
        Predicate::Contains { collection, value } => {
            let (Collection::List(cql_type)
            | Collection::Set(cql_type)
            | Collection::MapValues(cql_type)) = collection;
            let is_map = matches!(collection, Collection::MapValues(_));
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

fn having(dictionary: &Dictionary, mut codes: Vec<u32>) -> Candidates<'_> {
    codes.sort_unstable();
    codes.dedup();
    Candidates::Having(Terms {
        dictionary,
        codes: Codes::Listed(codes),
    })
}

/// The ids that have one of some values; `None` for a collection.
fn having_equal<'a>(
    column: &'a Column,
    cql_type: &CqlType,
    mut values: Vec<&[u8]>,
) -> Option<Candidates<'a>> {
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
    column: &'a Column,
    cql_type: &CqlType,
    comparison: Comparison,
    value: &[u8],
) -> Option<Candidates<'a>> {
    let dictionary = &column.terms;
    if column.is_collection() || dictionary.cql_type() != cql_type {
        return None;
    }
    let run = dictionary.run(comparison, value);
    let terms = |runs: Vec<Run>| Terms {
        dictionary,
        codes: Codes::Runs(runs),
    };
    let present = column.present();
    // The fewer postings are touched.
    Some(if dictionary.count(run) * 2 > present.len() {
        Candidates::Without(present, terms(dictionary.outside(run).to_vec()))
    } else {
        Candidates::Having(terms(vec![run]))
    })
}

/// The codes of the entries of a map that have a key and a value.
fn entry(column: &Column, keys: &Dictionary, key: &[u8], value: &[u8]) -> Vec<u32> {
    let mut codes = Vec::new();
    for key in keys.equal(key) {
        codes.extend(column.terms.equal_after(&key.to_be_bytes(), value));
    }
    codes
}

/// Ids among which are all whose collection satisfies a predicate on it as a whole. A collection
/// that equals another has all its elements.
fn whole_collection<'a>(column: &'a Column, predicate: &Predicate) -> Candidates<'a> {
    let rarest = match predicate {
        Predicate::Compare {
            cql_type,
            comparison: Comparison::Eq,
            value,
        } if column.is_collection() && cql_type.frozen() == column.cql_type().frozen() => {
            rarest_element(column, value)
        }
        _ => None,
    };
    rarest.unwrap_or(Candidates::All(column.present()))
}

/// The ids that have the rarest element of a collection; `None` if it has none.
fn rarest_element<'a>(column: &'a Column, collection: &[u8]) -> Option<Candidates<'a>> {
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
    candidates.min_by_key(Candidates::len)
}

/// The comparison of the first columns of tuples, given that of the tuples.
fn of_first(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Eq => Comparison::Eq,
        Comparison::Lt | Comparison::LtEq => Comparison::LtEq,
        Comparison::Gt | Comparison::GtEq => Comparison::GtEq,
    }
}
