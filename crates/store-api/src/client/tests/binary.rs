//! Tests of the form of requests to each service.

use super::*;
use crate::binary::AnswerWriter;

/// A binary answer with the key 7, like that of [`found`].
fn found_in_binary() -> Answer {
    let mut writer = AnswerWriter::new([(0.0f32, 1.0f32)].into_iter(), 1, 0);
    let key = 7i64.to_be_bytes();
    writer.column("k", 2, [&key[..]].into_iter());
    Answer::Binary(writer.finish())
}

/// The answer of [`found_in_binary`] to an exact search.
fn found_exactly() -> Answer {
    match found_in_binary() {
        Answer::Binary(body) => Answer::Exact(body),
        _ => unreachable!("it is binary"),
    }
}

fn json() -> (String, String) {
    ("application/json".to_owned(), String::new())
}

fn binary() -> (String, String) {
    ("application/octet-stream".to_owned(), "limit=1".to_owned())
}

#[tokio::test]
async fn scylladbs_own_service_always_gets_json() {
    let store = FakeStore::start(found()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    for _ in 0..4 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert_eq!(store.forms(), [json(), json(), json(), json()]);
}

#[tokio::test]
async fn a_service_that_answered_in_binary_gets_binary_requests() {
    let store = FakeStore::start(found_in_binary()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert_eq!(store.forms(), [json(), binary(), binary()]);
    // Refusals have no form of their own, and change nothing.
    store.set_answer(Answer::Binary(Bytes::new()));
    let error = "Vector Store returned an invalid binary answer";
    assert_eq!(ask(&client).await, Err(error.to_owned()));
    assert_eq!(store.forms(), [binary()]);
}

#[tokio::test]
async fn each_service_has_its_own_form() {
    let (ours, original) = (
        FakeStore::start(found_in_binary()).await,
        FakeStore::start(found()).await,
    );
    let client = StoreClient::new(options(&[&ours, &original])).unwrap();
    for _ in 0..64 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert!(ours.forms()[1..].iter().all(|form| *form == binary()));
    assert!(original.forms().iter().all(|form| *form == json()));
}

#[tokio::test]
async fn a_service_that_no_longer_knows_the_form_is_asked_again_at_once() {
    let store = FakeStore::start(found_in_binary()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    assert_eq!(ask(&client).await, Ok(7));
    store.forms();
    store.set_answer(found());
    for _ in 0..2 {
        assert_eq!(ask(&client).await, Ok(7), "no request fails");
    }
    assert_eq!(store.forms(), [binary(), json(), json()]);
}

#[tokio::test]
async fn a_client_without_binary_sends_only_json() {
    let store = FakeStore::start(found_in_binary()).await;
    let options = ClientOptions {
        binary: false,
        ..options(&[&store])
    };
    let client = StoreClient::new(options).unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert_eq!(store.forms(), [json(), json()]);
}

#[tokio::test]
async fn an_exact_search_is_asked_for_in_both_forms() {
    let store = FakeStore::start(found_exactly()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    let exact = AnnRequest {
        exact: true,
        ..AnnRequest::new(vec![1.0], 1)
    };
    for _ in 0..2 {
        let found = client.ann("ks", "i", &exact, &["k"]).await.unwrap();
        assert_eq!(found.keys.len(), 1);
    }
    let in_binary = (
        "application/octet-stream".to_owned(),
        "limit=1&exact=true".to_owned(),
    );
    assert_eq!(store.forms(), [json(), in_binary]);
    // A service that passes over the field may have found other rows.
    store.set_answer(found_in_binary());
    let refused = client.ann("ks", "i", &exact, &["k"]).await;
    assert_eq!(refused, Err(ClientError::NotExact));
    assert_eq!(ask(&client).await, Ok(7));
}
