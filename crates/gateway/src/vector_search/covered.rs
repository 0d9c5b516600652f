//! Queries that an index can answer by itself, as it keeps all that they need.

use std::ops::Range;

use bytes::Bytes;
use cql::ast::{ProjectionList, Select, Selector};
use cql::wire::{ColumnSpec, ColumnsMetadata};
use index::CandidateRule;
use index::target::is_scalar;
use query::condition::is_key_column;
use query::covered;
use schema::Column;
use store_api::{KeyValue, NearestRows};
use value::{CqlType, validate};

use super::conditions::{QueryConditions, known_columns};
use super::row::Row;
use crate::catalog::{DefinedIndex, LoggedTable};

/// The answer of a query by what the index keeps: the columns that the client selects, and where
/// their values come from.
#[derive(Debug)]
pub(super) struct IndexOnlyAnswer {
    /// The columns of the answer, named as the cluster names them.
    pub(super) columns: ColumnsMetadata,
    /// The source of each column of the answer.
    sources: Vec<AnswerValueSource>,
    /// The columns whose values the index service returns.
    returned: Vec<Column>,
}

/// The source of a value of the answer.
#[derive(Clone, Copy, Debug)]
enum AnswerValueSource {
    /// The position in the primary key.
    Key(usize),
    /// The position in [`IndexOnlyAnswer::returned`].
    Returned(usize),
}

impl IndexOnlyAnswer {
    /// The answer of a query by what `index` keeps; `None` if rows have to be read in any case.
    ///
    /// Functions of columns are Cassandra's to compute, and so are masks of them. Elements of a
    /// collection expire without a word to the index, so WHERE must not look at any.
    pub(super) fn of(
        select: &Select,
        table: &LoggedTable,
        index: &DefinedIndex,
        candidates: &CandidateRule,
        conditions: &QueryConditions,
    ) -> Option<IndexOnlyAnswer> {
        let ProjectionList::Items(items) = &select.projection else {
            // All columns are the vector, too.
            return None;
        };
        let known = known_columns(table);
        let mut columns = Vec::with_capacity(items.len());
        let mut selected = Vec::with_capacity(items.len());
        let mut read: Vec<Column> = Vec::new();
        for item in items {
            let Selector::Column(name) = &item.selector else {
                return None;
            };
            let column = known.iter().find(|column| column.name == *name)?;
            columns.push(ColumnSpec {
                keyspace: table.keyspace.as_str().into(),
                table: table.name.as_str().into(),
                name: item.alias.as_deref().unwrap_or(name).into(),
                cql_type: column.cql_type.clone(),
            });
            if !read.contains(column) {
                read.push(column.clone());
            }
            selected.push(name);
        }
        let is_masked = |name: &String| table.masked_columns.contains(name);
        if table
            .primary_key()
            .iter()
            .any(|column| is_masked(&column.name))
        {
            return None;
        }
        let restricted = conditions.all.iter();
        let restricted = restricted.filter_map(|condition| condition.relation.first_column());
        let is_plain = |column: &Column| {
            let is_single = is_key_column(column.kind) || is_scalar(&column.cql_type);
            is_single && !is_masked(&column.name)
        };
        if !restricted.chain(&read).all(is_plain) {
            return None;
        }
        let returned = covered(index, candidates, &conditions.all, &read)?;
        let source = |name: &&String| {
            let mut key = table.primary_key().iter();
            let mut beside = returned.iter();
            match key.position(|column| column.name == **name) {
                Some(position) => Some(AnswerValueSource::Key(position)),
                None => beside
                    .position(|column| column.name == **name)
                    .map(AnswerValueSource::Returned),
            }
        };
        Some(IndexOnlyAnswer {
            sources: selected.iter().map(source).collect::<Option<_>>()?,
            columns: ColumnsMetadata { columns },
            returned,
        })
    }

    /// The names of the columns whose values the index service returns.
    pub(super) fn names(&self) -> Vec<String> {
        let columns = self.returned.iter();
        columns.map(|column| column.name.clone()).collect()
    }

