//! Tests of searches for words: their pages, what the gateway computes of them, and what it counts.

use super::*;
use crate::vector_search::fixtures::words_snapshot;

async fn setup_for_words() -> Setup {
    setup_of(GatewayOptions::default(), words_snapshot()).await
}

/// Rows of these text columns.
fn text_rows(names: &[&str], rows: &[&[&str]]) -> Response {
    let metadata = ColumnsMetadata {
        columns: names.iter().map(|name| column(name)).collect(),
    };
    let mut encoder = RowsEncoder::new(&metadata, false);
    for row in rows {
        for cell in *row {
            encoder.cell(Some(cell.as_bytes()));
        }
        encoder.end_row();
    }
    Response::Rows(encoder.finish(None))
}

fn asked(statement: &str, page_size: Option<u32>, paging_state: Option<Bytes>) -> Request {
    Request::Query {
        statement: statement.to_owned(),
        parameters: QueryParameters {
            page_size,
            paging_state,
            ..QueryParameters::default()
        },
    }
}

impl Setup {
    /// Answers the reading of rows by `statement`.
    async fn rows(&mut self, statement: &str, answer: &Response) {
        let (stream, request) = self.node.request().await;
        let Request::Query {
            statement: read, ..
        } = request
        else {
            panic!("{request:?}")
        };
        assert_eq!(read, statement);
        let context = ResponseContext::new(stream);
        self.node.answer(answer, &context).await;
    }
}

