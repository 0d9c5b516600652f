//! `POST /api/v1/embed`: the embeddings of sentences, so that a search takes a sentence where an
//! index has vectors. The operator names the server that makes them (`--embeddings-url`): texts go
//! nowhere else.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use embeddings::TextEmbedder;
use http_server::{AddedRoutes, BodyLimits, RouteFailure, RouteRow, check_guard};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

/// The most texts of a request.
const TEXTS_MAX: usize = 16;

/// The most bytes of a text.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The longest body of a request, in bytes: each byte of a text may take six in JSON (`\u001f`).
const BODY_BYTES_MAX: usize = 7 * TEXTS_MAX * TEXT_BYTES_MAX;

/// The bytes of bodies that are on their way.
const BODIES_BYTES_MAX: usize = 4 << 20;

/// The longest time in which a body must arrive.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The longest time of a request to the server of embeddings, its tries included.
const EMBEDDED_WITHIN: Duration = Duration::from_secs(30);

/// Requests to the server of embeddings at a time. More are refused.
const REQUESTS_MAX: usize = 8;

/// The route, and the server of embeddings if there is one. Clones share its bounds.
#[derive(Clone)]
pub struct EmbedService {
    embedder: Option<Arc<TextEmbedder>>,
    bodies: Arc<BodyLimits>,
    places: Arc<Semaphore>,
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextsBody {
    texts: Vec<String>,
}

/// The answer.
#[derive(Debug, PartialEq, Serialize)]
struct EmbeddedTexts {
    model: String,
    dimensions: usize,
    vectors: Vec<Vec<f32>>,
}

impl EmbedService {
    /// A service by this server of embeddings; `None`: requests are answered that none is set.
    pub fn new(embedder: Option<TextEmbedder>) -> EmbedService {
        EmbedService {
            embedder: embedder.map(Arc::new),
            bodies: Arc::new(BodyLimits::new(
                BODIES_BYTES_MAX,
                BODY_BYTES_MAX,
                BODY_WITHIN,
            )),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }
    }

    /// Whether there is a server of embeddings.
    pub fn has_server(&self) -> bool {
        self.embedder.is_some()
    }

    /// The row of the table of routes, with its description.
    pub fn routes(&self) -> AddedRoutes {
        let row: RouteRow<EmbedService> = RouteRow::new(MethodFilter::POST, "/api/v1/embed", embed);
        AddedRoutes {
            rows: vec![row.private().with_state(self.clone())],
            description: include_str!("embed.json"),
        }
    }

    /// Checks a request before its body is read.
    fn admit(&self, headers: &HeaderMap) -> Result<Arc<TextEmbedder>, RouteFailure> {
        check_guard(headers)?;
        self.embedder.clone().ok_or_else(|| {
            RouteFailure::new(
                StatusCode::NOT_FOUND,
                "this server has no server of embeddings",
                "start it with --embeddings-url, or send a vector",
            )
        })
    }

    /// The answer for these texts.
    async fn embedded(
        &self,
        embedder: &TextEmbedder,
        texts: &[String],
    ) -> Result<EmbeddedTexts, RouteFailure> {
        let place = self.places.try_acquire().map_err(|_| {
            RouteFailure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{REQUESTS_MAX} requests wait for the server of embeddings"),
                "send it again in a second",
            )
        })?;
        let embedding = tokio::time::timeout(EMBEDDED_WITHIN, embedder.embed(texts)).await;
        drop(place);
        let vectors = match embedding {
            Ok(Ok(vectors)) => vectors,
            Ok(Err(error)) => return Err(unusable(error.to_string())),
            Err(_) => {
                let within = EMBEDDED_WITHIN.as_secs();
                return Err(unusable(format!(
                    "the embeddings server did not answer within {within} s"
                )));
            }
        };
        Ok(EmbeddedTexts {
            model: embedder.model().to_owned(),
            dimensions: dimensions(&vectors).map_err(unusable)?,
            vectors,
        })
    }
}

/// The failure for a server of embeddings that does not do its work.
fn unusable(why: String) -> RouteFailure {
    let hint =
        "look whether it runs, and whether --embeddings-url and --embeddings-model are its own";
    RouteFailure::new(StatusCode::BAD_GATEWAY, why, hint)
}

