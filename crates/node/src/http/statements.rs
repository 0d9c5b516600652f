//! Statements of routes: prepared once, and executed with values that are bound to their markers.

use std::sync::Arc;

use bytes::Bytes;
use client_memory::MemoryCharge;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, ColumnSpec, MarkerValues, PreparedResponse, QueryParameters, Request, Response,
};
use quick_cache::sync::Cache;
use value::from_json;

use super::call::TableCall;
use super::failure::HttpFailure;
use crate::requests::StatementSession;
use crate::server::StatementReply;

/// The number of statements whose ids are remembered. The node has the statements themselves, and
/// forgets the least useful when they take too much memory.
const REMEMBERED: usize = 512;
/// The most bytes of the text of a statement whose id is remembered.
const REMEMBERED_TEXT_BYTES: usize = 2 << 10;

/// A statement with a value for each of its markers, in their order. The text is made of names and
/// markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ComposedStatement {
    pub text: String,
    pub values: Vec<MarkerValue>,
}

/// A value for a marker.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MarkerValue {
    /// The JSON of a value, and its place in the request, for messages.
    Json { place: String, json: String },
    /// A value as CQL serialises it.
    Cql(Bytes),
}

/// The page of an answer that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WantedPage {
    /// The number of its rows; `None` for all in one page.
    pub size: Option<u32>,
    /// The state with which the page before ended.
    pub state: Option<Bytes>,
}

/// The answer of a statement.
#[derive(Debug, Default)]
pub(super) struct StatementAnswer {
    pub columns: Vec<ColumnSpec>,
    pub rows: Vec<Vec<Option<Bytes>>>,
    pub paging_state: Option<Bytes>,
    pub warnings: Vec<String>,
    /// The charge for the rows.
    _charge: Option<MemoryCharge>,
}

/// The ids of statements that were prepared lately, by their keyspaces and texts.
pub(super) struct PreparedIds(Cache<(String, String), Arc<PreparedResponse>>);

impl Default for PreparedIds {
    fn default() -> PreparedIds {
        PreparedIds(Cache::new(REMEMBERED))
    }
}

impl ComposedStatement {
    /// Appends a piece of the text.
    pub fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a marker with its value.
    pub fn bind(&mut self, value: MarkerValue) {
        self.text.push('?');
        self.values.push(value);
    }

    /// Appends a marker for the JSON of a value at this place of the request.
    pub fn bind_json(&mut self, place: &str, json: &str) {
        self.bind(MarkerValue::json(place, json));
    }
}

impl MarkerValue {
    /// The JSON of a value at this place of the request.
    pub fn json(place: &str, json: &str) -> MarkerValue {
        MarkerValue::Json {
            place: place.to_owned(),
            json: json.to_owned(),
        }
    }

    /// The value for a marker.
    fn bound(&self, marker: &ColumnSpec) -> Result<BoundValue, HttpFailure> {
        match self {
            MarkerValue::Cql(bytes) => Ok(BoundValue::Value(bytes.clone())),
            MarkerValue::Json { place, json } => match from_json(&marker.cql_type, json) {
                Ok(Some(bytes)) => Ok(BoundValue::Value(bytes)),
                Ok(None) => Ok(BoundValue::Null),
                Err(error) => Err(HttpFailure::of_value(place, &error)),
            },
        }
    }
}

impl TableCall {
    /// The statement of this text, prepared in a keyspace. `is_new` has it prepared again, whether
    /// its id is remembered or not.
    ///
    /// # Errors
    /// Those of a PREPARE.
    pub async fn prepare(
        &self,
        keyspace: Option<&str>,
        text: &str,
        is_new: bool,
    ) -> Result<Arc<PreparedResponse>, HttpFailure> {
        let name = (keyspace.unwrap_or_default().to_owned(), text.to_owned());
        let PreparedIds(known) = &self.tables.prepared;
        if !is_new && let Some(prepared) = known.get(&name) {
            return Ok(prepared);
        }
        let request = Request::Prepare {
            statement: text.to_owned(),
            keyspace: keyspace.map(str::to_owned),
        };
        let Response::Prepared(prepared) = self.session.answer(request).await?.response else {
            return Err(CqlError::server("bug: PREPARE was answered otherwise").into());
        };
        let prepared = Arc::new(prepared);
        if text.len() <= REMEMBERED_TEXT_BYTES {
            known.insert(name, prepared.clone());
        }
        Ok(prepared)
    }

