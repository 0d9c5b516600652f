//! Checks each request of a connection and passes it to its handler.
//!
//! Nearly all requests are searches, and each pays for every step on its way to the index. So a
//! search goes past the router, to the handler that the router would find. Everything else goes
//! through the router, and so does a search whose path has to be decoded first.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Request};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::answer_budget::{AnswerBudget, Charged};
use super::guard::Guard;
use super::{Shared, ann};
use crate::identity::IndexName;

/// The beginning of every path of an index.
const INDEXES: &str = "/api/v1/indexes/";

/// The front of a listener, which checks requests and passes them on.
pub struct Front {
    /// The routes of all requests.
    router: TowerToHyperService<Router>,
    /// The listener, for searches that go past the router. `None` where searches are refused, which
    /// the router does.
    searches: Option<Shared>,
    answers: AnswerBudget,
    guard: Arc<Guard>,
}

impl Front {
    /// A front before `router`. Its answers are charged to `answers`.
    pub fn new(
        router: Router,
        searches: Option<Shared>,
        answers: AnswerBudget,
        guard: Arc<Guard>,
    ) -> Front {
        Front {
            router: TowerToHyperService::new(router),
            searches,
            answers,
            guard,
        }
    }

    /// Answers a request. A request that the guard refuses reaches no route.
    pub async fn answer(
        self: Arc<Front>,
        request: Request<Incoming>,
    ) -> Result<Response<Charged>, Infallible> {
        if let Err(refused) = self.guard.admit(&request) {
            return Ok(self.answers.charge(refused.into_response()));
        }
        let answer = match (&self.searches, searched(&request)) {
            (Some(shared), Some(name)) => {
                let answer = ann::answer(shared, name, request).await;
                answer.into_response()
            }
            _ => self.router.call(request).await?,
        };
        Ok(self.answers.charge(answer))
    }
}

/// The index that a request searches, if the path names it without escapes. `None` for any other
/// request.
fn searched<B>(request: &Request<B>) -> Option<IndexName> {
    if request.method() != Method::POST {
        return None;
    }
    let name = request.uri().path().strip_prefix(INDEXES)?;
    let (keyspace, index) = name.strip_suffix("/ann")?.split_once('/')?;
    let plain = |segment: &str| !segment.is_empty() && !segment.contains(['/', '%']);
    (plain(keyspace) && plain(index)).then(|| IndexName {
        keyspace: keyspace.to_owned(),
        index: index.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(method: Method, uri: &str) -> Option<String> {
        let request = Request::builder().method(method).uri(uri).body(());
        searched(&request.unwrap()).map(|name| name.to_string())
    }

    #[test]
    fn searches_are_known_by_method_and_path() {
        let search = |uri| wanted(Method::POST, uri);
        assert_eq!(search("/api/v1/indexes/ks/i/ann"), Some("ks.i".to_owned()));
        assert_eq!(
            search("http://h:1/api/v1/indexes/K-s/I/ann?limit=3"),
            Some("K-s.I".to_owned())
        );
        for other in [
            "/api/v1/indexes/ks/i",
            "/api/v1/indexes/ks/i/bm25",
            "/api/v1/indexes/ks/i/ann/",
            "/api/v1/indexes/ks/i/x/ann",
            "/api/v1/indexes//i/ann",
            "/api/v1/indexes/ks//ann",
            "/api/v1/indexes/ks/ann",
            "/api/v1/indexes/k%20s/i/ann",
        ] {
            assert_eq!(search(other), None, "{other}");
        }
        assert_eq!(wanted(Method::GET, "/api/v1/indexes/ks/i/ann"), None);
    }
}
