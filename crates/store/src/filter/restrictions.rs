//! The restrictions of a request by HTTP, whose values are JSON.

use bytes::Bytes;
use serde_json::Value as Json;
use store_api::ColumnsPredicate;
use store_api::types::{Filter, FilterNode, Restriction};
use value::predicate::{
    ComparisonOperator, OneOf, OneOfTuples, Predicate, SearchedCollection, TuplePredicate,
};
use value::{CqlType, from_key_json};

use super::{RestrictedColumn, TupleColumns, UnsupportedRestriction};
use crate::identity::IndexIdentity;

/// Reads the restrictions of a request for an index, and its condition.
///
/// # Errors
/// If the index does not keep a column, or a value is none of its column's type.
pub(super) fn read(
    index: &IndexIdentity,
    filter: Option<&Filter>,
) -> Result<Vec<ColumnsPredicate>, UnsupportedRestriction> {
    let Some(filter) = filter else {
        return Ok(Vec::new());
    };
    let restrictions = filter.restrictions.iter();
    let restrictions = restrictions.map(|restriction| predicate_of(index, restriction));
    let condition = filter.condition.iter();
    let condition = condition.map(|condition| predicate_of_node(index, condition));
    restrictions.chain(condition).collect()
}

fn predicate_of_node(
    index: &IndexIdentity,
    node: &FilterNode,
) -> Result<ColumnsPredicate, UnsupportedRestriction> {
    let all = |parts: &[FilterNode]| -> Result<Vec<ColumnsPredicate>, UnsupportedRestriction> {
        let parts = parts.iter();
        parts.map(|part| predicate_of_node(index, part)).collect()
    };
    Ok(match node {
        FilterNode::And(parts) => ColumnsPredicate::All(all(parts)?),
        FilterNode::Or(parts) => ColumnsPredicate::Any(all(parts)?),
        FilterNode::Not(inner) => ColumnsPredicate::Not(Box::new(predicate_of_node(index, inner)?)),
        FilterNode::Leaf(restriction) => predicate_of(index, restriction)?,
    })
}

fn predicate_of(
    index: &IndexIdentity,
    restriction: &Restriction,
) -> Result<ColumnsPredicate, UnsupportedRestriction> {
    use ComparisonOperator::{Eq, Gt, GtEq, Lt, LtEq};
    match restriction {
        Restriction::Eq { lhs, rhs } => compared(index, lhs, Eq, rhs),
        Restriction::Ne { lhs, rhs } => of_column(index, lhs, |column| {
            Ok(Predicate::NotEqual {
                cql_type: column.cql_type.clone(),
                value: column.value(rhs)?,
            })
        }),
        // The index on the text is found by its column.
        Restriction::Bm25 { lhs, rhs } => Ok(ColumnsPredicate::Words {
            column: lhs.clone(),
            index: String::new(),
            query: rhs.clone(),
        }),
        Restriction::Lt { lhs, rhs } => compared(index, lhs, Lt, rhs),
        Restriction::Le { lhs, rhs } => compared(index, lhs, LtEq, rhs),
        Restriction::Gt { lhs, rhs } => compared(index, lhs, Gt, rhs),
        Restriction::Ge { lhs, rhs } => compared(index, lhs, GtEq, rhs),
        Restriction::In { lhs, rhs } => of_column(index, lhs, |column| {
            let values = rhs.iter().map(|value| column.value(value));
            let values = values.collect::<Result<_, _>>()?;
            Ok(Predicate::In(OneOf::new(column.cql_type.clone(), values)))
        }),
        Restriction::EqTuple { lhs, rhs } => compared_tuple(index, lhs, Eq, rhs),
        Restriction::LtTuple { lhs, rhs } => compared_tuple(index, lhs, Lt, rhs),
        Restriction::LeTuple { lhs, rhs } => compared_tuple(index, lhs, LtEq, rhs),
        Restriction::GtTuple { lhs, rhs } => compared_tuple(index, lhs, Gt, rhs),
        Restriction::GeTuple { lhs, rhs } => compared_tuple(index, lhs, GtEq, rhs),
        Restriction::InTuple { lhs, rhs } => {
            let columns = TupleColumns::of(index, lhs)?;
            let tuples = rhs.iter().map(|tuple| columns.values(tuple));
            let tuples = tuples.collect::<Result<_, _>>()?;
            let list = OneOfTuples::new(columns.types(), tuples);
            Ok(tuple_of(lhs, TuplePredicate::In(list)))
        }
        Restriction::Contains { lhs, rhs } => of_column(index, lhs, |column| contains(column, rhs)),
        Restriction::ContainsKey { lhs, rhs } => of_column(index, lhs, |column| {
            let CqlType::Map { key, .. } = column.cql_type else {
                return Err(column.has_no("keys"));
            };
            Ok(Predicate::ContainsKey {
                key_type: (**key).clone(),
                key: column.part(key, rhs)?,
            })
        }),
        Restriction::Entry { lhs, key: at, rhs } => of_column(index, lhs, |column| {
            let CqlType::Map { key, value, .. } = column.cql_type else {
                return Err(column.has_no("entries"));
            };
            Ok(Predicate::Entry {
                key_type: (**key).clone(),
                value_type: (**value).clone(),
                key: column.part(key, at)?,
                value: column.part(value, rhs)?,
            })
        }),
        Restriction::TokenEq { lhs, rhs } => Ok(of_token(lhs, Eq, *rhs)),
        Restriction::TokenLt { lhs, rhs } => Ok(of_token(lhs, Lt, *rhs)),
        Restriction::TokenLe { lhs, rhs } => Ok(of_token(lhs, LtEq, *rhs)),
        Restriction::TokenGt { lhs, rhs } => Ok(of_token(lhs, Gt, *rhs)),
        Restriction::TokenGe { lhs, rhs } => Ok(of_token(lhs, GtEq, *rhs)),
    }
}