    /// The rows at the positions of the span; `None` if a value is not as CQL serialises it.
    pub(super) fn rows(&self, found: &NearestRows, span: Range<usize>) -> Option<Vec<Row>> {
        let row = |(at, key): (usize, &Vec<KeyValue>)| {
            let cell = |(source, column): (&AnswerValueSource, &ColumnSpec)| {
                let sent = match *source {
                    AnswerValueSource::Key(position) => Some(key.get(position)?),
                    AnswerValueSource::Returned(position) => {
                        found.column_values.get(position)?.get(at)?.as_ref()
                    }
                };
                cell(&column.cql_type, sent)
            };
            let cells = self.sources.iter().zip(&self.columns.columns).map(cell);
            cells.collect::<Option<Row>>()
        };
        let keys = found.keys.iter().enumerate();
        keys.take(span.end).skip(span.start).map(row).collect()
    }
}

/// The cell of a value that a service sent; `None` if that is not as CQL serialises the type.
fn cell(cql_type: &CqlType, sent: Option<&KeyValue>) -> Option<Option<Bytes>> {
    match sent {
        None => Some(None),
        Some(KeyValue::Cql(value)) => {
            let is_valid = validate(cql_type, value).is_ok();
            is_valid.then(|| Some(value.clone()))
        }
        // JSON may have another form of the value, as of a number.
        Some(KeyValue::Json(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::AnnPlan;
    use super::super::fixtures::{keeping, snapshot_of, table};
    use super::*;

    /// Whether a query of `films`, whose index keeps `names`, can be answered by the index itself.
    fn is_covered(query: &str, table: LoggedTable, names: &[&str], rescoring: bool) -> bool {
        let mut index = keeping(&table, names);
        if rescoring {
            let options = [("quantization", "i8"), ("rescoring", "true")];
            let options = options.map(|(key, value)| (key.to_owned(), value.to_owned()));
            index.options = options.into();
        }
        let text = format!("{query} LIMIT 3 ALLOW FILTERING");
        let snapshot = snapshot_of(table, [index]);
        let plan = AnnPlan::of(&text, Some("shop"), &snapshot).unwrap();
        plan.expect("it is a nearest-neighbour query")
            .covered
            .is_some()
    }

    #[test]
    fn an_index_answers_without_rows_where_it_has_all_needed_columns() {
        for (query, expected) in [
            ("SELECT name FROM films ORDER BY v ANN OF ?", true),
            (
                "SELECT name AS n, id, name FROM films ORDER BY v ANN OF ?",
                true,
            ),
            (
                "SELECT id FROM films WHERE name = ? AND id > ? ORDER BY v ANN OF ?",
                true,
            ),
            (
                "SELECT id FROM films WHERE token(id) > 3 ORDER BY v ANN OF ?",
                true,
            ),
            ("SELECT v FROM films ORDER BY v ANN OF ?", false),
            ("SELECT w FROM films ORDER BY v ANN OF ?", false),
            ("SELECT * FROM films ORDER BY v ANN OF ?", false),
            ("SELECT length(name) FROM films ORDER BY v ANN OF ?", false),
            (
                "SELECT writetime(name) FROM films ORDER BY v ANN OF ?",
                false,
            ),
            (
                "SELECT id FROM films WHERE w = ? ORDER BY v ANN OF ?",
                false,
            ),
        ] {
            let films = table(&["id"], &[]);
            assert_eq!(
                is_covered(query, films, &["name"], false),
                expected,
                "{query}"
            );
        }
    }

    #[test]
    fn an_index_does_not_answer_without_rows_that_may_differ_from_it() {
        const QUERY: &str = "SELECT id, name FROM films ORDER BY v ANN OF ?";
        let films = || table(&["id"], &[]);
        assert!(is_covered(QUERY, films(), &["name"], false));
        assert!(!is_covered(QUERY, films(), &[], false), "it lacks the name");
        assert!(
            !is_covered(QUERY, films(), &["name"], true),
            "rows order the answer"
        );
        for masked in ["id", "name"] {
            let mut films = films();
            films.masked_columns.push(masked.to_owned());
            assert!(
                !is_covered(QUERY, films, &["name"], false),
                "{masked} is masked"
            );
        }
        let mut films = films();
        films.masked_columns.push("w".to_owned());
        assert!(
            is_covered(QUERY, films, &["name"], false),
            "w is of no concern"
        );
    }

    #[test]
    fn collections_in_where_are_looked_for_in_rows() {
        let mut films = table(&["id"], &[]);
        for column in &mut films.columns {
            if column.name == "name" {
                column.cql_type = Some(CqlType::Set {
                    element: Box::new(CqlType::Text),
                    frozen: false,
                });
            }
        }
        let query = "SELECT id FROM films WHERE name CONTAINS ? ORDER BY v ANN OF ?";
        assert!(!is_covered(query, films, &["name"], false));
    }
}
