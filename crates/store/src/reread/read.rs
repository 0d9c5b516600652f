//! The statements that read rows by key.

use std::collections::HashSet;

use futures::future::join_all;

use crate::db::{DbHandle, Pages, Statement};
use crate::keys::{PartitionKey, PrimaryKey};
use crate::rows::{ReadRow, RowReader, Serialised, SerialisedList, absent};

/// What ScyllaDB allows in an IN by default (`max_partition_key_restrictions_per_query`).
const KEYS_IN_A_LIST_MAX: usize = 100;

/// Rows read beside each other where each needs a statement of its own.
const ROWS_AT_A_TIME: usize = 32;

/// About how much a page of a partition should hold.
const PAGE_BYTES: usize = 1 << 20;

/// Reads rows of a table by key.
pub struct Reads {
    reader: RowReader,
    by_key: ByKey,
    by_partition: Statement,
}

/// How rows are read by primary key.
enum ByKey {
    /// The partition key is one column and the whole key: many rows in one statement.
    List(Statement),
    /// One row in a statement.
    One(Statement),
}

impl Reads {
    /// Statements for these columns.
    pub fn new(reader: RowReader) -> Reads {
        let names = |columns: &'_ [crate::keys::KeyColumn]| -> Vec<String> {
            columns.iter().map(|column| column.name.clone()).collect()
        };
        let partition = names(&reader.keys.partition);
        let all = [partition.clone(), names(&reader.keys.clustering)].concat();
        let equals =
            |names: &[String]| reader.select(&RowReader::equals(names.iter().map(String::as_str)));
        let by_key = match all.as_slice() {
            [column] => {
                let condition = format!("{} IN ?", crate::rows::quoted(column));
                ByKey::List(Statement::new(reader.select(&condition)))
            }
            _ => ByKey::One(Statement::new(equals(&all))),
        };
        Reads {
            by_partition: Statement::new(equals(&partition))
                .with_page_rows(reader.page_rows(PAGE_BYTES)),
            by_key,
            reader,
        }
    }

    /// What is read.
    pub fn reader(&self) -> &RowReader {
        &self.reader
    }

    /// How many keys [`Reads::rows`] is to be given at most.
    pub fn keys_at_a_time(&self) -> usize {
        match self.by_key {
            ByKey::List(_) => KEYS_IN_A_LIST_MAX,
            ByKey::One(_) => ROWS_AT_A_TIME,
        }
    }

    /// The rows of these keys; a row that isn't there is told as one without vectors.
    pub async fn rows(&self, db: &DbHandle, keys: &[PrimaryKey]) -> Vec<ReadRow> {
        let mut found = match &self.by_key {
            ByKey::List(statement) => {
                let list = SerialisedList(keys.iter().flat_map(PrimaryKey::values).collect());
                Pages::new(db, &self.reader, statement, (list,)).all().await
            }
            ByKey::One(statement) => {
                let reads = keys.iter().map(|key| {
                    let values: Vec<Serialised> = key.values().map(Serialised).collect();
                    Pages::new(db, &self.reader, statement, values).all()
                });
                join_all(reads).await.concat()
            }
        };
        let there: HashSet<PrimaryKey> = found.iter().map(|row| row.key.clone()).collect();
        let columns = self.reader.columns.len();
        let gone = keys.iter().filter(|key| !there.contains(key));
        found.extend(gone.map(|key| absent(key.clone(), columns)));
        found
    }

    /// All rows of a partition, page by page.
    pub fn partition<'a>(
        &'a self,
        db: &'a DbHandle,
        partition: &'a PartitionKey,
    ) -> Pages<'a, Vec<Serialised<'a>>> {
        let values: Vec<Serialised> = partition.values().map(Serialised).collect();
        Pages::new(db, &self.reader, &self.by_partition, values)
    }
}
