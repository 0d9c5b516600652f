//! What the requests of a connection come to.
//!
//! Searches are nearly all that is asked for, and what a request passes on its way to the index is paid for by each. So a
//! search goes past the router, to the very handler that the router would find; everything else, and a search whose path
//! has to be decoded first, goes through it.

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

/// Where every path of an index begins.
const INDEXES: &str = "/api/v1/indexes/";

/// What requests come to.
pub struct Front {
    /// Everything.
    router: TowerToHyperService<Router>,
    /// What answers searches; absent where they are refused, which the router does.
    searches: Option<Shared>,
    answers: AnswerBudget,
    guard: Arc<Guard>,
}

impl Front {
    /// In front of routes, whose answers are charged for.
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

    /// The answer.
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

/// Which index a request wants to search, if that stands in its path as it is.
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
