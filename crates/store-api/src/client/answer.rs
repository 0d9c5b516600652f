//! What answers mean.

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::Neighbours;
use crate::ClientError;
use crate::types::{PrimaryKeys, UnavailableReason};

/// What an answer other than 200 means.
pub fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    #[derive(Deserialize)]
    struct Refusal {
        reason: Option<Value>,
        message: Option<String>,
    }
    let refusal = serde_json::from_slice::<Refusal>(body).ok();
    if status == StatusCode::SERVICE_UNAVAILABLE
        && let Some(reason) = refusal.as_ref().and_then(|refusal| refusal.reason.clone())
        && let Ok(UnavailableReason::NodeBootstrapping) = serde_json::from_value(reason)
    {
        return ClientError::Unavailable;
    }
    let message = refusal
        .and_then(|refusal| refusal.message)
        .or_else(|| serde_json::from_slice::<String>(body).ok())
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    ClientError::Status {
        status: match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        },
        message,
    }
}

/// Turns the columns of an answer into rows. There are as many rows as scores; a column may be
/// longer.
pub fn neighbours(body: &[u8], key_columns: &[&str]) -> Result<Neighbours, ClientError> {
    #[derive(Deserialize)]
    struct Answer {
        primary_keys: PrimaryKeys,
        similarity_scores: Vec<f32>,
    }
    let mut answer: Answer = serde_json::from_slice(body).map_err(|_| ClientError::InvalidJson)?;
    let count = answer.similarity_scores.len();
    let mut keys: Vec<Vec<Value>> = (0..count)
        .map(|_| Vec::with_capacity(key_columns.len()))
        .collect();
    for column in key_columns {
        let values = answer
            .primary_keys
            .take(column)
            .filter(|values| values.len() >= count)
            .ok_or(ClientError::InvalidJson)?;
        for (row, value) in keys.iter_mut().zip(values) {
            row.push(value);
        }
    }
    Ok(Neighbours {
        keys,
        similarity_scores: answer.similarity_scores,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let body = br#"{"primary_keys":{"c":["x","y","z"],"p":[1,2]},"distances":[0,1],
            "similarity_scores":[1,0.5],"more":0}"#;
        let found = neighbours(body, &["p", "c"]).unwrap();
        assert_eq!(found.keys[0], vec![Value::from(1), Value::from("x")]);
        assert_eq!(found.keys[1], vec![Value::from(2), Value::from("y")]);
        assert_eq!(found.similarity_scores, [1.0, 0.5]);
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
                neighbours(body.as_bytes(), &["p"]),
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
