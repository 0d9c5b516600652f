//! Checks each request of a connection and passes it to its handler.
//!
//! Each request goes by the table of routes, either past the router or through it.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Router;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use traces::{REQUEST_ID_HEADER, RequestId};

use crate::access_check::{AccessCheck, RequestClient};
use crate::answer_budget::{AnswerBudget, ChargedBody};
use crate::browser_sessions::{AdoptedSession, SessionKey};
use crate::guard::{is_guarded, is_of_console};
use crate::host_rules::HostRules;
use crate::refusal::RefusalAnswer;
use crate::routes::{ChannelRoutes, DirectPath, DirectRoute};
use crate::session_routes::SESSION;
use crate::traffic::HttpTraffic;

const REQUEST_ID: HeaderName = HeaderName::from_static(REQUEST_ID_HEADER);

/// The front of a listener, which checks requests and passes them on.
pub(crate) struct RequestFront<D> {
    /// The ways of requests before the program has started.
    before: RequestRouting<D>,
    /// The ways of requests from then on.
    since: OnceLock<RequestRouting<D>>,
    answers: AnswerBudget,
    rules: Arc<HostRules>,
}

/// The ways of requests to their handlers.
struct RequestRouting<D> {
    /// The routes of all requests.
    router: TowerToHyperService<Router>,
    /// The route past the router, and its handler.
    direct: Option<(DirectPath, Arc<D>)>,
    check: AccessCheck,
    refused: RefusalAnswer,
}

impl<D> RequestRouting<D> {
    fn new(routes: ChannelRoutes<D>) -> RequestRouting<D> {
        RequestRouting {
            router: TowerToHyperService::new(routes.router),
            direct: routes.direct,
            check: routes.check,
            refused: routes.refused,
        }
    }
}

impl<D: DirectRoute> RequestFront<D> {
    /// A front before the routes of a listener. Its answers are charged to `answers`.
    pub(crate) fn new(
        routes: ChannelRoutes<D>,
        answers: AnswerBudget,
        rules: Arc<HostRules>,
    ) -> RequestFront<D> {
        RequestFront {
            before: RequestRouting::new(routes),
            since: OnceLock::new(),
            answers,
            rules,
        }
    }

    /// Passes requests on to other routes from now on, those of open connections included. Only
    /// the first call has an effect.
    pub(crate) fn start(&self, routes: ChannelRoutes<D>) {
        self.since.get_or_init(|| RequestRouting::new(routes));
    }

    /// Answers a request, and counts it. A request that the rules of names refuse reaches no route.
    /// `client` is its client, if its address is known still. The answer has the id of the request,
    /// which the client gives or the server makes.
    pub(crate) async fn answer(
        self: Arc<RequestFront<D>>,
        request: Request<Incoming>,
        client: Option<RequestClient>,
    ) -> Result<Response<ChargedBody>, Infallible> {
        let began = Instant::now();
        let id = request_id(&request);
        let header = HeaderValue::try_from(id.to_string());
        let mut answer = id.scope(self.answer_within(request, client)).await?;
        if let Ok(header) = header {
            answer.headers_mut().insert(REQUEST_ID, header);
        }
        HttpTraffic::of_process().answered(answer.status().as_u16(), began.elapsed());
        Ok(answer)
    }

    /// Answers a request within the scope of its id. A guarded request may belong to a session,
    /// which ends if its login is refused. The console gets no challenge with a refusal: a browser
    /// would show a dialog of its own for it. All other clients get one, as some send their login
    /// only in answer to it.
    async fn answer_within(
        self: Arc<RequestFront<D>>,
        mut request: Request<Incoming>,
        client: Option<RequestClient>,
    ) -> Result<Response<ChargedBody>, Infallible> {
        let ways = self.since.get().unwrap_or(&self.before);
        if let Err(refusal) = self.rules.admit(&request) {
            return Ok(self.answers.charge((ways.refused)(refusal)));
        }
        let is_of_console = is_of_console(request.headers());
        let session = adopt_session(&ways.check, &mut request);
        let direct = ways.direct.as_ref().and_then(|(path, route)| {
            let names = path.index_of(&request)?;
            Some((path.right, route.clone(), names))
        });
        let mut answer = match direct {
            Some((right, route, (keyspace, index))) => {
                let (headers, client) = (request.headers(), client.as_ref());
                let names = (keyspace.as_str(), index.as_str());
                match ways.check.admit(right, names, headers, client).await {
                    Ok(()) => route.answer(keyspace, index, request).await,
                    Err(refusal) => (ways.refused)(refusal),
                }
            }
            None => {
                if let Some(client) = client {
                    request.extensions_mut().insert(client);
                }
                ways.router.call(request).await?
            }
        };
        if answer.status() == StatusCode::UNAUTHORIZED {
            if is_of_console {
                answer.headers_mut().remove(WWW_AUTHENTICATE);
            }
            if let Some(session) = session {
                ways.check.sessions.end(&session);
            }
        }
        Ok(self.answers.charge(answer))
    }
}

/// Gives a request the login of its session, and returns which that is.
///
/// A request of the console has no other login, unless it begins a session. A browser adds the one
/// that a dialog got for another page of this server, such as `/docs`: with that, another role than
/// the one that has logged in would be at work, and a logout would end nothing.
fn adopt_session<B>(check: &AccessCheck, request: &mut Request<B>) -> Option<SessionKey> {
    if is_of_console(request.headers()) && !begins_session(request) {
        request.headers_mut().remove(AUTHORIZATION);
    }
    if !is_guarded(request.headers()) {
        return None;
    }
    let sessions = &check.sessions;
    let session = sessions.adopt(request.headers_mut(), Instant::now())?;
    request.extensions_mut().insert(AdoptedSession(session));
    Some(session)
}

fn begins_session<B>(request: &Request<B>) -> bool {
    request.method() == Method::POST && request.uri().path() == SESSION
}

/// The id that a client gives its request, or a new one. A text that is no id is replaced.
fn request_id<B>(request: &Request<B>) -> RequestId {
    let given = request.headers().get(REQUEST_ID);
    let given = given.and_then(|value| RequestId::of(value.to_str().ok()?));
    given.unwrap_or_else(RequestId::unique)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_request_is_the_clients_if_it_is_one() {
        let of = |value: &str| {
            let request = Request::builder().header(REQUEST_ID, value).body(());
            request_id(&request.unwrap())
        };
        assert_eq!(of("abc-1").to_string(), "abc-1");
        assert_ne!(of("two words").to_string(), "two words");
        let without = Request::builder().body(()).unwrap();
        assert_ne!(request_id(&without), request_id(&without));
    }
}
