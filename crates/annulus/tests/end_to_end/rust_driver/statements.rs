//! Statements in the forms in which they are sent: as text, prepared, in batches, in pages, with a
//! condition.

use std::ops::ControlFlow;

use futures::TryStreamExt;
use scylla::SerializeRow;
use scylla::client::session::Session;
use scylla::errors::DbError;
use scylla::response::PagingState;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::{SerialConsistency, Statement};
use scylla::value::{CqlValue, MaybeUnset, Row};

use super::target::{Target, execute, refusal, rows, select};

/// The rows are no whole number of pages.
const ROWS: i32 = 57;
const PAGE_ROWS: i32 = 10;

const CREATE: &str =
    "CREATE TABLE films (part int, number int, name text, year int, PRIMARY KEY (part, number))";

type Film = (i32, i32, Option<String>, Option<i32>);

async fn films(session: &Session) -> Vec<Film> {
    select(session, "SELECT part, number, name, year FROM films").await
}

fn film(part: i32, number: i32, name: &str, year: i32) -> Film {
    (part, number, Some(name.to_owned()), Some(year))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_as_text() {
    let keyspace = "rust_texts";
    let scenario = async |session: Session| {
        execute(&session, CREATE).await;
        let literal = "INSERT INTO films (part, number, name, year) VALUES (1, 1, 'one', 1927)";
        execute(&session, literal).await;
        // The driver prepares a statement that has values.
        let bound = "INSERT INTO films (part, number, name, year) VALUES (?, ?, ?, ?)";
        let written = session.query_unpaged(bound, (1, 2, "two", 1931)).await;
        written.expect("it is written");
        assert_eq!(
            films(&session).await,
            [film(1, 1, "one", 1927), film(1, 2, "two", 1931)]
        );

        let (error, _) = refusal(&session, "SELEC").await;
        assert_eq!(error, DbError::SyntaxError);
        let (error, text) = refusal(&session, "SELECT nothing FROM films").await;
        assert_eq!(error, DbError::Invalid);
        assert!(text.contains("nothing"), "{text}");
        let (error, _) = refusal(&session, CREATE).await;
        let expected = DbError::AlreadyExists {
            keyspace: keyspace.to_owned(),
            table: "films".to_owned(),
        };
        assert_eq!(error, expected);
    };
    Target::start().in_keyspace(keyspace, scenario).await;
}

/// Values by name, in another order than in the statement.
#[derive(SerializeRow)]
struct Named<'a> {
    year: MaybeUnset<Option<i32>>,
    name: &'a str,
    number: i32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements() {
    let scenario = async |session: Session| {
        execute(&session, CREATE).await;
        let insert =
            "INSERT INTO films (part, number, name, year) VALUES (1, :number, :name, :year)";
        let mut insert = session.prepare(insert).await.expect("it is prepared");
        let specs = insert.get_variable_col_specs();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name()).collect();
        assert_eq!(names, ["number", "name", "year"]);
        let put = async |year, name, number| {
            let values = Named { year, name, number };
            let written = session.execute_unpaged(&insert, values).await;
            written.expect("it is written");
        };
        put(MaybeUnset::Set(Some(1931)), "one", 1).await;
        put(MaybeUnset::Set(Some(1931)), "two", 2).await;
        // An unset value leaves the old value, and a null removes it.
        put(MaybeUnset::Unset, "one again", 1).await;
        put(MaybeUnset::Set(None), "two again", 2).await;
        let expected = [
            film(1, 1, "one again", 1931),
            (1, 2, Some("two again".to_owned()), None),
        ];
        assert_eq!(films(&session).await, expected);

        insert.set_timestamp(Some(1_000));
        let values = Named {
            year: MaybeUnset::Unset,
            name: "three",
            number: 3,
        };
        let written = session.execute_unpaged(&insert, values).await;
        written.expect("it is written");
        let times = "SELECT writetime(name) FROM films WHERE part = 1 AND number = 3";
        assert_eq!(select::<(i64,)>(&session, times).await, [(1_000,)]);
    };
    Target::start().in_keyspace("rust_prepared", scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_prepared_again_when_its_table_has_changed() {
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (id int PRIMARY KEY, name text)";
        execute(&session, create).await;
        let insert = "INSERT INTO films (id, name) VALUES (?, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        let all = "SELECT * FROM films";
        let all = session.prepare(all).await.expect("it is prepared");
        let put = async |id: i32| {
            let written = session.execute_unpaged(&insert, (id, "name")).await;
            written.expect("it is written");
        };
        let read = async || {
            let read = session.execute_unpaged(&all, ()).await.expect("it is read");
            let rows: Vec<Row> = rows(read);
            rows.iter().map(|row| row.columns.len()).collect::<Vec<_>>()
        };
        put(1).await;
        assert_eq!(read().await, [2]);
        execute(&session, "ALTER TABLE films ADD year int").await;
        assert_eq!(read().await, [3]);
        // Statements that were prepared for a table are not known for another table of its name.
        execute(&session, "DROP TABLE films").await;
        execute(&session, create).await;
        assert_eq!(read().await, [0; 0]);
        put(2).await;
        assert_eq!(read().await, [2]);
    };
    Target::start()
        .in_keyspace("rust_prepared_again", scenario)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches() {
    let scenario = async |session: Session| {
        execute(&session, CREATE).await;
        let insert = "INSERT INTO films (part, number, name, year) VALUES (?, ?, ?, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        for (part, kind) in [(1, BatchType::Logged), (2, BatchType::Unlogged)] {
            let mut batch = Batch::new(kind);
            batch.set_timestamp(Some(5_000));
            batch.append_statement(insert.clone());
            let literal = format!(
                "INSERT INTO films (part, number, name, year) VALUES ({part}, 2, 'two', 2)"
            );
            batch.append_statement(literal.as_str());
            batch.append_statement("UPDATE films SET name = ? WHERE part = ? AND number = 3");
            let values = ((part, 1, "one", 1), (), ("three", part));
            let written = session.batch(&batch, values).await;
            written.expect("the batch is written");
            let three = (part, 3, Some("three".to_owned()), None);
            let expected = [film(part, 1, "one", 1), film(part, 2, "two", 2), three];
            let found: Vec<Film> = films(&session).await;
            let found: Vec<Film> = found.into_iter().filter(|film| film.0 == part).collect();
            assert_eq!(found, expected);
        }
        let times = select::<(i64,)>(&session, "SELECT writetime(name) FROM films").await;
        assert_eq!(times, [(5_000,); 6]);
    };
    Target::start().in_keyspace("rust_batches", scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages() {
    let scenario = async |session: Session| {
        execute(&session, CREATE).await;
        let insert = "INSERT INTO films (part, number) VALUES (1, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        for number in 0..ROWS {
            let written = session.execute_unpaged(&insert, (number,)).await;
            written.expect("it is written");
        }
        let expected: Vec<(i32,)> = (0..ROWS).map(|number| (number,)).collect();
        let text = "SELECT number FROM films WHERE part = ?";
        let in_pages = Statement::new(text).with_page_size(PAGE_ROWS);
        let prepared = session.prepare(in_pages.clone()).await;
        let prepared = prepared.expect("it is prepared");

        let pager = session.query_iter(in_pages, (1,)).await;
        let stream = pager.expect("the first page").rows_stream::<(i32,)>();
        let found: Vec<(i32,)> = stream
            .expect("a column of ints")
            .try_collect()
            .await
            .expect("every page");
        assert_eq!(found, expected);

        let mut pages: Vec<Vec<(i32,)>> = Vec::new();
        let mut state = PagingState::start();
        loop {
            let page = session.execute_single_page(&prepared, (1,), state).await;
            let (page, next) = page.expect("a page");
            pages.push(rows(page));
            match next.into_paging_control_flow() {
                ControlFlow::Continue(next) => state = next,
                ControlFlow::Break(()) => break,
            }
            assert!(pages.len() < ROWS as usize, "the pages have no end");
        }
        let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 10, 10, 10, 7]);
        assert_eq!(pages.concat(), expected);
    };
    Target::start().in_keyspace("rust_pages", scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_with_a_condition_says_what_stood_in_its_way() {
    let scenario = async |session: Session| {
        execute(&session, CREATE).await;
        let insert =
            "INSERT INTO films (part, number, name, year) VALUES (?, ?, ?, ?) IF NOT EXISTS";
        let mut insert = session.prepare(insert).await.expect("it is prepared");
        insert.set_serial_consistency(Some(SerialConsistency::LocalSerial));
        let put = async |name: &str| -> Row {
            let answer = session.execute_unpaged(&insert, (1, 1, name, 7)).await;
            let mut rows: Vec<Row> = rows(answer.expect("an answer"));
            rows.remove(0)
        };
        let applied = put("first").await.columns;
        assert_eq!(applied[0], Some(CqlValue::Boolean(true)));
        let refused = put("second").await.columns;
        let expected = [
            CqlValue::Boolean(false),
            CqlValue::Int(1),
            CqlValue::Int(1),
            CqlValue::Text("first".to_owned()),
            CqlValue::Int(7),
        ];
        assert_eq!(refused, expected.map(Some));
        assert_eq!(films(&session).await, [film(1, 1, "first", 7)]);
    };
    Target::start()
        .in_keyspace("rust_conditions", scenario)
        .await;
}