fn of_column(
    index: &IndexIdentity,
    name: &str,
    predicate: impl FnOnce(&RestrictedColumn<'_>) -> Result<Predicate, UnsupportedRestriction>,
) -> Result<ColumnsPredicate, UnsupportedRestriction> {
    let column = RestrictedColumn::of(index, name)?;
    Ok(ColumnsPredicate::Column {
        predicate: predicate(&column)?,
        column: name.to_owned(),
    })
}

fn compared(
    index: &IndexIdentity,
    name: &str,
    comparison: ComparisonOperator,
    value: &Json,
) -> Result<ColumnsPredicate, UnsupportedRestriction> {
    of_column(index, name, |column| {
        Ok(Predicate::Compare {
            cql_type: column.cql_type.clone(),
            comparison,
            value: column.value(value)?,
        })
    })
}

fn contains(
    column: &RestrictedColumn<'_>,
    element: &Json,
) -> Result<Predicate, UnsupportedRestriction> {
    let (collection, cql_type) = match column.cql_type {
        CqlType::List { element, .. } => (SearchedCollection::List((**element).clone()), element),
        CqlType::Set { element, .. } => (SearchedCollection::Set((**element).clone()), element),
        CqlType::Map { value, .. } => (SearchedCollection::MapValues((**value).clone()), value),
        _ => return Err(column.has_no("elements")),
    };
    let value = column.part(cql_type, element)?;
    Ok(Predicate::Contains { collection, value })
}

fn compared_tuple(
    index: &IndexIdentity,
    names: &[String],
    comparison: ComparisonOperator,
    values: &[Json],
) -> Result<ColumnsPredicate, UnsupportedRestriction> {
    let columns = TupleColumns::of(index, names)?;
    let predicate = TuplePredicate::Compare {
        types: columns.types(),
        comparison,
        values: columns.values(values)?,
    };
    Ok(tuple_of(names, predicate))
}

fn tuple_of(names: &[String], predicate: TuplePredicate) -> ColumnsPredicate {
    ColumnsPredicate::Tuple {
        columns: names.to_vec(),
        predicate,
    }
}

fn of_token(names: &[String], comparison: ComparisonOperator, token: i64) -> ColumnsPredicate {
    ColumnsPredicate::Token {
        columns: names.to_vec(),
        comparison,
        token,
    }
}

impl RestrictedColumn<'_> {
    fn value(&self, json: &Json) -> Result<Bytes, UnsupportedRestriction> {
        self.part(self.cql_type, json)
    }

    /// A value that is of this type in the column.
    fn part(&self, cql_type: &CqlType, json: &Json) -> Result<Bytes, UnsupportedRestriction> {
        from_key_json(cql_type, json).ok_or_else(|| UnsupportedRestriction::Value {
            column: self.name.to_owned(),
            cql_type: self.cql_type.clone(),
            value: json.clone(),
        })
    }

    fn has_no(&self, what: &'static str) -> UnsupportedRestriction {
        UnsupportedRestriction::Kind {
            column: self.name.to_owned(),
            cql_type: self.cql_type.clone(),
            what,
        }
    }
}

