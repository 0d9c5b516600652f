//! The ordering of a SELECT: by clustering columns, or by searches: one, whichever way that is
//! written (`v ANN OF ?`, `ANN(v, ?)`, `BM25(c, ?)`), several by their ranks (`RRF(...)`), or an
//! expression of their scores.

use std::borrow::Cow;

use cql::ast::{self, ArithmeticOperation, FunctionCall, OrderByItem, Select, Selector, Term};
use cql::error::CqlError;

use crate::ann_options::AnnOptions;
use crate::functions::astra;
use crate::hybrid_options::HybridOptions;
use crate::search_call::{SearchCall, SearchCallPart, SearchKind, is_fusion, native_name, term_of};

/// The ordering of a SELECT's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum RowOrdering<'a> {
    /// Rows come in the order of the disk, or as these clustering columns say.
    Clustering(&'a [OrderByItem]),
    /// Rows come as searches rank them, the best first.
    Searched(SearchedOrdering<'a>),
}

/// An ordering by searches.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedOrdering<'a> {
    /// The searches, in the order in which they are written. Equal ones may occur several times.
    pub searches: Vec<SearchCall<'a>>,
    /// The way in which the searches make one order.
    pub ranking: WrittenRanking<'a>,
    /// The options of searches for neighbours.
    pub options: AnnOptions,
    /// The options of a ranking of several searches.
    pub hybrid: HybridOptions,
}

/// The way in which searches make one order, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenRanking<'a> {
    /// The order is that of the one search.
    Single,
    /// `RRF(...)`: the sums of the reciprocals of ranks, of all searches.
    Reciprocal,
    /// An expression of scores, the largest first.
    Expression(WrittenScore<'a>),
}

/// A part of an expression of scores, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenScore<'a> {
    /// A number or a bind marker.
    Term(Cow<'a, Term>),
    /// The score of the search at this position of [`SearchedOrdering::searches`].
    Search(usize),
    /// A part with a minus sign before it.
    Negated(Box<WrittenScore<'a>>),
    /// Two parts with an operator between them.
    Operation(
        ArithmeticOperation,
        Box<WrittenScore<'a>>,
        Box<WrittenScore<'a>>,
    ),
}

impl<'a> RowOrdering<'a> {
    /// Reads the ORDER BY clause of a SELECT, and its `WITH ann_options` and `hybrid_options`.
    ///
    /// # Errors
    /// Orderings by functions that are no searches, several orderings of which one is by a search,
    /// an ordering that makes no sense or requests the worst first, and options that do not fit
    /// the ordering.
    pub fn of(select: &'a Select) -> Result<RowOrdering<'a>, CqlError> {
        let order_by = &select.order_by[..];
        let is_column = |ordering: &OrderByItem| matches!(ordering, OrderByItem::Column { .. });
        if order_by.iter().all(is_column) {
            AnnOptions::none_of(select)?;
            HybridOptions::none_of(select)?;
            return Ok(RowOrdering::Clustering(order_by));
        }
        let searched = only(order_by)?;
        let mut searches = Vec::new();
        let (ranking, descending) = ranking(searched, &mut searches)?;
        if descending {
            return Err(CqlError::invalid(format!(
                "Descending {} ordering is not supported",
                name_of(&ranking, &searches)
            )));
        }
        let hybrid = match &ranking {
            WrittenRanking::Single => {
                HybridOptions::none_of(select)?;
                HybridOptions::default()
            }
            WrittenRanking::Reciprocal => HybridOptions::of(select, Some(searches.len()))?,
            WrittenRanking::Expression(_) => HybridOptions::of(select, None)?,
        };
        let has_vectors = searches.iter().any(|call| call.kind == SearchKind::Vector);
        let options = match has_vectors {
            true => AnnOptions::of(select)?,
            false => {
                AnnOptions::none_of(select)?;
                AnnOptions::default()
            }
        };
        Ok(RowOrdering::Searched(SearchedOrdering {
            searches,
            ranking,
            options,
            hybrid,
        }))
    }
}

impl SearchedOrdering<'_> {
    /// The form of the query, for messages.
    pub fn form(&self) -> SearchForm {
        match (&self.ranking, &self.searches[..]) {
            (WrittenRanking::Single, [call]) if call.kind == SearchKind::Words => SearchForm::Words,
            (WrittenRanking::Single, _) => SearchForm::Vector,
            (WrittenRanking::Reciprocal | WrittenRanking::Expression(_), _) => SearchForm::Hybrid,
        }
    }
}

/// The form of a query by searches, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchForm {
    /// By one search for vectors.
    Vector,
    /// By one search for words, or by words in WHERE without an ordering.
    Words,
    /// By several searches.
    Hybrid,
}