/// The number of elements of each vector. An error is a reason not to use them.
fn dimensions(vectors: &[Vec<f32>]) -> Result<usize, String> {
    let dimensions = vectors.first().map_or(0, Vec::len);
    let is_usable = |vector: &Vec<f32>| {
        vector.len() == dimensions && vector.iter().all(|element| element.is_finite())
    };
    match dimensions > 0 && vectors.iter().all(is_usable) {
        true => Ok(dimensions),
        false => Err(
            "the embeddings server answered vectors that are empty, of several lengths or infinite"
                .to_owned(),
        ),
    }
}

/// Checks the texts of a request.
fn check(texts: &[String]) -> Result<(), RouteFailure> {
    let wrong = |error: String| {
        let hint = "send {\"texts\": [\"a lonely robot\"]}";
        Err(RouteFailure::new(StatusCode::BAD_REQUEST, error, hint))
    };
    if !(1..=TEXTS_MAX).contains(&texts.len()) {
        return wrong(format!("{} texts; 1 to {TEXTS_MAX} are taken", texts.len()));
    }
    match texts.iter().map(String::len).max() {
        Some(bytes) if bytes > TEXT_BYTES_MAX => wrong(format!(
            "a text of {bytes} bytes; {TEXT_BYTES_MAX} are the most"
        )),
        _ => Ok(()),
    }
}

/// Returns the embeddings of texts.
async fn embed(
    State(service): State<EmbedService>,
    request: Request<Body>,
) -> Result<Json<EmbeddedTexts>, Response> {
    let (parts, body) = request.into_parts();
    let embedder = service.admit(&parts.headers);
    let embedder = embedder.map_err(IntoResponse::into_response)?;
    let received = service.bodies.read(body).await;
    let received = received.map_err(IntoResponse::into_response)?;
    let read: Result<TextsBody, _> = serde_json::from_slice(&received.bytes);
    let TextsBody { texts } = read.map_err(|error| {
        let hint = "send {\"texts\": [\"a lonely robot\"]}";
        let error = format!("the body: {error}");
        RouteFailure::new(StatusCode::BAD_REQUEST, error, hint).into_response()
    })?;
    check(&texts).map_err(IntoResponse::into_response)?;
    let answer = service.embedded(&embedder, &texts).await;
    answer.map(Json).map_err(IntoResponse::into_response)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::Value;

    use super::*;

    fn guarded() -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("annulus");
        headers.insert("x-requested-with", value);
        headers
    }

    #[test]
    fn without_a_server_the_setting_is_named() {
        let service = EmbedService::new(None);
        assert!(!service.has_server());
        let refused = service.admit(&guarded()).unwrap_err();
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        assert!(refused.hint.contains("--embeddings-url"), "{refused:?}");
        let refused = service.admit(&HeaderMap::new()).unwrap_err();
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }

    #[test]
    fn texts_have_bounds() {
        let text = |bytes: usize| "x".repeat(bytes);
        assert_eq!(check(&[text(TEXT_BYTES_MAX)]), Ok(()));
        assert_eq!(check(&vec![text(1); TEXTS_MAX]), Ok(()));
        for wrong in [
            vec![],
            vec![text(TEXT_BYTES_MAX + 1)],
            vec![text(1); TEXTS_MAX + 1],
        ] {
            let refused = check(&wrong).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn vectors_that_no_index_takes_are_refused() {
        assert_eq!(dimensions(&[vec![1.0, 2.0], vec![3.0, 4.0]]), Ok(2));
        for wrong in [
            vec![],
            vec![vec![]],
            vec![vec![1.0], vec![1.0, 2.0]],
            vec![vec![f32::INFINITY]],
        ] {
            assert!(dimensions(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_route_is_described() {
        let routes = EmbedService::new(None).routes();
        let document: Value = serde_json::from_str(routes.description).unwrap();
        for row in routes.rows {
            assert!(document["paths"][row.path()]["post"].is_object());
            assert!(row.is_private());
        }
    }
}
