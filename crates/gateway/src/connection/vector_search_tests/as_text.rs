//! Tests of searches that are not prepared: their answers, their options, and their errors.

use super::*;

#[tokio::test]
async fn a_query_as_text_needs_no_preparing_unless_there_is_no_neighbour() {
    let mut setup = setup().await;
    let text = "SELECT name, v FROM shop.films ORDER BY v ANN OF [1, 2, 3] LIMIT 2";
    setup.client.ask(&query(text), 3).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(body).await;
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    setup
        .node
        .answer(&answer, &ResponseContext::new(stream))
        .await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);

    setup.client.ask(&query(text), 4).await;
    let body = r#"{"primary_keys":{"id":[]},"similarity_scores":[]}"#;
    setup.store.neighbours(body).await;
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Prepare { .. }));
    let read = PreparedResponse {
        id: Bytes::from_static(b"id"),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: Some(columns()),
    };
    let context = ResponseContext::new(stream);
    setup.node.answer(&Response::Prepared(read), &context).await;
    let (context, Response::Rows(told)) = setup.client.response().await else {
        panic!("no rows")
    };
    let told = told.decode().unwrap();
    assert_eq!((context.stream, told.rows.len()), (4, 0));
    assert_eq!(
        told.metadata.unwrap().columns,
        [column("name"), column("v")]
    );
}

#[tokio::test]
async fn an_exact_search_reaches_the_index_service_and_the_node_sees_nothing_of_it() {
    let mut setup = setup().await;
    let text = "SELECT name, v FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'exact': true}";
    setup.client.ask(&query(text), 3).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["exact"], true);
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);

    // What is wrong with the options is said here, as the node would not understand any.
    let wrong = text.replace("'exact'", "'exactly'");
    setup.client.ask(&query(&wrong), 4).await;
    let (_, told) = setup.client.response().await;
    let Response::Error(error) = told else {
        panic!("{told:?}")
    };
    assert!(error.message.contains("'exactly'"), "{error}");
}

#[tokio::test]
async fn options_of_searches_by_the_clusters_own_indexes_pass() {
    let mut setup = setup().await;
    let text = "SELECT name FROM films ORDER BY w ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'rerank_k': 9}";
    setup.client.ask(&query(text), 3).await;
    let (stream, request) = setup.node.request().await;
    assert_eq!(request, query(text));
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["Alien"]);
}

#[tokio::test]
async fn errors_say_who_made_them() {
    let mut setup = setup().await;
    let id = setup.prepare().await;
    let invalid = |response: Response| match response {
        Response::Error(CqlError {
            kind: ErrorKind::Invalid,
            message,
        }) => message,
        other => panic!("{other:?}"),
    };
    setup.client.ask(&execute(&id, 1001), 1).await;
    let (_, told) = setup.client.response().await;
    assert!(invalid(told).contains("not greater than 1000"));

    setup.client.ask(&execute(&id, 1), 1).await;
    let building = r#"{"reason":"INDEX_BUILDING","message":"still being constructed"}"#;
    setup
        .store
        .answer("503 Service Unavailable", building)
        .await;
    let (_, told) = setup.client.response().await;
    assert_eq!(
        invalid(told),
        "Vector Store error: HTTP status 503 Service Unavailable, message: still being constructed"
    );

    setup.client.ask(&execute(&id, 1), 1).await;
    setup
        .store
        .answer("503 Service Unavailable", "too many searches")
        .await;
    match setup.client.response().await.1 {
        Response::Error(CqlError { kind, message }) => {
            assert_eq!(kind, ErrorKind::Overloaded);
            assert!(message.ends_with("message: too many searches"), "{message}");
        }
        other => panic!("{other:?}"),
    }

    // The index is not new, so the service will not know it soon.
    setup.client.ask(&execute(&id, 1), 1).await;
    setup.store.answer("404 Not Found", "missing index").await;
    let (_, told) = setup.client.response().await;
    assert_eq!(
        invalid(told),
        "Vector Store error: HTTP status 404 Not Found, message: missing index"
    );

    for kind in [
        ErrorKind::Unauthorized,
        ErrorKind::Unprepared { id: Bytes::new() },
    ] {
        setup.client.ask(&execute(&id, 1), 1).await;
        let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
        setup.store.neighbours(body).await;
        let (stream, _) = setup.node.request().await;
        let error = Response::Error(CqlError::new(kind.clone(), "no"));
        setup
            .node
            .answer(&error, &ResponseContext::new(stream))
            .await;
        let (context, Response::Error(told)) = setup.client.response().await else {
            panic!("no error")
        };
        assert_eq!(context.stream, 1);
        match kind {
            // The id must be the client's, or its driver would not know which statement to prepare.
            ErrorKind::Unprepared { .. } => {
                assert_eq!(told.kind, ErrorKind::Unprepared { id: id.clone() });
            }
            kind => assert_eq!((told.kind, told.message.as_str()), (kind, "no")),
        }
    }
}
