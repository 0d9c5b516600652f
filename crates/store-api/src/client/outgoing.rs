//! Questions to a service, in the form that the service understands.
//!
//! Searches say that they accept a binary answer. ScyllaDB's own service does not know it and
//! answers in JSON. A service that answers in the binary form also takes binary searches
//! ([`crate::binary`]), and gets them from then on. So no question is needed beforehand. If another
//! program has taken the place of a service, its 415 shows that.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use traces::{REQUEST_ID_HEADER, RequestId};

use super::uri::BaseUri;
use crate::binary::{self, ANSWER_MEDIA_TYPE, SEARCH_MEDIA_TYPE};
use crate::types::AnnRequest;

/// The name of the header that says how many milliseconds the client waits for the answer.
const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

/// The forms of answers that a search accepts: binary, and JSON from services that know no other.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.annulus.neighbours.v1, application/json;q=0.5");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A question with its path and deadline, which is the same for every service.
#[derive(Clone, Debug)]
pub struct ServiceRequest<'a> {
    /// The path, escaped.
    pub path: String,
    /// The question of the request.
    pub question: RequestContent<'a>,
    /// Whether the answer to a search may be binary.
    pub takes_binary: bool,
    /// The time after which no one waits for the answer.
    pub deadline: tokio::time::Instant,
}

/// The kinds of questions.
#[derive(Clone, Debug)]
pub enum RequestContent<'a> {
    /// Reads the resource at the path.
    Read,
    /// Requests the nearest rows of a vector.
    Search(&'a AnnRequest),
    /// Requests something else that changes nothing, such as the rows that match words.
    Query {
        /// JSON.
        body: Bytes,
        /// Whether the answer may be rows in the binary form.
        has_rows: bool,
    },
    /// Changes something, such as starting or stopping a task.
    Change {
        /// The HTTP method.
        method: Method,
        /// JSON, or empty.
        body: Bytes,
    },
}

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceResponse {
    /// The form of the body.
    pub form: MessageFormat,
    /// Whether the service says that it has searched exactly.
    pub is_exact: bool,
    /// Whether the service says that rows may be missing.
    pub is_short: bool,
    /// The body.
    pub body: Bytes,
}

/// The form in which a search or an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// JSON, as in ScyllaDB's own service.
    Json,
    /// The form of [`crate::binary`].
    Binary,
}

impl MessageFormat {
    /// The form of an answer, by its content type.
    pub fn of_answer(headers: &HeaderMap) -> MessageFormat {
        match headers.get(CONTENT_TYPE) {
            Some(value) if value == ANSWER_MEDIA_TYPE => MessageFormat::Binary,
            _ => MessageFormat::Json,
        }
    }
}

impl ServiceRequest<'_> {
    /// The request to a service. `form` is the form of a search; other questions are always JSON.
    /// It has the id of the request that this task works for, by which the logs of both name it.
    pub fn request(&self, base: &BaseUri, form: MessageFormat) -> Request<Full<Bytes>> {
        let left = self.deadline - tokio::time::Instant::now();
        let mut request =
            Request::builder().header(TIMEOUT_HEADER, HeaderValue::from(left.as_millis() as u64));
        if let Some(id) = RequestId::current() {
            request = request.header(REQUEST_ID_HEADER, id.to_string());
        }
        let accepted = if self.takes_binary { ACCEPTED } else { JSON };
        let path = base.with_path(&self.path);
        let request = match &self.question {
            RequestContent::Read => request.method(Method::GET).uri(path).body(Full::default()),
            RequestContent::Change { method, body } => request
                .method(method)
                .uri(path)
                .header(CONTENT_TYPE, JSON)
                .body(Full::from(body.clone())),
            RequestContent::Query { body, has_rows } => request
                .method(Method::POST)
                .uri(path)
                .header(CONTENT_TYPE, JSON)
                .header(ACCEPT, if *has_rows { accepted } else { JSON })
                .body(Full::from(body.clone())),
            // A filter may be longer than a query string may be.
            RequestContent::Search(search)
                if form == MessageFormat::Json
                    || search.filter.is_some()
                    || search.return_columns.is_some() =>
            {
                let body = serde_json::to_vec(search)
                    .expect("a search has no maps with keys that are no text");
                request
                    .method(Method::POST)
                    .uri(path)
                    .header(CONTENT_TYPE, JSON)
                    .header(ACCEPT, accepted)
                    .body(Full::from(body))
            }
            RequestContent::Search(search) => request
                .method(Method::POST)
                .uri(base.with_path(&format!("{}?{}", self.path, query_string(search))))
                .header(CONTENT_TYPE, HeaderValue::from_static(SEARCH_MEDIA_TYPE))
                .header(ACCEPT, accepted)
                .body(Full::from(binary::vector(&search.vector))),
        };
        request.expect("a URI and constant headers make a request")
    }
}

/// A search without its vector, as the query string of its binary form.
fn query_string(search: &AnnRequest) -> String {
    let mut query = format!("limit={}", search.limit);
    if !search.routing {
        query.push_str("&routing=false");
    }
    if search.exact {
        query.push_str("&exact=true");
    }
    if search.debug {
        query.push_str("&debug=true");
    }
    if let Some(time) = search.min_time_us {
        query.push_str(&format!("&min_time_us={time}"));
    }
    query
}