impl SearchForm {
    /// The name of such queries.
    pub fn queries(self) -> &'static str {
        match self {
            SearchForm::Vector => "Vector ANN queries",
            SearchForm::Words => "BM25 queries",
            SearchForm::Hybrid => "Hybrid Search queries",
        }
    }
}

fn name_of(ranking: &WrittenRanking<'_>, searches: &[SearchCall<'_>]) -> &'static str {
    match (ranking, searches) {
        (WrittenRanking::Single, [call]) => call.kind.function(),
        (WrittenRanking::Single, _) => "similarity",
        (WrittenRanking::Reciprocal, _) => "RRF",
        (WrittenRanking::Expression(_), _) => "expression",
    }
}

/// The ordering by searches, which must be the only ordering.
///
/// # Errors
/// Several orderings, and orderings by functions that are no searches.
fn only(order_by: &[OrderByItem]) -> Result<&OrderByItem, CqlError> {
    let (mut similarities, mut has_bm25, mut others) = (0, false, 0);
    for ordering in order_by {
        match ordering {
            OrderByItem::Column { .. } => others += 1,
            OrderByItem::Ann { .. } | OrderByItem::Expression { .. } => similarities += 1,
            OrderByItem::Function { function, .. } => {
                check_function(function)?;
                similarities += 1;
                has_bm25 |= function.name.starts_with("bm25");
            }
        }
    }
    let fault = match order_by {
        _ if similarities > 1 && has_bm25 => {
            "BM25 and ANN cannot be combined in the same query: order by RRF(ANN(...), BM25(...))"
        }
        _ if similarities > 1 => {
            "Cannot specify more than one similarity ordering: order by RRF(ANN(...), ANN(...))"
        }
        _ if others > 0 => match has_bm25 {
            true => "BM25 ordering does not support any other ordering",
            false => "ANN ordering does not support any other ordering",
        },
        [ordering] => return Ok(ordering),
        _ => "Cannot specify more than one similarity ordering",
    };
    Err(CqlError::invalid(fault))
}

/// Refuses a function by which rows can't be ordered.
fn check_function(function: &FunctionCall<Selector>) -> Result<(), CqlError> {
    match native_name(function) {
        Some("ann" | "bm25" | "ann_score" | "bm25_score" | "rrf") => Ok(()),
        Some("ann_rank" | "bm25_rank" | "bm25_highlight") => Err(CqlError::invalid(format!(
            "{}() is for the selection: order by ANN(), BM25(), RRF() or an expression of ANN_SCORE() and BM25_SCORE()",
            function.name.to_ascii_uppercase()
        ))),
        _ => Err(astra::refused(&function.name).unwrap_or_else(|| {
            CqlError::invalid(
                "Only ANN() and BM25() are supported as scoring functions in ORDER BY",
            )
        })),
    }
}

