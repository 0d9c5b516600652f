//! The answer to a search: its rows with their scores, why they are where they are, and counts.

use std::collections::BTreeMap;

use bytes::Bytes;
use value::json_text;

use super::body::{RankedBy, RowSearchBody};
use super::queries::{QueryForm, ResolvedQuery};
use super::select::ComposedSearch;
use crate::http::answers::JsonWriter;
use crate::http::call::TableCall;
use crate::http::failure::HttpFailure;
use crate::http::statements::StatementAnswer;

/// A row that was found, in the order of the search.
struct FoundRow<'a> {
    row: &'a [Option<Bytes>],
    /// The number by which rows are ordered, the largest first.
    score: f64,
    /// The score and the rank of each query; `None` where it did not find the row.
    hits: Vec<(Option<f64>, Option<i32>)>,
}

/// Writes the answer.
///
/// # Errors
/// Values that can't be read, and no memory for the text.
pub(super) fn write(
    call: &TableCall,
    given: &RowSearchBody<'_>,
    search: &ComposedSearch,
    found: &StatementAnswer,
) -> Result<String, HttpFailure> {
    let rows = found_rows(given, search, found);
    let answered = rows.iter().skip(given.offset as usize);
    let answered: Vec<&FoundRow<'_>> = answered.take(given.limit() as usize).collect();
    let mut text = JsonWriter::new(call);
    text.put("{\"rows\":[");
    for (at, one) in answered.iter().enumerate() {
        text.put(if at > 0 { "," } else { "" });
        text.put_row(&found.columns, one.row, 0..search.shown)?;
    }
    text.put("],\"scores\":[");
    for (at, one) in answered.iter().enumerate() {
        text.put(if at > 0 { "," } else { "" });
        text.put_number(one.score);
    }
    text.put("]");
    if given.explain {
        text.put(",\"explain\":[");
        for (at, one) in answered.iter().enumerate() {
            text.put(if at > 0 { "," } else { "" });
            put_hits(&search.queries.queries, one, &mut text);
        }
        text.put("]");
    }
    if !search.counted.is_empty() {
        let among = given.among.unwrap_or(u32::MAX) as usize;
        put_counts(search, found, &rows[..rows.len().min(among)], &mut text)?;
    }
    text.put_rest(None, &found.warnings);
    text.put("}");
    Ok(text.finish())
}

/// The rows that were found, without those that are left out and those below a threshold.
fn found_rows<'a>(
    given: &RowSearchBody<'_>,
    search: &ComposedSearch,
    found: &'a StatementAnswer,
) -> Vec<FoundRow<'a>> {
    let queries = &search.queries.queries;
    let rows = found.rows.iter();
    let rows = rows.filter(|row| !is_excluded(search, row)).map(|row| {
        let hits = (0..queries.len()).map(|at| {
            let cell = |place: usize| row.get(search.scores + place).and_then(Option::as_deref);
            let number = |place| -> Option<[u8; 4]> { cell(place)?.try_into().ok() };
            let (score, rank) = (number(2 * at), number(2 * at + 1));
            (
                score.map(|bytes| widened(f32::from_be_bytes(bytes))),
                rank.map(i32::from_be_bytes),
            )
        });
        let hits: Vec<(Option<f64>, Option<i32>)> = hits.collect();
        FoundRow {
            score: score_of(search, &hits),
            row,
            hits,
        }
    });
    rows.filter(|one| {
        let is_good = |score: Option<f64>, least: Option<f64>| {
            least.is_none_or(|least| score.is_some_and(|score| score >= least))
        };
        let mut each = queries.iter().zip(&one.hits);
        is_good(Some(one.score), given.score_threshold)
            && each.all(|(query, (score, _))| is_good(*score, query.threshold))
    })
    .collect()
}

/// A score with as many digits as it has as a 32-bit float, so that thresholds and answers show the
/// same number.
fn widened(score: f32) -> f64 {
    score
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(score))
}

fn is_excluded(search: &ComposedSearch, row: &[Option<Bytes>]) -> bool {
    let key = || {
        search
            .key
            .iter()
            .map(|place| row.get(*place).and_then(Option::as_ref))
    };
    let mut excluded = search.queries.excluded.iter();
    excluded.any(|one| key().eq(one.iter().map(Some)))
}

/// The number by which a row is where it is.
fn score_of(search: &ComposedSearch, hits: &[(Option<f64>, Option<i32>)]) -> f64 {
    let queries = &search.queries.queries;
    if let [(score, _)] = hits {
        return score.unwrap_or_default();
    }
    let parts = queries.iter().zip(hits);
    let parts = parts.map(|(query, (score, rank))| match search.rank.by {
        RankedBy::Score => query.weight * score.unwrap_or_default(),
        RankedBy::Rrf => rank.map_or(0.0, |rank| {
            query.weight / (f64::from(search.rank.constant) + f64::from(rank))
        }),
    });
    parts.sum()
}

/// Appends what each query knows of a row.
fn put_hits(queries: &[ResolvedQuery], one: &FoundRow<'_>, text: &mut JsonWriter) {
    text.put("[");
    for (at, (query, (score, rank))) in queries.iter().zip(&one.hits).enumerate() {
        text.put(if at > 0 {
            ",{\"column\":"
        } else {
            "{\"column\":"
        });
        text.put_string(&query.column);
        text.put(match query.form {
            QueryForm::Vector => ",\"by\":\"vector\",\"score\":",
            QueryForm::Words | QueryForm::WordQuery => ",\"by\":\"words\",\"score\":",
        });
        text.put_number(score.unwrap_or(f64::NAN));
        text.put(",\"rank\":");
        text.put_number(rank.map_or(f64::NAN, f64::from));
        text.put(",\"weight\":");
        text.put_number(query.weight);
        text.put("}");
    }
    text.put("]");
}

/// Appends how many rows have each value of some columns, the most frequent first.
fn put_counts(
    search: &ComposedSearch,
    found: &StatementAnswer,
    rows: &[FoundRow<'_>],
    text: &mut JsonWriter,
) -> Result<(), HttpFailure> {
    let mut before = ",\"counts\":{";
    for place in &search.counted {
        let Some(column) = found.columns.get(*place) else {
            continue;
        };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for one in rows {
            let value = one.row.get(*place).and_then(Option::as_deref);
            let value = json_text(&column.cql_type, value);
            let value = value.map_err(|error| HttpFailure::of_value(&column.name, &error))?;
            *counts.entry(value).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        text.put(before);
        before = ",";
        text.put_string(&column.name);
        text.put(":[");
        for (at, (value, count)) in counts.iter().enumerate() {
            text.put(if at > 0 { "," } else { "" });
            text.put_charged(&format!("{{\"value\":{value},\"count\":{count}}}"))?;
        }
        text.put("]");
    }
    text.put("}");
    Ok(())
}