    /// Executes a statement.
    ///
    /// # Errors
    /// A value that is none of its marker's type, and those of the statement.
    pub async fn execute(
        &self,
        statement: &ComposedStatement,
    ) -> Result<StatementAnswer, HttpFailure> {
        let page = WantedPage::default();
        self.execute_in(&self.session, statement, page).await
    }

    /// Executes a statement in a session of the same client.
    ///
    /// # Errors
    /// As [`TableCall::execute`].
    pub async fn execute_in(
        &self,
        session: &StatementSession,
        statement: &ComposedStatement,
        page: WantedPage,
    ) -> Result<StatementAnswer, HttpFailure> {
        let ComposedStatement { text, values } = statement;
        let bind = |markers: &[ColumnSpec]| bound(values, markers);
        self.execute_text(session, (None, text), bind, page).await
    }

    /// Executes the statement of this keyspace and text with the values that `bind` makes for its
    /// markers. If the schema has changed meanwhile, it is prepared again, once.
    ///
    /// # Errors
    /// Those of `bind`, and of the statement.
    pub async fn execute_text(
        &self,
        session: &StatementSession,
        (keyspace, text): (Option<&str>, &str),
        bind: impl Fn(&[ColumnSpec]) -> Result<Vec<BoundValue>, HttpFailure>,
        page: WantedPage,
    ) -> Result<StatementAnswer, HttpFailure> {
        let mut is_again = false;
        loop {
            let prepared = self.prepare(keyspace, text, is_again).await?;
            let values = bind(&prepared.bind.columns)?;
            let request = Request::Execute {
                id: prepared.id.clone(),
                result_metadata_id: None,
                parameters: QueryParameters {
                    values: MarkerValues::Positional(values),
                    page_size: page.size,
                    paging_state: page.state.clone(),
                    ..QueryParameters::default()
                },
            };
            match session.answer(request).await {
                Err(error) if is_outdated(&error) && !is_again => is_again = true,
                answer => return StatementAnswer::of(answer?),
            }
        }
    }
}

/// The values of markers, in their order.
///
/// # Errors
/// A value that is none of its marker's type, and another number of values than markers.
pub(super) fn bound(
    values: &[MarkerValue],
    markers: &[ColumnSpec],
) -> Result<Vec<BoundValue>, HttpFailure> {
    if values.len() != markers.len() {
        return Err(HttpFailure::bad_request(
            format!(
                "{} values were given for the {} markers of the statement",
                values.len(),
                markers.len()
            ),
            "give a value for each marker",
        ));
    }
    let bound = values.iter().zip(markers);
    bound.map(|(value, marker)| value.bound(marker)).collect()
}

/// Whether an error says that the statement has to be prepared again.
pub(super) fn is_outdated(error: &CqlError) -> bool {
    matches!(error.kind, ErrorKind::Unprepared { .. })
}

impl StatementAnswer {
    /// The answer that a reply is.
    ///
    /// # Errors
    /// If its rows can't be read.
    pub fn of(reply: StatementReply) -> Result<StatementAnswer, HttpFailure> {
        let StatementReply {
            response,
            warnings,
            charge,
        } = reply;
        let Response::Rows(encoded) = response else {
            return Ok(StatementAnswer {
                warnings,
                ..StatementAnswer::default()
            });
        };
        let decoded = encoded.decode().map_err(|error| {
            HttpFailure::from(CqlError::server(format!("bug: unreadable rows: {error}")))
        })?;
        Ok(StatementAnswer {
            columns: decoded.metadata.unwrap_or_default().columns,
            rows: decoded.rows,
            paging_state: decoded.paging_state,
            warnings,
            _charge: charge,
        })
    }
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::*;

    fn marker(cql_type: CqlType) -> ColumnSpec {
        ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: "c".into(),
            cql_type,
        }
    }

    #[test]
    fn values_are_bound_by_the_types_of_markers() {
        let values = [
            MarkerValue::json("row 1", "7"),
            MarkerValue::json("row 1", "null"),
            MarkerValue::Cql(Bytes::from_static(b"x")),
        ];
        let markers = [CqlType::Int, CqlType::Text, CqlType::Blob].map(marker);
        assert_eq!(
            bound(&values, &markers),
            Ok(vec![
                BoundValue::Value(Bytes::from_static(&[0, 0, 0, 7])),
                BoundValue::Null,
                BoundValue::Value(Bytes::from_static(b"x")),
            ])
        );
        let error = bound(&[MarkerValue::json("row 2", "true")], &markers[..1]).unwrap_err();
        assert!(error.error.starts_with("row 2: "), "{error:?}");
        assert!(bound(&values, &markers[..1]).is_err());
    }
}
