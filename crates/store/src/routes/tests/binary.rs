//! Tests of searches and answers in the binary form.

use store_api::binary::{ANSWER_MEDIA_TYPE, AnswerRows, SEARCH_MEDIA_TYPE, vector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// The longest time that a test waits for anything.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// The status, content type and body of an answer.
type Answered = (u16, String, Bytes);

impl Service {
    /// Sends a search of `ks.idx`.
    async fn post(&self, query: &str, content_type: &str, accept: &str, body: Bytes) -> Answered {
        let uri = format!("{}/api/v1/indexes/ks/idx/ann{query}", self.base);
        let request = hyper::Request::post(uri)
            .header("content-type", content_type)
            .header("accept", accept)
            .body(Full::new(body))
            .unwrap();
        let response = self.http.request(request).await.unwrap();
        let status = response.status().as_u16();
        let content_type = response.headers()["content-type"].to_str().unwrap();
        let content_type = content_type.to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, content_type, body)
    }

    /// Sends a binary search that is answered in JSON or refused. Returns status and body.
    async fn search(&self, query: &str, body: impl Into<Bytes>) -> (u16, String) {
        let answered = self.post(query, SEARCH_MEDIA_TYPE, "*/*", body.into());
        let (status, _, body) = answered.await;
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_four_pairs_of_forms_say_the_same() {
    let service = Service::serving().await;
    let json = Bytes::from_static(br#"{"vector":[0,0],"limit":2}"#);
    let searches = [
        ("", "application/json", json),
        ("?limit=2", SEARCH_MEDIA_TYPE, vector(&[0.0, 0.0])),
    ];
    for (query, content_type, body) in searches {
        let asked = service.post(query, content_type, "application/json", body.clone());
        let (status, answered, text) = asked.await;
        assert_eq!((status, answered.as_str()), (200, "application/json"));
        assert_eq!(
            text,
            r#"{"primary_keys":{"pk":[0,1],"ck":["a","b"]},"distances":[0.0,25.0],"similarity_scores":[1.0,0.03846154]}"#
        );
        let accept = format!("{ANSWER_MEDIA_TYPE}, application/json");
        let (status, answered, bytes) = service.post(query, content_type, &accept, body).await;
        assert_eq!((status, answered.as_str()), (200, ANSWER_MEDIA_TYPE));
        let rows = AnswerRows::read(bytes).unwrap();
        assert_eq!(rows.distances, [0.0, 25.0]);
        assert_eq!(rows.similarity_scores, [1.0, 0.03846154]);
        let names = rows.columns.iter().map(|c| (c.name.as_str(), c.typ));
        assert_eq!(names.collect::<Vec<_>>(), [("pk", 0x09), ("ck", 0x0d)]);
        assert_eq!(rows.columns[0].values[1], 1i32.to_be_bytes()[..]);
        assert_eq!(rows.columns[1].values, ["a", "b"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_filter_and_exact_are_read_from_the_query() {
    let service = Service::serving().await;
    let origin = vector(&[0.0, 0.0]);
    let one = service.search("", origin.clone()).await;
    assert!(one.1.contains(r#""pk":[0]"#), "{one:?}");
    let all = service.search("?limit=100000", origin.clone()).await;
    assert!(all.1.contains(r#""pk":[0,1,2]"#), "{all:?}");
    let unknown = service.search("?limit=1&filtr=1", origin.clone()).await;
    assert_eq!(unknown.0, 400);
    assert!(unknown.1.contains(r#"unknown key "filtr""#), "{unknown:?}");
    let exact = service.search("?exact=true", origin.clone()).await;
    assert_eq!(exact, one);
    let unrestricted = "?filter=%7B%22restrictions%22:[],%22allow_filtering%22:true%7D";
    assert_eq!(service.search(unrestricted, origin.clone()).await.0, 200);
    let restricted = "?filter=%7B%22restrictions%22:[%7B%22type%22:%22==%22,%22lhs%22:%22pk%22,%22rhs%22:1%7D]%7D";
    let (status, text) = service.search(restricted, origin.clone()).await;
    assert_eq!(status, 400);
    assert!(text.contains("ALLOW FILTERING"), "{text}");
    for (query, named) in [
        ("?limit=0", "limit"),
        ("?limit=ten", "limit"),
        ("?filter=1", "filter"),
        ("?exact=1", "exact"),
    ] {
        let (status, text) = service.search(query, origin.clone()).await;
        assert_eq!(status, 422, "{query}");
        assert!(text.starts_with(named), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_vector_of_the_index() {
    let service = Service::serving().await;
    for bytes in [1, 3, 7, 9] {
        let expected =
            format!("The body has {bytes} bytes, which is no whole number of 32-bit floats");
        let refused = service.search("", vec![0; bytes]).await;
        assert_eq!(refused, (400, expected));
    }
    for (elements, named) in [
        (&[][..], "expected 2, got 0"),
        (&[1.0], "expected 2, got 1"),
        (&[1.0; 3], "expected 2, got 3"),
        (&[1.0; 16_000], "expected 2, got 16000"),
    ] {
        let expected = format!("Wrong embedding dimension: {named}");
        assert_eq!(service.search("", vector(elements)).await, (400, expected));
    }
    for (position, element) in [(0, f32::NAN), (1, f32::INFINITY), (1, f32::NEG_INFINITY)] {
        let mut elements = [0.0; 2];
        elements[position] = element;
        let expected = format!("vector[{position}] is not a finite 32-bit number");
        assert_eq!(service.search("", vector(&elements)).await, (400, expected));
    }
    let huge = vec![0; (2 << 20) + 4];
    assert_eq!(service.search("", huge).await.0, 413);
    assert_eq!(
        service.search("", vector(&[0.0; 2])).await.0,
        200,
        "it goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_the_same_for_binary_clients() {
    let service = Service::serving().await;
    let asked = service.post("", SEARCH_MEDIA_TYPE, ANSWER_MEDIA_TYPE, Bytes::new());
    let (status, content_type, body) = asked.await;
    assert_eq!(
        (status, content_type.as_str()),
        (400, "text/plain; charset=utf-8")
    );
    assert_eq!(body, "Wrong embedding dimension: expected 2, got 0");

    let starting = Service::start(100).await;
    starting.set_connected_with_index();
    let asked = starting.post("", SEARCH_MEDIA_TYPE, ANSWER_MEDIA_TYPE, vector(&[0.0; 2]));
    let (status, content_type, body) = asked.await;
    assert_eq!((status, content_type.as_str()), (503, "application/json"));
    assert_eq!(body, r#"{"reason":"NODE_BOOTSTRAPPING"}"#);
}

impl Service {
    /// Puts the service into the state in which it builds its first index.
    fn set_connected_with_index(&self) {
        self.engine.set_connected(true);
        self.add(identity("idx"));
        self.engine.first_discovery();
    }
}

/// Sends a head that announces a body of `length` bytes, and then `body`. Returns all that comes
/// until the server closes the connection.
async fn promise(service: &Service, length: usize, body: &[u8]) -> String {
    let address = service.listening.address();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    // The bytes beyond the announced length count as another request, which ends the connection.
    let close = if body.len() == length {
        "Connection: close\r\n"
    } else {
        ""
    };
    let head = format!(
        "POST /api/v1/indexes/ks/idx/ann HTTP/1.1\r\nHost: localhost\r\nContent-Type: {SEARCH_MEDIA_TYPE}\r\n\
         Content-Length: {length}\r\n{close}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    if body.len() < length {
        stream.shutdown().await.unwrap();
    }
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    read.await.expect("the connection is closed").unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_that_are_not_as_promised() {
    let service = Service::serving().await;
    let body = vector(&[0.0; 2]);
    let right = promise(&service, body.len(), &body).await;
    assert!(right.starts_with("HTTP/1.1 200"), "{right}");
    // A body that is cut short, or followed by bytes that are no request, never gets the answer to
    // another vector.
    for length in [0, 4, 12, 1 << 40] {
        let answer = promise(&service, length, &body).await;
        assert!(!answer.contains("200 OK"), "{length}: {answer}");
    }
    assert_eq!(service.search("", body).await.0, 200, "it goes on");
}
