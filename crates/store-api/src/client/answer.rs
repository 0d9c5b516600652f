//! Turns the answers of services into results and errors.

use bytes::Bytes;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::outgoing::{MessageFormat, ServiceResponse};
use super::{KeyValue, NearestRows};
use crate::binary::AnswerRows;
use crate::types::{PrimaryKeys, UnavailableReason};
use crate::{ClientError, MatchedRows, hex};

/// The error for an answer with another status than 200.
pub fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    #[derive(Deserialize)]
    struct RefusalBody {
        reason: Option<Value>,
        message: Option<String>,
        #[serde(default)]
        behind_us: Option<u64>,
    }
    let refusal = serde_json::from_slice::<RefusalBody>(body).ok();
    let reason = refusal.as_ref().and_then(|refusal| refusal.reason.clone());
    // A service that is not ready gives a reason. One that has too much to do gives none.
    let is_overload = status == StatusCode::SERVICE_UNAVAILABLE && reason.is_none();
    let reason = reason.filter(|_| status == StatusCode::SERVICE_UNAVAILABLE);
    let reason = reason.and_then(|reason| serde_json::from_value(reason).ok());
    let behind_us = refusal.as_ref().and_then(|refusal| refusal.behind_us);
    let message = refusal
        .and_then(|refusal| refusal.message)
        .or_else(|| serde_json::from_slice::<String>(body).ok())
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    match reason {
        Some(UnavailableReason::NodeBootstrapping) => ClientError::Unavailable,
        Some(UnavailableReason::IndexBehind) => ClientError::Behind { message, behind_us },
        _ if is_overload => ClientError::overloaded(message),
        _ => ClientError::of_answer(status, message),
    }
}

/// The columns that an answer must have.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedColumns<'a> {
    /// All columns of the primary key, partition key first.
    pub key: &'a [&'a str],
    /// The columns whose values were requested.
    pub returned: &'a [String],
}