impl TupleColumns<'_> {
    fn values(&self, tuple: &[Json]) -> Result<Vec<Bytes>, UnsupportedRestriction> {
        let TupleColumns(columns) = self;
        if columns.len() != tuple.len() {
            return Err(self.differ_from(tuple.len()));
        }
        let values = columns.iter().zip(tuple);
        values.map(|(column, value)| column.value(value)).collect()
    }
}

/// The columns of a restriction that an index has to keep, and whether it requires them to equal
/// something.
pub(super) fn columns_of(restriction: &Restriction) -> (&[String], bool) {
    use Restriction::{
        Bm25, Contains, ContainsKey, Entry, Eq, EqTuple, Ge, GeTuple, Gt, GtTuple, In, InTuple, Le,
        LeTuple, Lt, LtTuple, Ne, TokenEq, TokenGe, TokenGt, TokenLe, TokenLt,
    };
    match restriction {
        Bm25 { .. } => (&[], false),
        Eq { lhs, .. } | In { lhs, .. } => (std::slice::from_ref(lhs), true),
        Ne { lhs, .. }
        | Lt { lhs, .. }
        | Le { lhs, .. }
        | Gt { lhs, .. }
        | Ge { lhs, .. }
        | Contains { lhs, .. }
        | ContainsKey { lhs, .. }
        | Entry { lhs, .. } => (std::slice::from_ref(lhs), false),
        EqTuple { lhs, .. } | InTuple { lhs, .. } => (lhs, true),
        LtTuple { lhs, .. }
        | LeTuple { lhs, .. }
        | GtTuple { lhs, .. }
        | GeTuple { lhs, .. }
        | TokenEq { lhs, .. }
        | TokenLt { lhs, .. }
        | TokenLe { lhs, .. }
        | TokenGt { lhs, .. }
        | TokenGe { lhs, .. } => (lhs, false),
    }
}

/// The number of values in a filter. A tuple has as many as it has elements.
pub(crate) fn values_of(filter: &Filter) -> usize {
    use Restriction::{
        Bm25, Contains, ContainsKey, Entry, Eq, EqTuple, Ge, GeTuple, Gt, GtTuple, In, InTuple, Le,
        LeTuple, Lt, LtTuple, Ne, TokenEq, TokenGe, TokenGt, TokenLe, TokenLt,
    };
    let values = filter
        .all_restrictions()
        .map(|restriction| match restriction {
            Eq { .. }
            | Ne { .. }
            | Bm25 { .. }
            | Lt { .. }
            | Le { .. }
            | Gt { .. }
            | Ge { .. }
            | Contains { .. }
            | ContainsKey { .. }
            | TokenEq { .. }
            | TokenLt { .. }
            | TokenLe { .. }
            | TokenGt { .. }
            | TokenGe { .. } => 1,
            Entry { .. } => 2,
            In { rhs, .. }
            | EqTuple { rhs, .. }
            | LtTuple { rhs, .. }
            | LeTuple { rhs, .. }
            | GtTuple { rhs, .. }
            | GeTuple { rhs, .. } => rhs.len(),
            InTuple { rhs, .. } => rhs.iter().map(Vec::len).sum(),
        });
    values.sum()
}
