//! A condition, with the values it names looked up.

use std::sync::OnceLock;

use ann::IdSet;
use value::predicate::{Collection, Comparison, Predicate, TuplePredicate};
use value::{CqlType, split_elements, split_entries};

use crate::candidates::{Candidates, Codes, Terms};
use crate::column::Column;
use crate::dictionary::Dictionary;
use crate::order::Run;
use crate::{Columns, Condition};

/// How many ids of a posting are touched in the time of one [`Conjunct::admits`].
pub(crate) const CHECK_COST: usize = 4;
/// Number of postings up to which each is asked whether it has an id.
const MOST_ASKED: usize = 4;

/// A condition, or a part of one that is looked up alone.
#[derive(Debug)]
pub(crate) struct Conjunct<'a> {
    condition: &'a Condition,
    pub candidates: Candidates<'a>,
    /// Whether the candidates are the ids that satisfy the condition, or this part of it.
    pub is_exact: bool,
    len: usize,
    /// The column whose rows have the codes of the candidates.
    coded: Option<&'a Column>,
    /// The codes of the candidates, made when first needed.
    codes: OnceLock<IdSet>,
}

impl<'a> Conjunct<'a> {
    fn new(condition: &'a Condition, candidates: Candidates<'a>, is_exact: bool) -> Self {
        Conjunct {
            condition,
            len: candidates.len(),
            candidates,
            is_exact,
            coded: None,
            codes: OnceLock::new(),
        }
    }

    /// The conjuncts that together say a condition.
    pub fn all_of(columns: &'a Columns, condition: &'a Condition) -> Vec<Conjunct<'a>> {
        match condition {
            Condition::Column { column, predicate } => {
                let column = columns.column(*column);
                vec![Conjunct::of_column(column, condition, predicate)]
            }
            Condition::Tuple {
                columns: compared,
                predicate,
            } => Conjunct::of_tuple(columns, compared, condition, predicate),
        }
    }

    fn of_column(column: &'a Column, condition: &'a Condition, predicate: &'a Predicate) -> Self {
        let Some(candidates) = lookup(column, predicate) else {
            let (candidates, is_exact) = (whole_collection(column, predicate), false);
            return Conjunct::new(condition, candidates, is_exact);
        };
        let is_of_keys = matches!(predicate, Predicate::ContainsKey { .. });
        Conjunct {
            coded: (!is_of_keys).then_some(column),
            ..Conjunct::new(condition, candidates, true)
        }
    }

    fn of_tuple(
        columns: &'a Columns,
        compared: &[usize],
        condition: &'a Condition,
        predicate: &'a TuplePredicate,
    ) -> Vec<Conjunct<'a>> {
        let equal = |position: usize, cql_type: &CqlType, values: &[&[u8]]| {
            let column = columns.column(*compared.get(position)?);
            having_equal(column, cql_type, values)
        };
        match predicate {
            // Each column must have its value, so each is a term of its own.
            TuplePredicate::Compare {
                types,
                comparison: Comparison::Eq,
                values,
            } if !values.is_empty() && types.len() == values.len() => {
                let parts = types.iter().zip(values).enumerate();
                let parts =
                    parts.map(|(position, (cql_type, value))| equal(position, cql_type, &[value]));
                let parts: Option<Vec<_>> = parts.collect();
                if let Some(parts) = parts {
                    return parts
                        .into_iter()
                        .map(|candidates| Conjunct::new(condition, candidates, true))
                        .collect();
                }
            }
            // The first column decides, unless it has its value itself.
            TuplePredicate::Compare {
                types,
                comparison,
                values,
            } => {
                let first = compared.first().zip(types.first().zip(values.first()));
                let candidates = first.and_then(|(column, (cql_type, value))| {
                    let column = columns.column(*column);
                    in_run(column, cql_type, of_first(*comparison), value)
                });
                if let Some(candidates) = candidates {
                    return vec![Conjunct::new(condition, candidates, false)];
                }
            }
            // Every column must have one of its values.
            TuplePredicate::In { types, tuples } => {
                let candidates = types.iter().enumerate().filter_map(|(position, cql_type)| {
                    let values = tuples.iter().map(|tuple| tuple.get(position));
                    let values = values.map(|value| value.map(|value| &value[..]));
                    let values: Option<Vec<_>> = values.collect();
                    equal(position, cql_type, &values?)
                });
                if let Some(rarest) = candidates.min_by_key(Candidates::len) {
                    return vec![Conjunct::new(condition, rarest, false)];
                }
            }
        }
        vec![Conjunct::new(
            condition,
            Candidates::All(columns.ids()),
            false,
        )]
    }

    /// The number of candidates, or more where rows have several of the terms.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the row of an id satisfies the condition, or this part of it.
    pub fn admits(&self, columns: &Columns, id: u32) -> bool {
        if let Candidates::Having(terms) = &self.candidates
            && let Codes::Listed(codes) = &terms.codes
            && self.is_exact
        {
            if codes.len() <= MOST_ASKED {
                let has = |code: &u32| terms.dictionary.posting(*code).contains(id);
                return codes.iter().any(has);
            }
            if let Some(column) = self.coded {
                let codes = self.codes.get_or_init(|| codes.iter().copied().collect());
                return column.has_any(id, codes);
            }
        }
        self.condition.holds(columns, id)
    }
}

/// The ids of a column that satisfy a predicate; `None` if no term says them.
fn lookup<'a>(column: &'a Column, predicate: &Predicate) -> Option<Candidates<'a>> {
    match predicate {
        Predicate::Compare {
            cql_type,
            comparison: Comparison::Eq,
            value,
        } => having_equal(column, cql_type, &[value]),
        Predicate::Compare {
            cql_type,
            comparison,
            value,
        } => in_run(column, cql_type, *comparison, value),
        Predicate::NotEqual { cql_type, value } => {
            match having_equal(column, cql_type, &[value])? {
                Candidates::Having(terms) => Some(Candidates::Without(column.present(), terms)),
                Candidates::All(_) | Candidates::Without(..) => None,
            }
        }
        Predicate::In { cql_type, values } => {
            let values = Vec::from_iter(values.iter().map(|value| &value[..]));
            having_equal(column, cql_type, &values)
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

fn having(dictionary: &Dictionary, codes: Vec<u32>) -> Candidates<'_> {
    Candidates::Having(Terms {
        dictionary,
        codes: Codes::Listed(codes),
    })
}

/// The ids that have one of some values; `None` for a collection.
fn having_equal<'a>(
    column: &'a Column,
    cql_type: &CqlType,
    values: &[&[u8]],
) -> Option<Candidates<'a>> {
    if column.is_collection() || column.terms.cql_type() != cql_type {
        return None;
    }
    let mut codes = Vec::with_capacity(values.len());
    for value in values {
        codes.extend(column.terms.equal(value));
    }
    codes.sort_unstable();
    codes.dedup();
    Some(having(&column.terms, codes))
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