#[tokio::test]
async fn rows_that_match_come_in_pages() {
    const SELECT: &str = "SELECT id FROM films WHERE BM25(name, bm25_words('sea')) > 0";
    const READ: &str = "SELECT id \n, \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    let columns = ["id", "name"];
    let mut setup = setup_for_words().await;
    setup.client.ask(&asked(SELECT, Some(2), None), 3).await;
    let page = r#"{"primary_keys":{"id":["a","b"]},"next":"0102"}"#;
    let search = setup.store.answer("200 OK", page).await;
    assert_eq!(
        (&search["query"], &search["limit"]),
        (&"sea".into(), &2.into())
    );
    let rows = text_rows(&columns, &[&["a", "The sea"], &["b", "A lake"]]);
    setup.rows(READ, &rows).await;
    // The text of one of them has changed since the index took it in.
    let scores = setup
        .store
        .answer("200 OK", r#"{"scores":[1.5,null]}"#)
        .await;
    assert_eq!(scores["texts"], serde_json::json!(["The sea", "A lake"]));
    let page = r#"{"primary_keys":{"id":["c"]},"next":"0304"}"#;
    let search = setup.store.answer("200 OK", page).await;
    assert_eq!(
        (&search["after"], &search["limit"]),
        (&"0102".into(), &1.into())
    );
    setup
        .rows(READ, &text_rows(&columns, &[&["c", "Sea"]]))
        .await;
    setup.store.answer("200 OK", r#"{"scores":[1.5]}"#).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["a", "c"]);
    let Response::Rows(told) = told else {
        panic!("{told:?}")
    };
    let state = told.decode().unwrap().paging_state;
    assert!(state.is_some());

    setup.client.ask(&asked(SELECT, Some(2), state), 4).await;
    let last = r#"{"primary_keys":{"id":[]}}"#;
    let search = setup.store.answer("200 OK", last).await;
    assert_eq!(search["after"], "0304");
    let (stream, request) = setup.node.request().await;
    assert!(matches!(request, Request::Prepare { .. }), "{request:?}");
    let read = PreparedResponse {
        id: Bytes::from_static(b"id"),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: Some(ColumnsMetadata {
            columns: vec![column("id"), column("name")],
        }),
    };
    let context = ResponseContext::new(stream);
    setup.node.answer(&Response::Prepared(read), &context).await;
    let (_, Response::Rows(told)) = setup.client.response().await else {
        panic!("no rows")
    };
    let told = told.decode().unwrap();
    assert_eq!((told.rows.len(), told.paging_state), (0, None));
}

#[tokio::test]
async fn scores_and_excerpts_have_their_places() {
    let mut setup = setup_for_words().await;
    let text = "SELECT BM25(name, 'sea'), id, BM25_HIGHLIGHT(name, 'sea') AS mark FROM films \
                ORDER BY BM25(name, 'sea') LIMIT 2";
    setup.client.ask(&query(text), 3).await;
    let found = r#"{"primary_keys":{"id":["a","b"]},"scores":[2.0,1.0]}"#;
    let search = setup.store.answer("200 OK", found).await;
    assert_eq!(search["query"], "sea");
    let read = "SELECT id\n, \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    let rows = text_rows(&["id", "name"], &[&["b", "By the sea"], &["a", "Sea"]]);
    setup.rows(read, &rows).await;
    let marks = r#"{"highlights":["<b>Sea</b>",null]}"#;
    let highlight = setup.store.answer("200 OK", marks).await;
    assert_eq!(
        highlight["documents"],
        serde_json::json!(["Sea", "By the sea"])
    );
    let (_, Response::Rows(told)) = setup.client.response().await else {
        panic!("no rows")
    };
    let told = told.decode().unwrap();
    let columns = told.metadata.unwrap().columns;
    let names: Vec<&str> = columns.iter().map(|spec| &*spec.name).collect();
    assert_eq!(names, ["system.bm25(name, 'sea')", "id", "mark"]);
    assert_eq!(columns[0].cql_type.to_string(), "frozen<tuple<float, int>>");
    let hit = |score: f32, rank: u8| {
        let score = score.to_be_bytes();
        Bytes::from([&[0, 0, 0, 4][..], &score, &[0, 0, 0, 4, 0, 0, 0, rank]].concat())
    };
    let cell = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    assert_eq!(
        told.rows,
        [
            vec![Some(hit(2.0, 1)), cell("a"), cell("<b>Sea</b>")],
            vec![Some(hit(1.0, 2)), cell("b"), None],
        ]
    );
}

#[tokio::test]
async fn words_are_a_filter_of_a_search_for_vectors() {
    let mut setup = setup_for_words().await;
    let text =
        "SELECT id FROM films WHERE BM25(name, 'sea') > 0 ORDER BY v ANN OF [1, 2, 3] LIMIT 1";
    setup.client.ask(&query(text), 3).await;
    let found = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    let search = setup.store.neighbours(found).await;
    let filter = search["filter"].to_string();
    assert!(filter.contains("sea"), "{filter}");
    let read = "SELECT id \n, \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    let rows = text_rows(&["id", "name"], &[&["a", "Sea"]]);
    setup.rows(read, &rows).await;
    setup.store.answer("200 OK", r#"{"scores":[0.5]}"#).await;
    let (_, told) = setup.client.response().await;
    assert_eq!(names(&told), ["a"]);
}

#[tokio::test]
async fn rows_that_match_are_counted() {
    let mut setup = setup_for_words().await;
    let text = "SELECT count(*) FROM films WHERE BM25(name, 'sea') > 0";
    setup.client.ask(&asked(text, Some(1), None), 3).await;
    let read = "SELECT \n\"id\", \"name\" FROM \"shop\".\"films\" WHERE \"id\" IN ?";
    for (page, row) in [
        (r#"{"primary_keys":{"id":["a"]},"next":"01"}"#, ["a", "Sea"]),
        (r#"{"primary_keys":{"id":["b"]}}"#, ["b", "A sea"]),
    ] {
        setup.store.answer("200 OK", page).await;
        setup.rows(read, &text_rows(&["id", "name"], &[&row])).await;
        setup.store.answer("200 OK", r#"{"scores":[0.5]}"#).await;
    }
    let (_, Response::Rows(told)) = setup.client.response().await else {
        panic!("no rows")
    };
    let told = told.decode().unwrap();
    assert_eq!(&*told.metadata.unwrap().columns[0].name, "count");
    let two = Bytes::copy_from_slice(&2i64.to_be_bytes());
    assert_eq!(told.rows, [vec![Some(two)]]);
}
