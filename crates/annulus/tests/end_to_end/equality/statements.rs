//! The statements of the writers, for tables of both shapes.

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use super::scenario::Scenario;

/// The TTL in seconds of values that have to expire.
pub const TTL_S: i32 = 1;

/// The prepared statements of a scenario.
pub struct Statements {
    pub insert: PreparedStatement,
    pub insert_ttl: PreparedStatement,
    pub update: PreparedStatement,
    pub set_null: PreparedStatement,
    pub delete_column: PreparedStatement,
    pub delete_row: PreparedStatement,
    pub delete_range: Option<PreparedStatement>,
    pub delete_partition: Option<PreparedStatement>,
}

impl Statements {
    /// Prepares the statements.
    pub async fn prepare(session: &Session, scenario: &Scenario) -> Statements {
        let table = format!("{}.t", scenario.keyspace);
        let (columns, marks, key) = if scenario.clustering {
            ("p, c", "?, ?", "p = ? AND c = ?")
        } else {
            ("p", "?", "p = ?")
        };
        let prepare = async |text: String| session.prepare(text.as_str()).await.expect(&text);
        let by_range = [
            format!("DELETE FROM {table} USING TIMESTAMP ? WHERE p = ? AND c >= ? AND c <= ?"),
            format!("DELETE FROM {table} USING TIMESTAMP ? WHERE p = ?"),
        ];
        let [delete_range, delete_partition] = if scenario.clustering {
            let [range, partition] = by_range;
            [Some(prepare(range).await), Some(prepare(partition).await)]
        } else {
            [None, None]
        };
        Statements {
            insert: prepare(format!(
                "INSERT INTO {table} (n, v, {columns}) VALUES (1, ?, {marks}) USING TIMESTAMP ?"
            ))
            .await,
            insert_ttl: prepare(format!(
                "INSERT INTO {table} (v, {columns}) VALUES (?, {marks}) USING TIMESTAMP ? AND TTL {TTL_S}"
            ))
            .await,
            update: prepare(format!("UPDATE {table} USING TIMESTAMP ? SET v = ? WHERE {key}")).await,
            set_null: prepare(format!("UPDATE {table} USING TIMESTAMP ? SET v = null, n = 2 WHERE {key}")).await,
            delete_column: prepare(format!("DELETE v FROM {table} USING TIMESTAMP ? WHERE {key}")).await,
            delete_row: prepare(format!("DELETE FROM {table} USING TIMESTAMP ? WHERE {key}")).await,
            delete_range,
            delete_partition,
        }
    }
}

/// The values of a statement, by its kind.
pub enum Values {
    Insert(Vec<f32>, Vec<i32>, i64),
    Update(i64, Vec<f32>, Vec<i32>),
    Range(i64, Vec<i32>),
}

impl Values {
    /// Executes a statement with these values.
    pub async fn execute(&self, session: &Session, statement: &PreparedStatement) {
        let result = match self {
            Values::Insert(vector, key, timestamp) => match key[..] {
                [p, c] => {
                    session
                        .execute_unpaged(statement, (vector, p, c, timestamp))
                        .await
                }
                _ => {
                    session
                        .execute_unpaged(statement, (vector, key[0], timestamp))
                        .await
                }
            },
            Values::Update(timestamp, vector, key) => match key[..] {
                [p, c] => {
                    session
                        .execute_unpaged(statement, (timestamp, vector, p, c))
                        .await
                }
                _ => {
                    session
                        .execute_unpaged(statement, (timestamp, vector, key[0]))
                        .await
                }
            },
            Values::Range(timestamp, key) => match key[..] {
                [p, c, last] => {
                    session
                        .execute_unpaged(statement, (timestamp, p, c, last))
                        .await
                }
                [p, c] => session.execute_unpaged(statement, (timestamp, p, c)).await,
                _ => {
                    session
                        .execute_unpaged(statement, (timestamp, key[0]))
                        .await
                }
            },
        };
        result.expect("a write");
    }
}
