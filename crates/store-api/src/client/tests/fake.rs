//! A fake service that gives the answers that a test sets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use traces::REQUEST_ID_HEADER;

use crate::binary::ANSWER_MEDIA_TYPE;
use crate::types::EXACT_HEADER;

/// The answer to a search.
#[derive(Clone)]
pub enum Answer {
    Text {
        status: u16,
        body: &'static str,
    },
    /// The answer of a service that takes binary searches too. A search that accepts it gets these
    /// bytes; others find the key 7 in JSON.
    Binary(Bytes),
    /// The answer of a service that knows exact searches, too.
    Exact(Bytes),
    Never,
}

impl Answer {
    pub fn of(status: u16, body: &'static str) -> Answer {
        Answer::Text { status, body }
    }
}

/// A fake service that gives the answers that a test sets, until the test ends.
pub struct FakeStore {
    address: SocketAddr,
    script: Arc<Script>,
}

struct Script {
    answer: Mutex<Answer>,
    status: Mutex<&'static str>,
    /// Status and body of the answer about the state of an index.
    index: Mutex<(u16, &'static str)>,
    /// The number of times that this state was requested.
    index_looks: watch::Sender<usize>,
    searches: AtomicUsize,
    /// The `Host` header of the last search.
    host: Mutex<String>,
    /// The id of the last search.
    request_id: Mutex<Option<String>>,
    /// Content type and query string of every search.
    forms: Mutex<Vec<(String, String)>>,
}

impl FakeStore {
    pub async fn start(answer: Answer) -> FakeStore {
        FakeStore::start_on(answer, None).await
    }

    /// Starts a service with a certificate. Returns it with the authority that clients must trust,
    /// which is the certificate itself.
    pub async fn start_tls(answer: Answer) -> (FakeStore, Vec<u8>) {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let store = FakeStore::start_on(answer, Some(acceptor)).await;
        (store, own.cert.pem().into_bytes())
    }

    async fn start_on(answer: Answer, tls: Option<TlsAcceptor>) -> FakeStore {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Script {
            answer: Mutex::new(answer),
            status: Mutex::new("SERVING"),
            index: Mutex::new((404, "missing index")),
            index_looks: watch::Sender::new(0),
            searches: AtomicUsize::new(0),
            host: Mutex::default(),
            request_id: Mutex::default(),
            forms: Mutex::default(),
        });
        let of_server = script.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, tls) = (of_server.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, script).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, script).await;
                            }
                        }
                    }
                });
            }
        });
        FakeStore { address, script }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set_answer(&self, answer: Answer) {
        *self.script.answer.lock().unwrap() = answer;
    }

    pub fn set_status(&self, status: &'static str) {
        *self.script.status.lock().unwrap() = status;
    }

    pub fn set_index(&self, status: u16, body: &'static str) {
        *self.script.index.lock().unwrap() = (status, body);
    }

    /// Waits until the state of the index is requested again, and once more: the client has then
    /// seen the state that was set before, and has not been content with it.
    pub async fn is_looked_at_twice(&self) {
        let mut looks = self.script.index_looks.subscribe();
        let seen = *looks.borrow_and_update();
        let twice = looks.wait_for(|looks| *looks >= seen + 2);
        tokio::time::timeout(super::PATIENCE, twice)
            .await
            .expect("it is asked for on and on")
            .unwrap();
    }

    pub fn searches(&self) -> usize {
        self.script.searches.load(Ordering::SeqCst)
    }

    /// Content type and query string of every search since the last call.
    pub fn forms(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.script.forms.lock().unwrap())
    }

    pub fn request_id(&self) -> Option<String> {
        self.script.request_id.lock().unwrap().clone()
    }

    pub fn host(&self) -> String {
        self.script.host.lock().unwrap().clone()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, script: Arc<Script>) {
    let service = service_fn(move |request| {
        let script = script.clone();
        async move { Ok::<_, Infallible>(script.answer(request).await) }
    });
    // A client that goes away is no error here.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Script {
    async fn answer(&self, request: Request<hyper::body::Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == "/api/v1/status" {
            let status = format!("\"{}\"", *self.status.lock().unwrap());
            return Response::new(Full::from(status));
        }
        if request.uri().path() == "/api/v1/indexes/ks/i/status" {
            let (status, body) = *self.index.lock().unwrap();
            self.index_looks.send_modify(|looks| *looks += 1);
            let response = Response::builder().status(status);
            return response.body(Full::from(body)).unwrap();
        }
        self.searches.fetch_add(1, Ordering::SeqCst);
        let id = request.headers().get(REQUEST_ID_HEADER);
        *self.request_id.lock().unwrap() = id.map(|id| id.to_str().unwrap().to_owned());
        let host = request.headers()[HOST].to_str().unwrap();
        host.clone_into(&mut self.host.lock().unwrap());
        let header = |name| {
            let value = request.headers().get(name);
            value.map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        let (form, accepted) = (header(CONTENT_TYPE), header(ACCEPT));
        let query = request.uri().query().unwrap_or_default().to_owned();
        self.forms.lock().unwrap().push((form.clone(), query));
        let answer = self.answer.lock().unwrap().clone();
        let mut response = Response::builder();
        if matches!(answer, Answer::Exact(_)) {
            response = response.header(EXACT_HEADER, "true");
        }
        match answer {
            // Like ScyllaDB's own service, this one knows only JSON, whatever is accepted.
            Answer::Text { .. } if form != "application/json" => response
                .status(415)
                .body(Full::from("what is that?"))
                .unwrap(),
            Answer::Text { status, body } => {
                response.status(status).body(Full::from(body)).unwrap()
            }
            Answer::Binary(body) | Answer::Exact(body) if accepted.contains(ANSWER_MEDIA_TYPE) => {
                let response = response.header(CONTENT_TYPE, ANSWER_MEDIA_TYPE);
                response.body(Full::from(body)).unwrap()
            }
            Answer::Binary(_) | Answer::Exact(_) => {
                response.body(Full::from(super::FOUND)).unwrap()
            }
            Answer::Never => std::future::pending().await,
        }
    }
}
