//! What is asked, in the form that whoever is asked understands.
//!
//! Searches say that they take a binary answer. The original knows nothing of that and answers in JSON; a
//! service that does answer so also takes binary searches ([`crate::binary`]), and gets them from then on. So
//! nothing is asked beforehand, and a service that another program replaced is found out by its 415.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use serde::Serialize;

use super::uri::BaseUri;
use crate::binary::{self, ANSWER_MEDIA_TYPE, SEARCH_MEDIA_TYPE};

/// The name of the header that tells a service how many milliseconds its answer is waited for.
const TIMEOUT_HEADER: &str = "x-request-timeout-ms";

/// What a search takes for an answer: the binary form, and JSON from whoever knows no other.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.annulus.neighbours.v1, application/json;q=0.5");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A question, the same for whichever service answers it.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Escaped.
    pub path: String,
    /// What is asked there.
    pub question: Question<'a>,
    /// Whether the answer to a search may be binary.
    pub takes_binary: bool,
    /// When nobody waits for the answer any more.
    pub deadline: tokio::time::Instant,
}

/// What may be asked.
#[derive(Clone, Debug)]
pub enum Question<'a> {
    /// What is there.
    Read,
    /// What is near a vector.
    Search(Search<'a>),
    /// That something be otherwise.
    Change {
        /// How.
        method: Method,
        /// JSON, or nothing.
        body: Bytes,
    },
}

/// A search.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Search<'a> {
    /// The query.
    pub vector: &'a [f32],
    /// Rows at most.
    pub limit: usize,
}

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What the body is.
    pub form: Form,
    /// The body.
    pub body: Bytes,
}

/// How a search or an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the original's.
    Json,
    /// As [`crate::binary`] says.
    Binary,
}

impl Form {
    /// That of an answer.
    pub fn of_answer(headers: &HeaderMap) -> Form {
        match headers.get(CONTENT_TYPE) {
            Some(value) if value == ANSWER_MEDIA_TYPE => Form::Binary,
            _ => Form::Json,
        }
    }
}

impl Ask<'_> {
    /// The request to a service. `form` is that of a search; all else is JSON.
    pub fn request(&self, base: &BaseUri, form: Form) -> Request<Full<Bytes>> {
        let left = self.deadline - tokio::time::Instant::now();
        let request =
            Request::builder().header(TIMEOUT_HEADER, HeaderValue::from(left.as_millis() as u64));
        let accepted = if self.takes_binary { ACCEPTED } else { JSON };
        let path = base.with_path(&self.path);
        let request = match &self.question {
            Question::Read => request.method(Method::GET).uri(path).body(Full::default()),
            Question::Change { method, body } => request
                .method(method)
                .uri(path)
                .header(CONTENT_TYPE, JSON)
                .body(Full::from(body.clone())),
            Question::Search(search) if form == Form::Json => {
                let body = serde_json::to_vec(search)
                    .expect("numbers and a list of numbers always serialise");
                request
                    .method(Method::POST)
                    .uri(path)
                    .header(CONTENT_TYPE, JSON)
                    .header(ACCEPT, accepted)
                    .body(Full::from(body))
            }
            Question::Search(search) => request
                .method(Method::POST)
                .uri(base.with_path(&format!("{}?limit={}", self.path, search.limit)))
                .header(CONTENT_TYPE, HeaderValue::from_static(SEARCH_MEDIA_TYPE))
                .header(ACCEPT, accepted)
                .body(Full::from(binary::vector(search.vector))),
        };
        request.expect("a URI and constant headers make a request")
    }
}
