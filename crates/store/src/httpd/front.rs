//! Checks each request of a connection and passes it to its handler.
//!
//! Each request goes by the table of routes (`table`), either past the router or through it.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::Shared;
use super::answer_budget::{AnswerBudget, Charged};
use super::entry::{self, Caller};
use super::guard::Guard;
use super::table::{Direct, Routes};

/// The front of a listener, which checks requests and passes them on.
pub struct Front {
    /// The ways of requests before the service has started.
    before: Ways,
    /// The ways of requests from then on.
    since: OnceLock<Ways>,
    answers: AnswerBudget,
    guard: Arc<Guard>,
}

/// The ways of requests to their handlers.
struct Ways {
    /// The routes of all requests.
    router: TowerToHyperService<Router>,
    /// The route past the router, and the listener for its handler.
    direct: Option<(Direct, Shared)>,
}

impl Ways {
    fn new(routes: Routes) -> Ways {
        Ways {
            router: TowerToHyperService::new(routes.router),
            direct: routes.direct,
        }
    }
}

impl Front {
    /// A front before the routes of a listener. Its answers are charged to `answers`.
    pub fn new(routes: Routes, answers: AnswerBudget, guard: Arc<Guard>) -> Front {
        Front {
            before: Ways::new(routes),
            since: OnceLock::new(),
            answers,
            guard,
        }
    }

    /// Passes requests on to other routes from now on, those of open connections included. Only
    /// the first call has an effect.
    pub fn start(&self, routes: Routes) {
        self.since.get_or_init(|| Ways::new(routes));
    }

    /// Answers a request. A request that the guard refuses reaches no route.
    /// `caller` is its client, if its address is known still.
    pub async fn answer(
        self: Arc<Front>,
        mut request: Request<Incoming>,
        caller: Option<Caller>,
    ) -> Result<Response<Charged>, Infallible> {
        if let Err(refused) = self.guard.admit(&request) {
            return Ok(self.answers.charge(refused.into_response()));
        }
        let ways = self.since.get().unwrap_or(&self.before);
        let searched = ways.direct.as_ref().and_then(|(direct, shared)| {
            let name = direct.index_of(&request)?;
            Some((direct, shared, name))
        });
        let answer = match searched {
            Some((direct, shared, name)) => {
                let headers = request.headers();
                let (keyspace, index) = (&name.keyspace, &name.index);
                let caller = caller.as_ref();
                match entry::admit(shared, direct.need, keyspace, index, headers, caller).await {
                    Ok(()) => super::ann::answer(shared, name, request)
                        .await
                        .into_response(),
                    Err(refused) => refused.into_response(),
                }
            }
            None => {
                if let Some(caller) = caller {
                    request.extensions_mut().insert(caller);
                }
                ways.router.call(request).await?
            }
        };
        Ok(self.answers.charge(answer))
    }
}
