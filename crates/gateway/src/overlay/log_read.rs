//! Polls of a change log: the SELECT that the CDC library sends again and again, for each group of
//! streams of each log.
//!
//! ```sql
//! SELECT * FROM "k"."t_scylla_cdc_log"
//!  WHERE "cdc$stream_id" in ? AND "cdc$time" >= minTimeuuid(?) AND "cdc$time" < minTimeuuid(?)
//! ```

use std::sync::Arc;

use bytes::Bytes;
use cql::ast::{
    Comparand, ComparisonSubject, Operator, ProjectionList, Relation, Select, Statement, Term,
};
use cql::parser::parse_statement;
use cql::wire::{
    BoundValue, ColumnsMetadata, MarkerValues, QueryParameters, Response, RowsEncoder,
};

use crate::recognise::contains_in_any_case;

/// The suffix by which a log's name differs from its table's.
const SUFFIX: &str = "_scylla_cdc_log";

/// A poll of a change log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRead {
    /// The keyspace of the log and its table.
    pub(crate) keyspace: String,
    /// The table that the log belongs to.
    pub(crate) table: String,
}

/// A prepared poll of a change log.
#[derive(Clone, Debug)]
pub(crate) struct PreparedLogRead {
    /// The log that it reads.
    pub(crate) of: LogRead,
    /// The columns of the result.
    pub(crate) columns: Arc<ColumnsMetadata>,
    /// The node's id of these columns; `None` if a client of version 4 prepared the poll.
    pub(crate) columns_id: Option<Bytes>,
}

impl LogRead {
    /// Reads a text; `None` if it differs from a poll in any way.
    pub(crate) fn read(text: &str) -> Option<LogRead> {
        if !contains_in_any_case(text.as_bytes(), SUFFIX.as_bytes()) {
            return None;
        }
        let Ok(Statement::Select(select)) = parse_statement(text).map(|parsed| parsed.statement)
        else {
            return None;
        };
        let Select {
            table,
            json: false,
            distinct: false,
            projection: ProjectionList::All,
            relations,
            group_by,
            order_by,
            per_partition_limit: None,
            limit: None,
            options,
            timeout: None,
            ..
        } = select
        else {
            return None;
        };
        let [streams, from, to] = &relations[..] else {
            return None;
        };
        let is_poll = group_by.is_empty()
            && order_by.is_empty()
            && options.is_empty()
            && is(streams, "cdc$stream_id", Operator::In, is_marker)
            && is(from, "cdc$time", Operator::GtEq, is_least)
            && is(to, "cdc$time", Operator::Lt, is_least);
        is_poll.then_some(LogRead {
            keyspace: table.keyspace?,
            table: table.name.strip_suffix(SUFFIX)?.to_owned(),
        })
    }
}

/// Whether a relation restricts this column by this operator to a term of this kind.
fn is(relation: &Relation, column: &str, operator: Operator, term_is: fn(&Term) -> bool) -> bool {
    let of_column = matches!(&relation.subject, ComparisonSubject::Column(name) if name == column);
    let Comparand::Term(term) = &relation.comparand else {
        return false;
    };
    of_column && relation.operator == operator && term_is(term)
}

fn is_marker(term: &Term) -> bool {
    matches!(term, Term::Marker(_))
}

/// Whether a term is `minTimeuuid(?)`.
fn is_least(term: &Term) -> bool {
    let Term::Function(call) = term else {
        return false;
    };
    let name = call.name.to_ascii_lowercase();
    matches!(name.as_str(), "mintimeuuid" | "min_timeuuid")
        && matches!(&call.arguments[..], [Term::Marker(_)])
}

impl PreparedLogRead {
    /// The time from which an execution reads. Microseconds since the epoch. `None` if it continues
    /// a page, or if its values are not those of a poll.
    pub(crate) fn from_micros(parameters: &QueryParameters) -> Option<i64> {
        let MarkerValues::Positional(values) = &parameters.values else {
            return None;
        };
        let [_, BoundValue::Value(from), BoundValue::Value(_)] = &values[..] else {
            return None;
        };
        let from_ms = i64::from_be_bytes(<[u8; 8]>::try_from(&from[..]).ok()?);
        parameters
            .paging_state
            .is_none()
            .then_some(from_ms.saturating_mul(1_000))
    }

    /// Whether these are the columns that a client expects. One of version 4 names none, and takes
    /// those that PREPARE returned.
    pub(crate) fn has_columns(&self, expected: Option<&Bytes>) -> bool {
        expected.is_none() || expected == self.columns_id.as_ref()
    }

    /// The answer of a node whose log has no rows.
    pub(crate) fn no_rows(&self, parameters: &QueryParameters) -> Response {
        Response::Rows(RowsEncoder::new(&self.columns, parameters.skip_metadata).finish(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: &str = "SELECT * FROM \"k\".\"T_scylla_cdc_log\" WHERE \"cdc$stream_id\" in ? \
                        AND \"cdc$time\" >= minTimeuuid(?) AND \"cdc$time\" < minTimeuuid(?)  BYPASS CACHE";

    #[test]
    fn the_query_of_the_cdc_library_is_a_poll() {
        let poll = LogRead {
            keyspace: "k".to_owned(),
            table: "T".to_owned(),
        };
        assert_eq!(LogRead::read(POLL), Some(poll));
    }

    #[test]
    fn any_other_query_is_no_poll() {
        for (this, that) in [
            (">=", ">"),
            ("<", "<="),
            ("minTimeuuid(?) AND", "maxTimeuuid(?) AND"),
            ("in ?", "= ?"),
            ("*", "\"cdc$time\""),
            ("  BYPASS", " LIMIT 5 BYPASS"),
            ("_scylla_cdc_log", ""),
            ("\"k\".", ""),
            (" AND \"cdc$time\" < minTimeuuid(?)", ""),
        ] {
            let text = POLL.replacen(this, that, 1);
            assert_ne!(text, POLL);
            assert_eq!(LogRead::read(&text), None, "{text}");
        }
    }

    #[test]
    fn an_execution_says_from_when_on_it_reads() {
        let value = |bytes: &[u8]| BoundValue::Value(Bytes::copy_from_slice(bytes));
        let time = |ms: i64| value(&ms.to_be_bytes());
        let parameters = QueryParameters {
            values: MarkerValues::Positional(vec![value(b"ids"), time(7), time(9)]),
            ..QueryParameters::default()
        };
        assert_eq!(PreparedLogRead::from_micros(&parameters), Some(7_000));
        let next_page = QueryParameters {
            paging_state: Some(Bytes::from_static(b"page")),
            ..parameters
        };
        assert_eq!(PreparedLogRead::from_micros(&next_page), None);
        let none = QueryParameters::default();
        assert_eq!(PreparedLogRead::from_micros(&none), None);
    }
}
