//! Tests of searches with WHERE: relations that the index filters by, and those that each row is
//! checked for.

use super::*;

/// Rows of a name, an id and the name once more, which is read to be checked.
fn checked_rows(rows: &[(&str, &str)]) -> Response {
    let metadata = ColumnsMetadata {
        columns: vec![column("id"), column("name")],
    };
    let mut encoder = RowsEncoder::new(&metadata, false);
    for (id, name) in rows {
        encoder.cell(Some(id.as_bytes()));
        encoder.cell(Some(name.as_bytes()));
        encoder.end_row();
    }
    Response::Rows(encoder.finish(None))
}

#[tokio::test]
async fn where_is_a_filter_of_the_index_and_a_check_of_each_row() {
    let mut setup = setup().await;
    let text = "SELECT id FROM films WHERE id > 'a' AND name = 'Alien' ORDER BY v ANN OF [1, 2, 3] LIMIT 2 \
                ALLOW FILTERING";
    setup.client.ask(&query(text), 3).await;
    // The index keeps the key, but not the name.
    let body = r#"{"primary_keys":{"id":["b","c"]},"similarity_scores":[1,0.9]}"#;
    let search = setup.store.neighbours(body).await;
    let restrictions = serde_json::json!([{"type":">","lhs":"id","rhs":"a"}]);
    assert_eq!(search["filter"]["restrictions"], restrictions);
    assert_eq!(search["filter"]["allow_filtering"], true);
    let (stream, request) = setup.node.request().await;
    const READ: &str = "SELECT id \n, \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    assert!(matches!(request, Request::Query { statement, .. } if statement == READ));
    let context = ResponseContext::new(stream);
    let answer = checked_rows(&[("b", "Brazil"), ("c", "Alien")]);
    setup.node.answer(&answer, &context).await;

    // One row is another film by now, so more neighbours are requested, and the index has no more.
    let body = r#"{"primary_keys":{"id":["b","c","d"]},"similarity_scores":[1,0.9,0.8]}"#;
    let search = setup.store.neighbours(body).await;
    assert_eq!(search["filter"]["restrictions"], restrictions);
    assert!(search["limit"].as_u64() > Some(3));
    let (stream, _) = setup.node.request().await;
    let context = ResponseContext::new(stream);
    let answer = checked_rows(&[("d", "Alien")]);
    setup.node.answer(&answer, &context).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["c", "d"]);
    let Response::Rows(told) = told else {
        panic!("{told:?}")
    };
    let columns = told.decode().unwrap().metadata.unwrap().columns;
    assert_eq!(
        columns,
        [column("id")],
        "the name was read to be checked alone"
    );
}

#[tokio::test]
async fn a_column_with_an_index_of_cassandras_own_is_searched_by_once_the_service_keeps_it() {
    let mut films = table(&["id"], &[]);
    films.sai_columns.push("name".to_owned());
    let index = keeping(&films, &[]);
    let mut setup = setup_of(GatewayOptions::default(), snapshot_of(films, [index])).await;
    let text = "SELECT id FROM films WHERE id > 'a' AND name = 'Alien' ORDER BY v ANN OF [1, 2, 3] LIMIT 1";
    let by_id = serde_json::json!({"type":">","lhs":"id","rhs":"a"});
    let by_name = serde_json::json!({"type":"==","lhs":"name","rhs":"Alien"});
    let one = r#"{"primary_keys":{"id":["b"]},"similarity_scores":[1]}"#;
    let two = r#"{"primary_keys":{"id":["b","c"]},"similarity_scores":[1,0.9]}"#;
    let building = r#"{"reason":"INDEX_BUILDING","message":"40%"}"#;
    for refusal in [
        None,
        Some(("400 Bad Request", "column name is not part of the index")),
        Some((UNAVAILABLE, building)),
    ] {
        setup.client.ask(&query(text), 3).await;
        let Some((status, body)) = refusal else {
            let search = setup.store.neighbours(one).await;
            let both = serde_json::json!([by_id, by_name]);
            assert_eq!(search["filter"]["restrictions"], both);
            let (stream, _) = setup.node.request().await;
            let answer = checked_rows(&[("b", "Alien")]);
            let context = ResponseContext::new(stream);
            setup.node.answer(&answer, &context).await;
            assert_eq!(names(&setup.client.response().await.1), ["b"]);
            continue;
        };
        // The rows that the others leave are checked, and more are requested without another
        // refusal.
        setup.store.answer(status, body).await;
        for (body, row) in [(one, ("b", "Brazil")), (two, ("c", "Alien"))] {
            let search = setup.store.neighbours(body).await;
            let one = serde_json::json!([by_id]);
            assert_eq!(search["filter"]["restrictions"], one);
            let (stream, _) = setup.node.request().await;
            let context = ResponseContext::new(stream);
            setup.node.answer(&checked_rows(&[row]), &context).await;
        }
        assert_eq!(names(&setup.client.response().await.1), ["c"]);
    }
}
