//! The SELECT that a search becomes.

use schema::{Column, Table};
use value::CqlType;
use value::identifier::quoted;

use super::body::{RankedBy, RowSearchBody, WithVector};
use super::filter::SearchConditions;
use super::queries::{QueryForm, ResolvedQueries, ResolvedQuery};
use crate::http::failure::HttpFailure;
use crate::http::names::{column_of, key_of, qualified};
use crate::http::statements::{ComposedStatement, MarkerValue};
use crate::statement::AddedCondition;

/// The most rows that a search finds.
const FOUND_MAX: u32 = query::bounds::LIMIT_MAX;
/// The number that is added to each rank, if a request names none.
const RANK_CONSTANT: u32 = 60;

/// The SELECT of a search, and the places of its answer's columns.
pub(super) struct ComposedSearch {
    pub statement: ComposedStatement,
    /// The conditions that WHERE has no form for.
    pub condition: Option<AddedCondition>,
    pub queries: ResolvedQueries,
    pub rank: ResolvedRank,
    /// The number of columns that a row of the answer has. They come first.
    pub shown: usize,
    /// The places of the primary key, if there are rows that are left out.
    pub key: Vec<usize>,
    /// The places of columns that rows are counted by.
    pub counted: Vec<usize>,
    /// The place of the first score. After it come the rank of its query, and the scores and ranks
    /// of the other queries.
    pub scores: usize,
}

/// The way in which queries make one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResolvedRank {
    pub by: RankedBy,
    pub constant: u32,
}

/// Makes the SELECT of a search.
///
/// # Errors
/// Fields that make no sense, and columns that the table does not have.
pub(super) fn compose(
    table: &Table,
    given: &RowSearchBody<'_>,
    queries: ResolvedQueries,
) -> Result<ComposedSearch, HttpFailure> {
    let conditions = match given.filter {
        Some(filter) => SearchConditions::of(table, filter)?,
        None => SearchConditions::default(),
    };
    let rank = resolved_rank(given, &queries.queries)?;
    let mut selected: Vec<&Column> = shown_columns(table, given)?;
    let shown = selected.len();
    let key = match queries.excluded.is_empty() {
        true => Vec::new(),
        false => {
            let key = key_of(table).into_iter();
            key.map(|column| place(column, &mut selected)).collect()
        }
    };
    let mut counted = Vec::new();
    for name in &given.counts {
        counted.push(place(column_of(table, name)?, &mut selected));
    }
    let scores = selected.len();
    let mut statement = ComposedStatement::default();
    statement.put("SELECT ");
    let names: Vec<String> = selected.iter().map(|column| quoted(&column.name)).collect();
    statement.put(&names.join(", "));
    for query in &queries.queries {
        for part in ["_SCORE", "_RANK"] {
            statement.put(", ");
            query.put(part, &mut statement);
        }
    }
    statement.put(&format!(
        " FROM {}",
        qualified(&table.keyspace, &table.name)
    ));
    conditions.put_where(&mut statement);
    statement.put(" ORDER BY ");
    put_order(&queries.queries, rank, &mut statement);
    statement.put(" LIMIT ");
    let found = found(given, queries.excluded.len())?;
    statement.bind_json("limit", &found.to_string());
    if given.allow_filtering {
        statement.put(" ALLOW FILTERING");
    }
    put_options(given, &queries.queries, rank, &mut statement)?;
    let condition = conditions.tree.map(|predicate| AddedCondition {
        predicate,
        allows_filtering: given.allow_filtering,
    });
    Ok(ComposedSearch {
        statement,
        condition,
        queries,
        rank,
        shown,
        key,
        counted,
        scores,
    })
}

/// Selects a column. Returns its place in the answer.
fn place<'t>(column: &'t Column, selected: &mut Vec<&'t Column>) -> usize {
    selected.push(column);
    selected.len() - 1
}

impl ResolvedQuery {
    /// The name of its functions.
    fn function(&self) -> &'static str {
        match self.form {
            QueryForm::Vector => "ANN",
            QueryForm::Words | QueryForm::WordQuery => "BM25",
        }
    }

    /// Appends a call of its function, or of the one for a part of it.
    fn put(&self, part: &str, statement: &mut ComposedStatement) {
        let column = quoted(&self.column);
        statement.put(&format!("{}{part}({column}, ", self.function()));
        if self.form == QueryForm::Words {
            statement.put("bm25_words(");
        }
        statement.bind(self.value.clone());
        statement.put(if self.form == QueryForm::Words {
            "))"
        } else {
            ")"
        });
    }
}

