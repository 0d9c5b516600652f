//! The ordering of a SELECT: by clustering columns, or by similarity, whichever way that is
//! written: `v ANN OF ?` or `ANN(v, ?)`.

use cql::ast::{self, FunctionCall, Select, Selector, Term};
use cql::error::CqlError;

use crate::ann_options::AnnOptions;
use crate::functions::astra;

/// The ordering of a SELECT's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowOrdering<'a> {
    /// Rows come in the order of the disk, or as these clustering columns say.
    Clustering(&'a [ast::OrderByItem]),
    /// Rows come by similarity, the most similar first.
    Nearest(NearestTo<'a>),
}

/// An ordering by the similarity of a column's vectors to one vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearestTo<'a> {
    /// The vector column.
    pub column: &'a str,
    /// The vector to look for.
    pub vector: &'a Term,
    /// The options of the search.
    pub options: AnnOptions,
}

impl<'a> RowOrdering<'a> {
    /// Reads the ORDER BY clause of a SELECT, and its `WITH ann_options`.
    ///
    /// # Errors
    /// As [`is_nearest`], and if an ordering by similarity is written in a way that makes no sense
    /// or requests the most distant. Also for unknown options, and for any options with other
    /// orderings.
    pub fn of(select: &'a Select) -> Result<RowOrdering<'a>, CqlError> {
        let order_by = &select.order_by[..];
        if is_nearest(order_by)? {
            let (column, vector) = nearest_to(order_by)?;
            Ok(RowOrdering::Nearest(NearestTo {
                column,
                vector,
                options: AnnOptions::of(select)?,
            }))
        } else {
            AnnOptions::none_of(select)?;
            Ok(RowOrdering::Clustering(order_by))
        }
    }
}

/// Whether the ordering is by similarity.
///
/// # Errors
/// Fails for orderings by functions that are no similarity, and for several orderings with one.
pub fn is_nearest(order_by: &[ast::OrderByItem]) -> Result<bool, CqlError> {
    let (mut similarities, mut has_bm25, mut others) = (0, false, 0);
    for ordering in order_by {
        match ordering {
            ast::OrderByItem::Column { .. } => others += 1,
            ast::OrderByItem::Ann { .. } => similarities += 1,
            ast::OrderByItem::Function { function, .. } => match native_name(function) {
                Some("ann") => similarities += 1,
                Some("bm25") => {
                    similarities += 1;
                    has_bm25 = true;
                }
                _ => {
                    return Err(astra::refused(&function.name).unwrap_or_else(|| {
                        CqlError::invalid(
                            "Only ANN() and BM25() are supported as scoring functions in ORDER BY",
                        )
                    }));
                }
            },
        }
    }
    let fault = if similarities > 1 && has_bm25 {
        "BM25 and ANN cannot be combined in the same query"
    } else if similarities > 1 {
        "Cannot specify more than one similarity ordering"
    } else if similarities == 1 && others > 0 {
        "ANN ordering does not support any other ordering"
    } else if has_bm25 {
        "BM25 ordering is not supported by Annulus yet"
    } else {
        return Ok(similarities == 1);
    };
    Err(CqlError::invalid(fault))
}

/// The name of a function of the database itself. In a keyspace, a user's function may have that
/// name.
fn native_name(call: &FunctionCall<Selector>) -> Option<&str> {
    let is_native = call.keyspace.as_deref().is_none_or(|name| name == "system");
    is_native.then_some(call.name.as_str())
}

/// The columns that orderings by similarity name, whether or not the orderings make sense.
pub fn similarity_columns(order_by: &[ast::OrderByItem]) -> impl Iterator<Item = &str> {
    order_by.iter().filter_map(|ordering| match ordering {
        ast::OrderByItem::Column { .. } => None,
        ast::OrderByItem::Ann { column, .. } => Some(column.as_str()),
        ast::OrderByItem::Function { function, .. } => match function.arguments.first() {
            Some(Selector::Column(column)) => Some(column.as_str()),
            _ => None,
        },
    })
}

/// The column and the vector of an ordering by similarity.
fn nearest_to(order_by: &[ast::OrderByItem]) -> Result<(&str, &Term), CqlError> {
    let (column, vector, descending) = match order_by {
        [
            ast::OrderByItem::Ann {
                column,
                vector,
                descending,
            },
        ] => (column.as_str(), vector, *descending),
        [
            ast::OrderByItem::Function {
                function,
                descending,
            },
        ] => {
            let (column, vector) = function_arguments(function)?;
            (column, vector, *descending)
        }
        _ => {
            return Err(CqlError::invalid(
                "Cannot specify more than one similarity ordering",
            ));
        }
    };
    if descending {
        return Err(CqlError::invalid(
            "Descending ANN ordering is not supported",
        ));
    }
    Ok((column, vector))
}

fn function_arguments(call: &FunctionCall<Selector>) -> Result<(&str, &Term), CqlError> {
    match call.arguments.as_slice() {
        [Selector::Column(column), Selector::Term(vector)] => Ok((column, vector)),
        [_, _] => Err(CqlError::invalid(
            "ANN() in ORDER BY takes a column and a vector, in this order",
        )),
        arguments => Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function ann: 2 required but {} provided",
            arguments.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;

    use super::*;

    fn select(order: &str) -> Select {
        let text = format!("SELECT id FROM t ORDER BY {order} LIMIT 3");
        match parse_statement(&text).unwrap().statement {
            Statement::Select(select) => select,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_ways_of_writing_mean_the_same() {
        for order in [
            "v ANN OF ?",
            "ANN(v, ?)",
            "system.ann(v, ?)",
            "v ann of ? ASC",
        ] {
            let select = select(order);
            let ordering = RowOrdering::of(&select).unwrap();
            let is_by_v = matches!(ordering, RowOrdering::Nearest(to) if to.column == "v");
            assert!(is_by_v, "{order}");
            assert!(similarity_columns(&select.order_by).eq(["v"]));
        }
        let clustering = select("ck DESC");
        let ordering = RowOrdering::of(&clustering);
        assert_eq!(ordering, Ok(RowOrdering::Clustering(&clustering.order_by)));
        assert_eq!(similarity_columns(&select("ck").order_by).count(), 0);
    }

    #[test]
    fn invalid_orderings_are_refused() {
        for (order, text) in [
            ("v ANN OF ?, ck", "any other ordering"),
            ("v ANN OF ?, w ANN OF ?", "more than one similarity"),
            ("ANN(v, ?), BM25(t, 'x')", "BM25 and ANN cannot be combined"),
            ("BM25(t, 'x')", "not supported by Annulus yet"),
            ("length(t)", "Only ANN() and BM25()"),
            // This is a function of somebody's keyspace.
            ("ks.ann(v, [1])", "Only ANN() and BM25()"),
            ("ks.bm25(t, 'x')", "Only ANN() and BM25()"),
        ] {
            let error = is_nearest(&select(order).order_by).unwrap_err();
            assert!(error.message.contains(text), "{order}: {error}");
        }
        for (order, text) in [
            ("v ANN OF ? DESC", "Descending ANN ordering"),
            ("ANN(v)", "2 required but 1 provided"),
            ("ANN(?, v)", "in this order"),
        ] {
            let error = RowOrdering::of(&select(order)).unwrap_err();
            assert!(error.message.contains(text), "{order}: {error}");
        }
    }
}