/// Reads an ordering by searches, which are added to `searches`. Returns whether it is descending,
/// too.
fn ranking<'a>(
    ordering: &'a OrderByItem,
    searches: &mut Vec<SearchCall<'a>>,
) -> Result<(WrittenRanking<'a>, bool), CqlError> {
    Ok(match ordering {
        OrderByItem::Column { descending, .. } => (WrittenRanking::Single, *descending),
        OrderByItem::Ann {
            column,
            vector,
            descending,
        } => {
            searches.push(SearchCall {
                kind: SearchKind::Vector,
                part: SearchCallPart::Hit,
                column,
                term: Cow::Borrowed(vector),
            });
            (WrittenRanking::Single, *descending)
        }
        OrderByItem::Function {
            function,
            descending,
        } if is_fusion(function) => {
            fused(function, searches)?;
            (WrittenRanking::Reciprocal, *descending)
        }
        OrderByItem::Function {
            function,
            descending,
        } => {
            // The largest score comes first as the call itself has it.
            searches.extend(SearchCall::of(function)?);
            (WrittenRanking::Single, *descending)
        }
        OrderByItem::Expression {
            expression,
            descending,
        } => {
            let score = score(expression, searches)?;
            if searches.is_empty() {
                return Err(CqlError::invalid(
                    "An expression in ORDER BY needs ANN_SCORE() or BM25_SCORE()",
                ));
            }
            (WrittenRanking::Expression(score), *descending)
        }
    })
}

fn fused<'a>(
    function: &'a FunctionCall<Selector>,
    searches: &mut Vec<SearchCall<'a>>,
) -> Result<(), CqlError> {
    for argument in &function.arguments {
        let call = match argument {
            Selector::Function(call) => SearchCall::of(call)?,
            _ => None,
        };
        let call = call.filter(|call| call.part == SearchCallPart::Hit);
        searches.push(call.ok_or_else(|| {
            CqlError::invalid(
                "RRF() takes searches: ANN(column, vector) and BM25(column, words), with commas between them",
            )
        })?);
    }
    match searches.is_empty() {
        true => Err(CqlError::invalid(
            "RRF() takes at least one search: ANN(column, vector) or BM25(column, words)",
        )),
        false => Ok(()),
    }
}

/// Reads a part of an expression.
fn score<'a>(
    part: &'a Selector,
    searches: &mut Vec<SearchCall<'a>>,
) -> Result<WrittenScore<'a>, CqlError> {
    let call = match part {
        Selector::Function(call) => call,
        Selector::Column(name) => {
            return Err(CqlError::invalid(format!(
                "An expression in ORDER BY is of scores and numbers: the column {name} can't be part of it"
            )));
        }
        part => {
            let term = term_of(part).ok_or_else(not_in_expression)?;
            return Ok(WrittenScore::Term(term));
        }
    };
    if let Some(call) = SearchCall::of(call)? {
        return match call.part {
            SearchCallPart::Score => {
                searches.push(call);
                Ok(WrittenScore::Search(searches.len() - 1))
            }
            _ => Err(CqlError::invalid(format!(
                "An expression in ORDER BY is of scores and numbers: write {}_SCORE()",
                call.kind.function()
            ))),
        };
    }
    let boxed = |part: &'a Selector, searches: &mut Vec<SearchCall<'a>>| {
        Ok::<_, CqlError>(Box::new(score(part, searches)?))
    };
    match (
        ArithmeticOperation::of_function(&call.name),
        &call.arguments[..],
    ) {
        (Some(ArithmeticOperation::Modulo), _) => Err(CqlError::invalid(
            "An expression in ORDER BY takes the operators +, -, * and /, not %",
        )),
        (Some(operation), [left, right]) => {
            let left = boxed(left, searches)?;
            Ok(WrittenScore::Operation(
                operation,
                left,
                boxed(right, searches)?,
            ))
        }
        (None, [operand]) if call.name == ast::NEGATION => {
            Ok(WrittenScore::Negated(boxed(operand, searches)?))
        }
        _ if is_fusion(call) => Err(CqlError::invalid(
            "RRF() can't be part of an expression in ORDER BY: it is an ordering by itself",
        )),
        _ => {
            let term = term_of(part).ok_or_else(not_in_expression)?;
            Ok(WrittenScore::Term(term))
        }
    }
}

