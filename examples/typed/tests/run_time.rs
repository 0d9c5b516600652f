//! Behaviours that only a server shows: `ANNULUS_CQL=host:port cargo test -- --ignored`.

use std::env::var;
use std::sync::Arc;

use futures_util::TryStreamExt;
use scylla::client::caching_session::{CachingSession, CachingSessionBuilder};
use scylla::client::session_builder::SessionBuilder;
use typed_mapping::database::Database;
use typed_mapping::mapping::{Rows, Vector};
use typed_mapping::tables::{Book, Review};

const COLUMNS: &str = "isbn text PRIMARY KEY, title text, genre text, year int, subtitle text, embedding vector<float, 3>";

fn address() -> String {
    var("ANNULUS_CQL").expect("ANNULUS_CQL names the server under test")
}

/// A keyspace without tables.
async fn empty(keyspace: &str) -> Arc<CachingSession> {
    let session = SessionBuilder::new()
        .known_node(address())
        .build()
        .await
        .unwrap();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    for statement in [
        format!("DROP KEYSPACE IF EXISTS {keyspace}"),
        format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}"),
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    session.use_keyspace(keyspace, false).await.unwrap();
    Arc::new(CachingSessionBuilder::new(session).build())
}

/// A keyspace whose table of books has these columns.
async fn with_table(keyspace: &str, columns: &str) -> Arc<CachingSession> {
    let session = empty(keyspace).await;
    let create = format!("CREATE TABLE book ({columns})");
    session
        .get_session()
        .query_unpaged(create, ())
        .await
        .unwrap();
    session
}

fn book(isbn: &str, year: i32) -> Book {
    Book {
        isbn: isbn.to_owned(),
        title: format!("title of {isbn}"),
        genre: "novel".to_owned(),
        year,
        subtitle: None,
        embedding: Vector([1.0, 0.0, year as f32]),
    }
}

fn refusal<T>(answer: typed_mapping::Result<T>) -> String {
    format!("{:?}", answer.err().expect("it is refused"))
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_row_comes_back_as_it_was_written() {
    empty("typed_rows").await;
    let database = Database::open(&address(), "typed_rows").await.unwrap();
    let mut written = book("1", 1813);
    written.subtitle = Some("Volume I".to_owned());
    database.books.insert(&written).await.unwrap();
    assert_eq!(
        database.books.get(Book::key("1")).await.unwrap(),
        Some(written)
    );
    assert_eq!(database.books.get(Book::key("2")).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_stream_fetches_page_after_page() {
    let session = empty("typed_pages").await;
    let reviews = Rows::<Review>::named(Arc::clone(&session), "opinion");
    reviews.create_table().await.unwrap();
    for number in 0..250 {
        let (isbn, words) = ("1".to_owned(), String::new());
        let stars = number % 5;
        reviews
            .insert(&Review {
                isbn,
                number,
                stars,
                words,
            })
            .await
            .unwrap();
    }
    let metrics = session.get_session().get_metrics();
    let before = metrics.get_requests_automatically_paged_num();
    let condition = [Review::isbn().equals("1"), Review::number().at_most(248)];
    let rows: Vec<Review> = reviews
        .select(condition)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert!(rows.iter().map(|review| review.number).eq(0..=248));
    assert_eq!(
        metrics.get_requests_automatically_paged_num() - before,
        3,
        "pages of 100 rows"
    );
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_search_filters_and_finds_more_than_a_page() {
    empty("typed_search").await;
    let database = Database::open(&address(), "typed_search").await.unwrap();
    for number in 0..200 {
        database
            .books
            .insert(&book(&format!("{number}"), number))
            .await
            .unwrap();
    }
    let filter = [Book::genre().equals("novel"), Book::year().at_least(50)];
    let to = Vector([1.0, 0.0, 60.0]);
    let found = database
        .books
        .nearest(Book::embedding(), &to, filter, 150)
        .await
        .unwrap();
    assert_eq!(found.len(), 150);
    assert!(found.iter().all(|book| book.year >= 50));
    assert_eq!(found[0].year, 60);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_filter_by_a_column_without_an_index_is_refused() {
    empty("typed_filters").await;
    let database = Database::open(&address(), "typed_filters").await.unwrap();
    let found = database.books.select([Book::title().equals("Emma")]).await;
    assert!(refusal(found.map(drop)).contains("ALLOW FILTERING"));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_column_of_another_type_is_refused_before_the_first_row() {
    let books = Rows::<Book>::new(
        with_table("typed_types", &COLUMNS.replace("year int", "year text")).await,
    );
    let refused = refusal(books.get(Book::key("1")).await);
    assert!(
        refused.contains("year") && refused.contains("i32"),
        "{refused}"
    );
    let refused = refusal(books.insert(&book("1", 1813)).await);
    assert!(
        refused.contains("year") && refused.contains("i32"),
        "{refused}"
    );
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_column_that_the_table_lacks_is_refused() {
    let books = Rows::<Book>::new(
        with_table("typed_columns", &COLUMNS.replace("subtitle text, ", "")).await,
    );
    let refused = refusal(books.get(Book::key("1")).await);
    assert!(refused.contains("subtitle"), "{refused}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_vector_of_other_dimensions_than_the_table_has_is_refused() {
    let session = with_table("typed_dimensions", &COLUMNS.replace("float, 3", "float, 2")).await;
    let books = Rows::<Book>::new(Arc::clone(&session));
    let refused = refusal(books.insert(&book("1", 1813)).await);
    assert!(refused.contains("dimensions"), "{refused}");

    let insert =
        "INSERT INTO book (isbn, title, genre, year, embedding) VALUES ('2', 't', 'g', 1, [1, 0])";
    session
        .get_session()
        .query_unpaged(insert, ())
        .await
        .unwrap();
    let refused = refusal(books.get(Book::key("2")).await);
    assert!(refused.contains("2 dimensions, not of 3"), "{refused}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_null_for_a_field_that_is_no_option_is_refused() {
    let session = empty("typed_nulls").await;
    let books = Rows::<Book>::new(Arc::clone(&session));
    books.create_table().await.unwrap();
    let insert =
        "INSERT INTO book (isbn, title, genre, embedding) VALUES ('1', 't', 'g', [1, 0, 0])";
    session
        .get_session()
        .query_unpaged(insert, ())
        .await
        .unwrap();
    let refused = refusal(books.get(Book::key("1")).await);
    assert!(refused.contains("year"), "{refused}");
}
