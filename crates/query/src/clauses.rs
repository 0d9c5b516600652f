//! Checks of the clauses that a nearest-neighbour SELECT must not have together with its ordering.

use cql::ast::{ComparisonSubject, ProjectionList, Select, Selector, Term};
use cql::error::CqlError;
use value::CqlType;

use crate::bounds::wrong_dimensions;
use crate::ordering::SearchForm;

/// The aggregate functions that every cluster has.
const AGGREGATES: [&str; 5] = ["count", "min", "max", "sum", "avg"];

/// The error for a column that the table does not have.
pub fn unknown_column(column: &str, (keyspace, table): (&str, &str)) -> CqlError {
    CqlError::invalid(format!(
        "Unrecognized name {column}: Undefined column name {column} in table {keyspace}.{table}"
    ))
}

/// The dimensions of the column that a query orders by.
///
/// # Errors
/// If the column is no vector of floats.
pub fn float_vector_dimensions(column: &str, cql_type: &CqlType) -> Result<u16, CqlError> {
    cql_type.float_vector_dimensions().ok_or_else(|| {
        CqlError::invalid(format!(
            "ANN ordering is only supported on float vector indexes: it requires a float vector argument, but column \
             {column} is of type {cql_type}"
        ))
    })
}

/// The error for an ordering by vectors of a column without an index on them.
pub fn no_vector_index(column: &str) -> CqlError {
    CqlError::invalid(format!(
        "ANN ordering by vector requires the column to be indexed using 'vector_index', but column {column} is not"
    ))
}

/// The error for words of a column without an index on them.
pub fn no_text_index(column: &str) -> CqlError {
    CqlError::invalid(format!(
        "BM25 requires the column to be indexed using 'fulltext_index', but column {column} is not"
    ))
}

/// Checks the clauses of a query. `vector_columns` are the columns whose vectors it searches, and
/// `has_aggregates` says whether its selection calls an aggregate function.
///
/// # Errors
/// The first clause that such a query can't have.
pub fn check(
    select: &Select,
    form: SearchForm,
    vector_columns: &[&str],
    has_aggregates: bool,
) -> Result<(), CqlError> {
    let fault = if select.per_partition_limit.is_some() {
        "do not support per-partition limits"
    } else if has_aggregates || !select.group_by.is_empty() {
        "cannot be run with aggregation"
    } else if select.distinct {
        "do not support DISTINCT"
    } else if vector_columns
        .iter()
        .any(|column| restricts(select, column))
    {
        return Err(CqlError::invalid("Vector indexes only support ANN queries"));
    } else {
        return Ok(());
    };
    Err(CqlError::invalid(format!("{} {fault}", form.queries())))
}

fn restricts(select: &Select, column: &str) -> bool {
    let mut relations = select.relations.iter();
    relations.any(
        |relation| matches!(&relation.subject, ComparisonSubject::Column(name) if name == column),
    )
}

/// Whether a selection calls an aggregate function that every cluster has.
pub fn calls_aggregate(projection: &ProjectionList) -> bool {
    match projection {
        ProjectionList::All => false,
        ProjectionList::Items(items) => items.iter().any(|item| is_aggregate(&item.selector)),
    }
}

fn is_aggregate(selector: &Selector) -> bool {
    match selector {
        Selector::CountAll => true,
        Selector::Function(call) => {
            let native = matches!(call.keyspace.as_deref(), None | Some("system"));
            (native && AGGREGATES.contains(&call.name.as_str()))
                || call.arguments.iter().any(is_aggregate)
        }
        Selector::Cast { selector, .. }
        | Selector::Field { selector, .. }
        | Selector::Element { selector, .. }
        | Selector::Slice { selector, .. }
        | Selector::Hint { selector, .. } => is_aggregate(selector),
        Selector::Tuple(parts) | Selector::List(parts) | Selector::Set(parts) => {
            parts.iter().any(is_aggregate)
        }
        Selector::Entries(entries) => {
            let mut entries = entries.iter();
            entries.any(|(key, value)| is_aggregate(key) || is_aggregate(value))
        }
        Selector::Column(_) | Selector::Time { .. } | Selector::Term(_) => false,
    }
}

/// Compares the dimensions of the vector looked for with those of the column, if the vector shows
/// its own: as a list, or as a term of a known type (`natural_type`).
///
/// # Errors
/// If the dimensions differ.
pub fn check_dimensions(
    vector: &Term,
    natural_type: Option<&CqlType>,
    dimensions: u16,
) -> Result<(), CqlError> {
    let shown = match vector.without_parentheses() {
        Term::List(elements) => Some(elements.len()),
        _ => natural_type
            .and_then(CqlType::float_vector_dimensions)
            .map(usize::from),
    };
    match shown {
        Some(shown) if shown != usize::from(dimensions) => Err(wrong_dimensions(dimensions, shown)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;

    use super::*;

    fn checked(clauses: &str, has_aggregates: bool) -> Result<(), CqlError> {
        let text = format!("SELECT id FROM t {clauses}");
        match parse_statement(&text).unwrap().statement {
            Statement::Select(select) => check(&select, SearchForm::Vector, &["v"], has_aggregates),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clauses_that_make_no_sense_are_named() {
        for (clauses, text) in [
            ("PER PARTITION LIMIT 1 LIMIT 3", "per-partition limits"),
            ("GROUP BY id LIMIT 3", "with aggregation"),
            ("WHERE v = [1] LIMIT 3", "only support ANN queries"),
        ] {
            let error = checked(clauses, false).unwrap_err();
            assert!(error.message.contains(text), "{clauses}: {error}");
        }
        assert!(checked("LIMIT 3", true).is_err());
        assert_eq!(checked("LIMIT 3", false), Ok(()));
    }

    #[test]
    fn dimensions_are_compared_where_they_show() {
        let list = Term::List(vec![Term::Null, Term::Null]);
        assert_eq!(check_dimensions(&list, None, 2), Ok(()));
        assert!(check_dimensions(&list, None, 3).is_err());
        assert_eq!(check_dimensions(&Term::Null, None, 3), Ok(()));
        let typed = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 2,
        };
        assert!(check_dimensions(&Term::Null, Some(&typed), 3).is_err());
    }
}
