//! A vector index from CREATE CUSTOM INDEX through ANN OF to DROP INDEX.

use std::collections::HashMap;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use test_support::{eventually, until_ok};

use super::target::{Target, execute, refusal, rows, select};

const ROWS: i32 = 60;

const NO_INDEX: &str = "requires the column to be indexed";

/// The name and the options of an index.
type Listed = (String, HashMap<String, String>);

/// A vector on a line. The neighbours of a number are the nearest numbers.
fn vector(number: f32) -> Vec<f32> {
    vec![number, 1.0, 0.0]
}

async fn nearest(
    session: &Session,
    statement: &PreparedStatement,
    to: f32,
    limit: i32,
) -> Result<Vec<i32>, String> {
    let found = session
        .execute_unpaged(statement, (vector(to), limit))
        .await;
    let found: Vec<(i32,)> = rows(found.map_err(|error| error.to_string())?);
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// Waits until the index finds this number of rows.
async fn wait_for_rows(session: &Session, statement: &PreparedStatement, count: usize) {
    until_ok(&format!("{count} rows are found"), async || {
        // An index that is being built refuses to answer.
        let found = nearest(session, statement, 0.0, 1_000).await;
        match found.as_ref().is_ok_and(|found| found.len() == count) {
            true => Ok(()),
            false => Err(found),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_made_and_asked_and_dropped() {
    let keyspace = "rust_vectors";
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (id int PRIMARY KEY, name text, v vector<float, 3>)";
        execute(&session, create).await;
        let insert = "INSERT INTO films (id, name, v) VALUES (?, ?, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        let put = async |id: i32| {
            let values = (id, format!("film {id}"), vector(id as f32));
            let written = session.execute_unpaged(&insert, values).await;
            written.expect("it is written");
        };
        // Some rows are there before the index, and others come after it.
        for id in 0..ROWS / 2 {
            put(id).await;
        }
        let unindexed = "SELECT id FROM films ORDER BY v ANN OF [1, 1, 0] LIMIT 3";
        let (_, text) = refusal(&session, unindexed).await;
        assert!(text.contains(NO_INDEX), "{text}");
        let create = "CREATE CUSTOM INDEX films_v ON films (v) USING 'vector_index' \
             WITH OPTIONS = {'similarity_function': 'euclidean'}";
        execute(&session, create).await;
        for id in ROWS / 2..ROWS {
            put(id).await;
        }
        let listing = format!(
            "SELECT index_name, options FROM system_schema.indexes WHERE keyspace_name = '{keyspace}'"
        );
        let listed: Vec<Listed> = select(&session, &listing).await;
        let [(name, options)] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(
            (name.as_str(), options["target"].as_str()),
            ("films_v", "v")
        );

        let ann = "SELECT id FROM films ORDER BY v ANN OF ? LIMIT ?";
        let ann = session.prepare(ann).await.expect("it is prepared");
        wait_for_rows(&session, &ann, ROWS as usize).await;
        let found = nearest(&session, &ann, 7.2, 5).await;
        assert_eq!(found.expect("neighbours"), [7, 8, 6, 9, 5]);
        let text = "SELECT name, v, similarity_euclidean(v, [40, 1, 0]) FROM films \
             ORDER BY v ANN OF [40, 1, 0] LIMIT 1";
        let found: Vec<(String, Vec<f32>, f32)> = select(&session, text).await;
        assert_eq!(found, [("film 40".to_owned(), vector(40.0), 1.0)]);

        execute(&session, "DELETE FROM films WHERE id = 7").await;
        execute(&session, "UPDATE films SET v = [7.25, 1, 0] WHERE id = 50").await;
        eventually("the index follows the changes", async || {
            let found = nearest(&session, &ann, 7.2, 3).await;
            found.expect("neighbours") == [50, 8, 6]
        })
        .await;

        execute(&session, "DROP INDEX films_v").await;
        let (_, text) = refusal(&session, unindexed).await;
        assert!(text.contains(NO_INDEX), "{text}");
        // The prepared statement is prepared again, in vain.
        let refused = nearest(&session, &ann, 1.0, 1).await;
        let text = refused.expect_err("there is no index");
        assert!(text.contains(NO_INDEX), "{text}");
        assert!(select::<Listed>(&session, &listing).await.is_empty());
    };
    Target::start().in_keyspace(keyspace, scenario).await;
}