impl<'a> ExpectedColumns<'a> {
    /// The columns that the answer to a search must have.
    pub fn of(return_columns: Option<&'a Vec<String>>, key: &'a [&'a str]) -> ExpectedColumns<'a> {
        ExpectedColumns {
            key,
            returned: return_columns.map(Vec::as_slice).unwrap_or_default(),
        }
    }
}

/// Turns the columns of a page of matches, which is in JSON, into rows.
pub fn matched(body: &[u8], key: &[&str]) -> Result<MatchedRows, ClientError> {
    #[derive(Deserialize)]
    struct PageBody {
        primary_keys: PrimaryKeys,
        #[serde(default)]
        next: Option<String>,
        #[serde(default)]
        short: bool,
    }
    let mut page: PageBody = serde_json::from_slice(body).map_err(|_| ClientError::InvalidJson)?;
    let columns = key.iter().map(|column| page.primary_keys.take(column));
    let columns: Vec<Vec<Value>> = columns
        .collect::<Option<_>>()
        .ok_or(ClientError::InvalidJson)?;
    let count = columns.first().map_or(0, Vec::len);
    if columns.iter().any(|values| values.len() != count) {
        return Err(ClientError::InvalidJson);
    }
    let mut keys: Vec<Vec<KeyValue>> = vec![Vec::with_capacity(key.len()); count];
    for values in columns {
        for (row, value) in keys.iter_mut().zip(values) {
            row.push(KeyValue::Json(value));
        }
    }
    let next = page.next.map(|next| hex::read(&next));
    Ok(MatchedRows {
        keys,
        next: match next {
            None => None,
            Some(next) => Some(next.ok_or(ClientError::InvalidJson)?),
        },
        is_short: page.short,
    })
}

/// Turns the columns of an answer into rows.
pub fn neighbours(
    answer: ServiceResponse,
    columns: ExpectedColumns<'_>,
) -> Result<NearestRows, ClientError> {
    let neighbours = match answer.form {
        MessageFormat::Json => of_json(&answer.body, columns),
        MessageFormat::Binary => of_binary(answer.body, columns),
    }?;
    Ok(NearestRows {
        is_short: neighbours.is_short || answer.is_short,
        ..neighbours
    })
}

/// Turns the columns of an answer in the binary form into rows.
fn of_binary(
    body: Bytes,
    ExpectedColumns {
        key: key_columns,
        returned,
    }: ExpectedColumns<'_>,
) -> Result<NearestRows, ClientError> {
    let mut rows = AnswerRows::read(body).map_err(|_| ClientError::InvalidBinary)?;
    let mut columns = Vec::with_capacity(key_columns.len());
    for name in key_columns {
        let mut all = rows.columns.iter_mut();
        let column = all.find(|column| column.name == *name);
        let column = column.ok_or(ClientError::InvalidBinary)?;
        columns.push(std::mem::take(&mut column.values).into_iter());
    }
    let mut keys = Vec::with_capacity(rows.similarity_scores.len());
    for _ in &rows.similarity_scores {
        // Every column has a value for each row.
        let values = columns.iter_mut().filter_map(Iterator::next);
        keys.push(values.map(KeyValue::Cql).collect());
    }
    let values = returned.iter().map(|name| {
        let column = rows.returned.iter().find(|column| column.name == *name);
        let column = column.ok_or(ClientError::InvalidBinary)?;
        let values = column.values.iter().cloned();
        Ok(values.map(|value| value.map(KeyValue::Cql)).collect())
    });
    Ok(NearestRows {
        keys,
        column_values: values.collect::<Result<_, _>>()?,
        similarity_scores: rows.similarity_scores,
        // The form has no place for it.
        is_short: false,
    })
}

/// Turns the columns of an answer in JSON into rows. There are as many rows as scores; a column may
/// be longer.
fn of_json(
    body: &[u8],
    ExpectedColumns {
        key: key_columns,
        returned,
    }: ExpectedColumns<'_>,
) -> Result<NearestRows, ClientError> {
    #[derive(Deserialize)]
    struct JsonAnswer {
        primary_keys: PrimaryKeys,
        #[serde(alias = "scores")]
        similarity_scores: Vec<f32>,
        #[serde(default)]
        column_values: PrimaryKeys,
        #[serde(default)]
        short: bool,
    }
    let mut answer: JsonAnswer =
        serde_json::from_slice(body).map_err(|_| ClientError::InvalidJson)?;
    let count = answer.similarity_scores.len();
    let mut keys: Vec<Vec<KeyValue>> = (0..count)
        .map(|_| Vec::with_capacity(key_columns.len()))
        .collect();
    for column in key_columns {
        let values = answer
            .primary_keys
            .take(column)
            .filter(|values| values.len() >= count)
            .ok_or(ClientError::InvalidJson)?;
        for (row, value) in keys.iter_mut().zip(values) {
            row.push(KeyValue::Json(value));
        }
    }
    let mut columns: Vec<Vec<Option<KeyValue>>> = Vec::with_capacity(returned.len());
    for (at, name) in returned.iter().enumerate() {
        if let Some(first) = returned[..at].iter().position(|other| other == name) {
            columns.push(columns[first].clone());
            continue;
        }
        let values = answer.column_values.take(name);
        let values = values.filter(|values| values.len() >= count);
        let values = values.ok_or(ClientError::InvalidJson)?.into_iter();
        let value = |value: Value| (!value.is_null()).then_some(KeyValue::Json(value));
        columns.push(values.take(count).map(value).collect());
    }
    Ok(NearestRows {
        keys,
        column_values: columns,
        similarity_scores: answer.similarity_scores,
        is_short: answer.short,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::AnswerWriter;

    /// The columns of a key, and no others.
    fn key<'a>(columns: &'a [&'a str]) -> ExpectedColumns<'a> {
        ExpectedColumns {
            key: columns,
            returned: &[],
        }
    }

    #[test]
    fn columns_become_rows() {
        let body = br#"{"primary_keys":{"c":["x","y","z"],"p":[1,2]},"distances":[0,1],
            "similarity_scores":[1,0.5],"more":0}"#;
        let found = of_json(body, key(&["p", "c"])).unwrap();
        let key = |p: i64, c: &str| vec![KeyValue::Json(p.into()), KeyValue::Json(c.into())];
        assert_eq!(found.keys, [key(1, "x"), key(2, "y")]);
        assert_eq!(found.similarity_scores, [1.0, 0.5]);
    }

    #[test]
    fn an_answer_that_may_lack_rows_says_so_in_either_form() {
        let json = |more: &str| {
            let body = format!(r#"{{"primary_keys":{{"p":[]}},"similarity_scores":[]{more}}}"#);
            (MessageFormat::Json, Bytes::from(body))
        };
        let mut writer = AnswerWriter::new([].into_iter(), 1, 0);
        writer.column("p", 20, [].into_iter());
        let binary = (MessageFormat::Binary, writer.finish());
        for ((form, body), header, is_short) in [
            (json(""), false, false),
            (json(r#","short":true"#), false, true),
            (json(r#","short":false"#), false, false),
            (binary.clone(), false, false),
            (binary, true, true),
        ] {
            let answer = ServiceResponse {
                form,
                is_exact: false,
                is_short: header,
                body,
            };
            let found = neighbours(answer, key(&["p"])).unwrap();
            assert_eq!(found.is_short, is_short, "{form:?}, {header}");
        }
    }

    #[test]
    fn binary_answers_are_read_by_the_names_of_columns() {
        let scores = [(0.0f32, 1.0f32), (1.0, 0.5)];
        let mut writer = AnswerWriter::new(scores.into_iter(), 2, 0);
        writer.column("c", 13, ["x", "y"].iter().map(|c| c.as_bytes()));
        writer.column("p", 20, [[1], [2]].iter().map(|p| &p[..]));
        let body = writer.finish();
        let found = of_binary(body.clone(), key(&["p", "c"])).unwrap();
        let invalid = Err(ClientError::InvalidBinary);
        assert_eq!(of_binary(body.clone(), key(&["q"])), invalid);
        assert_eq!(of_binary(body.slice(1..), key(&["p"])), invalid);
        let key = |p: &'static [u8], c: &'static str| {
            [p, c.as_bytes()].map(|value| KeyValue::Cql(Bytes::from_static(value)))
        };
        assert_eq!(found.keys, [key(&[1], "x"), key(&[2], "y")]);
        assert_eq!(found.similarity_scores, [1.0, 0.5]);
    }

    #[test]
    fn values_that_were_asked_for_come_in_the_order_asked_for() {
        let names = ["b".to_owned(), "a".to_owned(), "b".to_owned()];
        let columns = ExpectedColumns {
            key: &["p"],
            returned: &names,
        };
        let body = br#"{"primary_keys":{"p":[1,2]},"distances":[0,1],"similarity_scores":[1,0.5],
            "column_values":{"a":["x",null],"b":[3,4]}}"#;
        let found = of_json(body, columns).unwrap();
        let json = |value: i64| Some(KeyValue::Json(value.into()));
        let b = vec![json(3), json(4)];
        let a = vec![Some(KeyValue::Json("x".into())), None];
        assert_eq!(found.column_values, [b.clone(), a, b]);
        let lacking =
            br#"{"primary_keys":{"p":[1]},"similarity_scores":[1],"column_values":{"a":[1]}}"#;
        assert_eq!(of_json(lacking, columns), Err(ClientError::InvalidJson));
        let mut writer = AnswerWriter::new([(0.0f32, 1.0f32)].into_iter(), 1, 0);
        writer.column("p", 20, [&[1][..]].into_iter());
        writer.returned_column("a", 13, [None].into_iter());
        writer.returned_column("b", 13, [Some(&b"y"[..])].into_iter());
        let found = of_binary(writer.finish(), columns).unwrap();
        let b = vec![Some(KeyValue::Cql(Bytes::from_static(b"y")))];
        assert_eq!(found.column_values, [b.clone(), vec![None], b]);
    }

    #[test]
    fn scores_of_words_are_read_as_scores_of_vectors() {
        let body = br#"{"primary_keys":{"p":[1,2]},"scores":[3,0.5]}"#;
        let found = of_json(body, key(&["p"])).unwrap();
        assert_eq!(found.similarity_scores, [3.0, 0.5]);
    }

    #[test]
    fn a_page_of_matches_says_where_the_next_one_begins() {
        let body = br#"{"primary_keys":{"c":["x","y"],"p":[1,2]},"next":"00ff"}"#;
        let page = matched(body, &["p", "c"]).unwrap();
        let key = |p: i64, c: &str| vec![KeyValue::Json(p.into()), KeyValue::Json(c.into())];
        assert_eq!(page.keys, [key(1, "x"), key(2, "y")]);
        assert_eq!(page.next, Some(Bytes::from_static(&[0, 0xff])));
        assert!(!page.is_short);
        for body in [
            r#"{"primary_keys":{"p":[1,2]}}"#,
            r#"{"primary_keys":{"p":[1,2],"c":["x"]}}"#,
            r#"{"primary_keys":{"p":[1],"c":["x"]},"next":"0"}"#,
        ] {
            let page = matched(body.as_bytes(), &["p", "c"]);
            assert_eq!(page, Err(ClientError::InvalidJson), "{body}");
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_invalid() {
        for body in [
            "",
            "[]",
            r#"{"primary_keys":{"p":[1]}}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":[1,2]}"#,
            r#"{"primary_keys":{"q":[1]},"similarity_scores":[1]}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":["1"]}"#,
            r#"{"primary_keys":{"p":[1]},"similarity_scores":[null]}"#,
        ] {
            assert_eq!(
                of_json(body.as_bytes(), key(&["p"])),
                Err(ClientError::InvalidJson),
                "{body}"
            );
        }
    }

    #[test]
    fn error_bodies_are_decoded() {
        let text = |code: u16, body: &str| {
            refusal(StatusCode::from_u16(code).unwrap(), body.as_bytes()).to_string()
        };
        assert_eq!(
            text(404, "missing index: ks.none"),
            "Vector Store error: HTTP status 404 Not Found, message: missing index: ks.none"
        );
        assert_eq!(
            text(400, "\"quoted \\u00e9\""),
            "Vector Store error: HTTP status 400 Bad Request, message: quoted é"
        );
        assert_eq!(
            text(503, r#"{"reason":"INDEX_BUILDING","message":"12.500%"}"#),
            "Vector Store error: HTTP status 503 Service Unavailable, message: 12.500%"
        );
        assert_eq!(
            text(503, r#"{"reason":"NODE_BOOTSTRAPPING"}"#),
            "Vector Store service is unavailable"
        );
        let behind = br#"{"reason":"INDEX_BEHIND","message":"m","behind_us":7}"#;
        assert_eq!(
            refusal(StatusCode::SERVICE_UNAVAILABLE, behind),
            ClientError::Behind {
                message: "m".to_owned(),
                behind_us: Some(7)
            }
        );
        assert_eq!(
            text(500, r#"{"reason":"NODE_BOOTSTRAPPING"}"#),
            "Vector Store error: HTTP status 500 Internal Server Error, message: {\"reason\":\"NODE_BOOTSTRAPPING\"}"
        );
        assert_eq!(
            text(503, r#"{"reason":"later","message":"m"}"#),
            "Vector Store error: HTTP status 503 Service Unavailable, message: m"
        );
    }
}
