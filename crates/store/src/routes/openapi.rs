//! The OpenAPI document.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_server::SESSION_DESCRIPTION;
use serde_json::Value;
use utoipa::OpenApi;

use super::Shared;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vector Store",
        description = "Nearest neighbours of a CQL table's vectors, and the texts that words find.",
    ),
    paths(
        super::health::live,
        super::health::ready,
        super::state::status,
        super::state::info,
        super::state::clock,
        super::state::tables,
        super::state::indexes,
        super::state::index,
        super::state::index_status,
        super::state::metrics,
        super::state::metrics_history,
        super::ann::ann,
        super::words::bm25,
        super::words::highlight,
        super::words::matches,
        super::words::scores,
        super::recall::measure,
        super::map::start,
        super::map::last,
        super::repair::start,
        super::repair::control,
        super::repair::status,
        super::repair::update,
        super::scrub::start,
        super::maintenance::status,
        super::maintenance::set,
        super::tasks::list,
        super::tasks::status,
        super::tasks::tree,
        super::tasks::wait,
        super::tasks::abort,
    )
)]
struct ApiDescription;

/// The document as JSON text.
pub(super) fn text() -> String {
    ApiDescription::openapi()
        .to_json()
        .expect("a description made of names and types serialises")
}

/// A document with the paths and the schemas of another one, if both are documents.
fn with_paths_of(whole: &str, added: &str) -> Option<String> {
    let mut document: Value = serde_json::from_str(whole).ok()?;
    let mut added: Value = serde_json::from_str(added).ok()?;
    for (parent, name) in [("", "paths"), ("/components", "schemas")] {
        let place = format!("{parent}/{name}");
        let Some(Value::Object(more)) = added.pointer_mut(&place).map(Value::take) else {
            continue;
        };
        if let Some(Value::Object(known)) = document.pointer_mut(&place) {
            known.extend(more);
        }
    }
    Some(document.to_string())
}

/// `GET /api-docs/openapi.json`.
pub(super) async fn document(State(shared): State<Shared>) -> Response {
    let json = HeaderValue::from_static("application/json");
    let of_sessions = shared.api.session.iter().map(|_| SESSION_DESCRIPTION);
    let of_database = shared.api.of_database.iter();
    let added = of_database.chain(&shared.api.of_process);
    let mut whole = text();
    for description in of_sessions.chain(added.map(|added| added.description)) {
        if let Some(more) = with_paths_of(&whole, description) {
            whole = more;
        }
    }
    ([(CONTENT_TYPE, json)], whole).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_gets_the_paths_and_schemas_of_another() {
        let added = r##"{"paths": {"/x": {"get": {}}}, "components": {"schemas": {"X": {}}}}"##;
        let whole: Value = serde_json::from_str(&with_paths_of(&text(), added).unwrap()).unwrap();
        assert!(whole["paths"]["/x"]["get"].is_object());
        assert!(whole["components"]["schemas"]["X"].is_object());
        assert!(whole["paths"].as_object().unwrap().len() > 20);
        assert_eq!(with_paths_of(&text(), "no JSON"), None);
    }
}