fn not_in_expression() -> CqlError {
    CqlError::invalid(
        "An expression in ORDER BY is of ANN_SCORE(), BM25_SCORE(), numbers and bind markers",
    )
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;

    use super::*;
    use crate::search_call::similarity_columns;

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
            "ANN_SCORE(v, ?)",
        ] {
            let select = select(order);
            let RowOrdering::Searched(ordering) = RowOrdering::of(&select).unwrap() else {
                panic!("{order}");
            };
            assert_eq!(ordering.form(), SearchForm::Vector);
            assert_eq!(ordering.searches[0].column, "v");
            assert!(similarity_columns(&select.order_by).eq(["v"]));
        }
        let clustering = select("ck DESC");
        let ordering = RowOrdering::of(&clustering);
        assert_eq!(ordering, Ok(RowOrdering::Clustering(&clustering.order_by)));
        assert_eq!(similarity_columns(&select("ck").order_by).count(), 0);
    }

    #[test]
    fn several_searches_are_ranked_by_ranks_or_by_an_expression() {
        let by_ranks = select("RRF(ANN(v, ?), BM25(t, bm25_words('x')), ann(w, [1]))");
        let RowOrdering::Searched(ordering) = RowOrdering::of(&by_ranks).unwrap() else {
            panic!("it is by searches");
        };
        assert_eq!(ordering.ranking, WrittenRanking::Reciprocal);
        let columns = ordering.searches.iter().map(|call| call.column);
        assert!(columns.eq(["v", "t", "w"]));
        assert!(similarity_columns(&by_ranks.order_by).eq(["v", "t", "w"]));

        let by_scores = select("0.7 * ANN_SCORE(v, ?) - (BM25_SCORE(t, ?) / :w) * -2");
        let RowOrdering::Searched(ordering) = RowOrdering::of(&by_scores).unwrap() else {
            panic!("it is by searches");
        };
        assert_eq!(ordering.form(), SearchForm::Hybrid);
        assert_eq!(ordering.searches.len(), 2);
        let is_difference = matches!(
            &ordering.ranking,
            WrittenRanking::Expression(WrittenScore::Operation(ArithmeticOperation::Subtract, ..))
        );
        assert!(is_difference, "{ordering:?}");
        assert!(similarity_columns(&by_scores.order_by).eq(["v", "t"]));
    }

    #[test]
    fn invalid_orderings_are_refused() {
        for (order, text) in [
            ("v ANN OF ?, ck", "any other ordering"),
            ("BM25(t, ?), ck", "BM25 ordering does not support any other"),
            ("v ANN OF ?, w ANN OF ?", "more than one similarity"),
            ("ANN(v, ?), BM25(t, 'x')", "BM25 and ANN cannot be combined"),
            ("length(t)", "Only ANN() and BM25()"),
            // This is a function of somebody's keyspace.
            ("ks.ann(v, [1])", "Only ANN() and BM25()"),
            ("ks.bm25(t, 'x')", "Only ANN() and BM25()"),
            ("v ANN OF ? DESC", "Descending ANN ordering"),
            ("BM25(t, ?) DESC", "Descending BM25 ordering"),
            ("RRF(ANN(v, ?)) DESC", "Descending RRF ordering"),
            ("2 * ANN_SCORE(v, ?) DESC", "Descending expression ordering"),
            ("ANN(v)", "2 required but 1 provided"),
            ("ANN(?, v)", "in this order"),
            ("BM25(t, u)", "takes a column and a text"),
            ("ANN_RANK(v, ?)", "ANN_RANK() is for the selection"),
            ("RRF()", "at least one search"),
            ("RRF(ANN_SCORE(v, ?))", "RRF() takes searches"),
            ("RRF(v)", "RRF() takes searches"),
            ("1 + 2", "needs ANN_SCORE() or BM25_SCORE()"),
            ("year * ANN_SCORE(v, ?)", "the column year can't be part"),
            ("2 * ANN(v, ?)", "write ANN_SCORE()"),
            ("2 % ANN_SCORE(v, ?)", "not %"),
            ("2 * RRF(ANN(v, ?))", "can't be part of an expression"),
        ] {
            let error = RowOrdering::of(&select(order)).unwrap_err();
            assert!(error.message.contains(text), "{order}: {error}");
        }
    }
}
