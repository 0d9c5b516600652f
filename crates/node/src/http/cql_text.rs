//! `POST /api/v1/cql`: any statement, with values for its markers.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::response::Response;
use cql::wire::{
    BoundValue, ColumnSpec, MarkerValues, QueryParameters, Request as CqlRequest, Response as Reply,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use value::json_string;

use super::Shared;
use super::answers::{JsonWriter, page_state};
use super::call::{CallKind, TableCall, json};
use super::failure::HttpFailure;
use super::statements::{MarkerValue, StatementAnswer, WantedPage, bound};

/// The rows of a page that a request names no size for.
const PAGE_ROWS: u32 = 1_000;

/// A statement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CqlText<'b> {
    query: String,
    #[serde(borrow)]
    parameters: Option<&'b RawValue>,
    /// The keyspace of names without one.
    keyspace: Option<String>,
    page_size: Option<u32>,
    page_state: Option<String>,
}

/// The values of a statement's markers, as they are given.
#[derive(Debug)]
enum GivenValues<'b> {
    InOrder(Vec<&'b RawValue>),
    ByName(BTreeMap<String, &'b RawValue>),
}

/// `POST /api/v1/cql`.
pub(super) async fn run(
    State(tables): State<Shared>,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, body) = TableCall::with_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let given: CqlText<'_> = json(&body.bytes)?;
        let page = WantedPage {
            size: Some(given.page_size.unwrap_or(PAGE_ROWS)).filter(|size| *size > 0),
            state: given.page_state.as_deref().map(page_state).transpose()?,
        };
        let answer = execute(&call, &given, page).await?;
        write(&call, &answer)
    };
    call.answer(work).await
}

async fn execute(
    call: &TableCall,
    given: &CqlText<'_>,
    page: WantedPage,
) -> Result<StatementAnswer, HttpFailure> {
    let keyspace = given.keyspace.as_deref();
    if let Some(parameters) = given.parameters {
        let values = GivenValues::of(parameters)?;
        let bind = |markers: &[ColumnSpec]| values.bound(markers);
        let text = (keyspace, given.query.as_str());
        return call.execute_text(&call.session, text, bind, page).await;
    }
    let request = CqlRequest::Query {
        statement: given.query.clone(),
        parameters: QueryParameters {
            values: MarkerValues::Positional(Vec::new()),
            page_size: page.size,
            paging_state: page.state,
            keyspace: given.keyspace.clone(),
            ..QueryParameters::default()
        },
    };
    let reply = call.session.answer(request).await?;
    if let Reply::SetKeyspace(_) = &reply.response {
        return Err(HttpFailure::bad_request(
            "USE has no effect over HTTP, as each request is by itself",
            "send the keyspace as \"keyspace\" with each statement",
        ));
    }
    StatementAnswer::of(reply)
}

impl<'b> GivenValues<'b> {
    fn of(parameters: &'b RawValue) -> Result<GivenValues<'b>, HttpFailure> {
        let text = parameters.get();
        let given = match text.starts_with('{') {
            true => serde_json::from_str(text).map(GivenValues::ByName),
            false => serde_json::from_str(text).map(GivenValues::InOrder),
        };
        given.map_err(|error| {
            HttpFailure::bad_request(
                format!("parameters: {error}"),
                "a list has a value for each ?, an object one for each :name",
            )
        })
    }

    /// The values for the markers.
    fn bound(&self, markers: &[ColumnSpec]) -> Result<Vec<BoundValue>, HttpFailure> {
        let values = match self {
            GivenValues::InOrder(values) => {
                let values = values.iter().enumerate();
                let values = values.map(|(at, value)| {
                    MarkerValue::json(&format!("parameter {}", at + 1), value.get())
                });
                values.collect()
            }
            GivenValues::ByName(values) => {
                let is_of_marker =
                    |name: &&String| markers.iter().any(|marker| *marker.name == ***name);
                if let Some(unknown) = values.keys().find(|name| !is_of_marker(name)) {
                    return Err(HttpFailure::bad_request(
                        format!("parameters: the statement has no marker :{unknown}"),
                        "a marker is :name, or ? with the name of its column",
                    ));
                }
                let values = markers.iter().map(|marker| {
                    let given = values.get(&*marker.name).ok_or_else(|| {
                        HttpFailure::bad_request(
                            format!("parameters: there is no value for :{}", marker.name),
                            "give a value, or null",
                        )
                    })?;
                    Ok(MarkerValue::json(&format!(":{}", marker.name), given.get()))
                });
                values.collect::<Result<Vec<_>, HttpFailure>>()?
            }
        };
        bound(&values, markers)
    }
}

fn write(call: &TableCall, answer: &StatementAnswer) -> Result<String, HttpFailure> {
    let mut text = JsonWriter::new(call);
    text.put("{\"columns\":[");
    for (at, column) in answer.columns.iter().enumerate() {
        text.put(if at > 0 { "," } else { "" });
        text.put(&format!(
            "{{\"name\":{},\"type\":{}}}",
            json_string(&column.name),
            json_string(&column.cql_type.to_string())
        ));
    }
    text.put("],\"rows\":");
    text.put_rows(&answer.columns, &answer.rows)?;
    text.put_rest(answer.paging_state.as_ref(), &answer.warnings);
    text.put("}");
    Ok(text.finish())
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::*;

    #[test]
    fn values_come_in_order_or_by_name() {
        let marker = |name: &str| ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: name.into(),
            cql_type: CqlType::Tinyint,
        };
        let markers = [marker("a"), marker("b"), marker("a")];
        let bound = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            GivenValues::of(raw)?.bound(&markers)
        };
        let byte = |byte: u8| BoundValue::Value(vec![byte].into());
        assert_eq!(
            bound("[1, 2, null]"),
            Ok(vec![byte(1), byte(2), BoundValue::Null])
        );
        assert_eq!(
            bound(r#"{"b": 2, "a": 1}"#),
            Ok(vec![byte(1), byte(2), byte(1)])
        );
        for wrong in [
            "[1]",
            "3",
            r#"{"a": 1}"#,
            r#"{"a": 1, "b": 2, "c": 3}"#,
            "[1, 2, 300]",
        ] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
    }
}