/// The columns of the answer's rows.
fn shown_columns<'t>(
    table: &'t Table,
    given: &RowSearchBody<'_>,
) -> Result<Vec<&'t Column>, HttpFailure> {
    let is_vector = |column: &Column| matches!(column.cql_type, CqlType::Vector { .. });
    let mut shown: Vec<&Column> = match &given.columns {
        None => {
            let all = table.columns_in_select_order().into_iter();
            all.filter(|column| !is_vector(column)).collect()
        }
        Some(names) => {
            let named = names.iter().map(|name| column_of(table, name));
            named.collect::<Result<_, _>>()?
        }
    };
    let mut vectors: Vec<&Column> = match &given.with_vector {
        None | Some(WithVector::All(false)) => Vec::new(),
        Some(WithVector::All(true)) => {
            let all = table.columns_in_select_order().into_iter();
            all.filter(|column| is_vector(column)).collect()
        }
        Some(WithVector::Columns(names)) => {
            let named = names.iter().map(|name| column_of(table, name));
            named.collect::<Result<_, _>>()?
        }
    };
    vectors.retain(|vector| shown.iter().all(|column| column.id != vector.id));
    shown.extend(vectors);
    Ok(shown)
}

/// The number of rows to find: those of the answer, those before them, those that are counted, and
/// those that are left out.
fn found(given: &RowSearchBody<'_>, excluded: usize) -> Result<u32, HttpFailure> {
    let answered = u64::from(given.offset) + u64::from(given.limit());
    if given.limit() == 0 {
        return Err(HttpFailure::bad_request("limit is 0", "limit is 1 or more"));
    }
    if given.among.is_some() && given.counts.is_empty() {
        return Err(HttpFailure::bad_request(
            "among goes with counts",
            "name the columns to count by as counts",
        ));
    }
    let among = given.among.map_or(0, u64::from);
    let found = answered.max(among) + excluded as u64;
    u32::try_from(found).ok().filter(|found| *found <= FOUND_MAX).ok_or_else(|| {
        HttpFailure::bad_request(
            format!(
                "offset and limit are {answered} and among is {among}: a search finds {FOUND_MAX} rows at most"
            ),
            "request fewer rows, or narrow the search by a filter",
        )
    })
}

fn resolved_rank(
    given: &RowSearchBody<'_>,
    queries: &[ResolvedQuery],
) -> Result<ResolvedRank, HttpFailure> {
    let rank = given.rank.clone().unwrap_or_default();
    let is_fused = queries.len() > 1;
    let has_weights = queries.iter().any(|query| query.weight != 1.0);
    if !is_fused && (given.rank.is_some() || has_weights) {
        return Err(HttpFailure::bad_request(
            "rank and weight are for several queries, and there is one",
            "leave them out",
        ));
    }
    if rank.by == RankedBy::Score && rank.constant.is_some() {
        return Err(HttpFailure::bad_request(
            "rank: constant goes with rrf, not with score",
            "leave it out",
        ));
    }
    Ok(ResolvedRank {
        by: rank.by,
        constant: rank.constant.unwrap_or(RANK_CONSTANT),
    })
}

fn put_order(queries: &[ResolvedQuery], rank: ResolvedRank, statement: &mut ComposedStatement) {
    let is_fused = queries.len() > 1;
    let by_scores = is_fused && rank.by == RankedBy::Score;
    if is_fused && !by_scores {
        statement.put("RRF(");
    }
    for (at, query) in queries.iter().enumerate() {
        match (at, by_scores) {
            (0, _) => {}
            (_, true) => statement.put(" + "),
            (_, false) => statement.put(", "),
        }
        if by_scores {
            statement.bind(MarkerValue::json("weight", &query.weight.to_string()));
            statement.put(" * ");
            query.put("_SCORE", statement);
        } else {
            query.put("", statement);
        }
    }
    if is_fused && !by_scores {
        statement.put(")");
    }
}

/// Appends the options, which CQL has in the text of a statement. They are numbers, none of them a
/// text of the request.
fn put_options(
    given: &RowSearchBody<'_>,
    queries: &[ResolvedQuery],
    rank: ResolvedRank,
    statement: &mut ComposedStatement,
) -> Result<(), HttpFailure> {
    let mut before = " WITH";
    if given.exact {
        if queries.iter().all(|query| query.form != QueryForm::Vector) {
            return Err(HttpFailure::bad_request(
                "exact is for searches of vectors",
                "leave it out: searches for words are exact",
            ));
        }
        statement.put(&format!("{before} ann_options = {{'exact': true}}"));
        before = " AND";
    }
    let mut options = Vec::new();
    if let Some(candidates) = given.rank.as_ref().and_then(|rank| rank.candidates) {
        options.push(format!("'candidates': {candidates}"));
    }
    if rank.constant != RANK_CONSTANT {
        options.push(format!("'rank_constant': {}", rank.constant));
    }
    if rank.by == RankedBy::Rrf && queries.iter().any(|query| query.weight != 1.0) {
        let weights: Vec<String> = queries
            .iter()
            .map(|query| query.weight.to_string())
            .collect();
        options.push(format!("'weights': [{}]", weights.join(", ")));
    }
    if !options.is_empty() {
        statement.put(&format!(
            "{before} hybrid_options = {{{}}}",
            options.join(", ")
        ));
    }
    Ok(())
}
