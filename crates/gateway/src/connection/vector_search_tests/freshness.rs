//! Tests of searches that wait for the newest write, and of answers that may lack rows.

use super::*;

const BEHIND: &str = r#"{"reason":"INDEX_BEHIND","message":"not yet"}"#;

/// The time that searches wait in these tests is longer than a test may take.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_search_asks_for_the_newest_acknowledged_write() {
    let mut setup = setup_with(FreshnessOptions {
        wait: LONG,
        when_behind: WhenBehind::Error,
    })
    .await;
    let id = setup.prepare().await;
    setup.log.newest.note(setup.table, 3_000);
    setup.log.newest.note(setup.table, 1_000);
    setup.client.ask(&execute(&id, 1), 1).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["min_time_us"], 3_000);
    let (stream, _) = setup.node.request().await;
    let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (context, told) = setup.client.response().await;
    assert_eq!((names(&told).len(), context.warnings.len()), (1, 0));
}

#[tokio::test]
async fn without_a_wait_a_search_asks_for_no_write() {
    let mut setup = setup_with(FreshnessOptions {
        wait: Duration::ZERO,
        when_behind: WhenBehind::Error,
    })
    .await;
    let id = setup.prepare().await;
    setup.log.newest.note(setup.table, 3_000);
    setup.client.ask(&execute(&id, 1), 1).await;
    let search = setup.store.answer("404 Not Found", "missing index").await;
    assert_eq!(search["min_time_us"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_search_that_waits_in_vain_answers_what_the_index_knows_or_fails() {
    for when_behind in [WhenBehind::Stale, WhenBehind::Error] {
        let mut setup = setup_with(FreshnessOptions {
            wait: LONG,
            when_behind,
        })
        .await;
        let id = setup.prepare().await;
        setup.log.newest.note(setup.table, 3_000);
        setup.client.ask(&execute(&id, 1), 1).await;
        let search = setup.store.answer(UNAVAILABLE, BEHIND).await;
        assert_eq!(search["min_time_us"], 3_000);
        if when_behind == WhenBehind::Error {
            let (_, told) = setup.client.response().await;
            let is_overload = |error: &CqlError| error.kind == ErrorKind::Overloaded;
            assert!(
                matches!(&told, Response::Error(error) if is_overload(error)),
                "{told:?}"
            );
            continue;
        }
        let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
        let search = setup.store.neighbours(body).await;
        assert_eq!(search["min_time_us"], serde_json::Value::Null);
        let (stream, _) = setup.node.request().await;
        let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
        let context = ResponseContext::new(stream);
        setup.node.answer(&answer, &context).await;
        let (context, told) = setup.client.response().await;
        assert_eq!(names(&told), ["Alien"]);
        let has_warning = context.warnings.iter().any(|one| one.contains("may lack"));
        assert!(has_warning, "{:?}", context.warnings);
    }
}

#[tokio::test]
async fn an_answer_that_may_lack_rows_for_want_of_room_comes_with_a_warning() {
    for (more, is_short) in [("", false), (r#","short":true"#, true)] {
        let mut setup = setup().await;
        let id = setup.prepare().await;
        setup.client.ask(&execute(&id, 1), 1).await;
        let body = format!(r#"{{"primary_keys":{{"id":["a"]}},"similarity_scores":[1]{more}}}"#);
        setup.store.neighbours(body.leak()).await;
        let (stream, _) = setup.node.request().await;
        let answer = Response::Rows(rows(&[("Alien", "a", true)], true));
        let context = ResponseContext::new(stream);
        setup.node.answer(&answer, &context).await;
        let (context, told) = setup.client.response().await;
        assert_eq!(names(&told), ["Alien"]);
        let warned = context.warnings.iter().any(|one| one.contains("no room"));
        assert_eq!(warned, is_short, "{:?}", context.warnings);
    }
}
