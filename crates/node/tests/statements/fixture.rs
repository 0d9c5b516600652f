//! A database in a temporary directory. CQL text drives it, and its rows are printed as text.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use cql::error::CqlError;
use node::database::CqlDatabase;
use node::planner::{self, StatementPlan};
use node::statement::{
    BoundValue, ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows,
};
use node::system::SystemTables;
use storage::clock::{Clock, SystemClock};
use storage::{Durability, Storage, StorageOptions};
use store_api::StoreClient;
use value::Value;

/// A database with the keyspace `ks` in use.
pub struct Fixture {
    pub database: CqlDatabase,
    runtime: tokio::runtime::Runtime,
    _directory: tempfile::TempDir,
}

/// A page of rows as text.
pub struct TextPage {
    /// The rows, each as its literals joined by ` | `.
    pub rows: Vec<String>,
    pub paging_state: Option<Bytes>,
    pub warnings: Vec<String>,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with_stores(StoreClient::disabled())
    }

    /// A database that takes the present from this clock.
    pub fn at(clock: Arc<dyn Clock>) -> Fixture {
        Fixture::open(StoreClient::disabled(), clock)
    }

    pub fn with_stores(stores: StoreClient) -> Fixture {
        Fixture::open(stores, Arc::new(SystemClock))
    }

    fn open(stores: StoreClient, clock: Arc<dyn Clock>) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            durability: Durability::Buffered {
                sync_interval: std::time::Duration::from_secs(3600),
            },
            ..StorageOptions::default()
        };
        let data = directory.path().join("data");
        let storage = Storage::open_with_clock(&data, options, clock).unwrap();
        let system = SystemTables::new();
        let fixture = Fixture {
            database: CqlDatabase {
                storage,
                system,
                stores: stores.into(),
                access: Default::default(),
                timeouts: Default::default(),
            },
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            _directory: directory,
        };
        fixture.run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        fixture
    }

    /// Runs statements that succeed.
    pub fn with(self, statements: &[&str]) -> Fixture {
        for statement in statements {
            self.run(statement);
        }
        self
    }

    pub fn plan(&self, cql: &str) -> Result<StatementPlan, CqlError> {
        let parsed = cql::parser::parse_statement(cql)?;
        planner::prepare(&self.database, Some("ks"), &parsed)
    }

    pub fn execute(
        &self,
        cql: &str,
        parameters: ExecutionParameters,
    ) -> Result<ExecutionResult, CqlError> {
        let plan = self.plan(cql)?;
        self.runtime
            .block_on(plan.execute(&self.database, parameters))
    }

    /// Runs a statement that succeeds.
    pub fn run(&self, cql: &str) {
        if let Err(error) = self.execute(cql, ExecutionParameters::default()) {
            panic!("{cql}: {error}");
        }
    }

    /// The rows of a query without values.
    pub fn rows(&self, cql: &str) -> Vec<String> {
        self.bound(cql, &[])
    }

    /// The rows of a query with values.
    pub fn bound(&self, cql: &str, values: &[BoundValue]) -> Vec<String> {
        let parameters = ExecutionParameters {
            values: values.to_vec(),
            ..ExecutionParameters::default()
        };
        match self.page(cql, parameters) {
            Ok(page) => page.rows,
            Err(error) => panic!("{cql}: {error}"),
        }
    }

    /// One page of a query.
    pub fn page(&self, cql: &str, parameters: ExecutionParameters) -> Result<TextPage, CqlError> {
        let answer = self.execute(cql, parameters)?;
        let ExecutionOutcome::Rows(rows) = answer.outcome else {
            panic!("{cql}: no rows but {:?}", answer.outcome);
        };
        Ok(TextPage {
            rows: to_text(&rows),
            paging_state: rows.paging_state,
            warnings: answer.warnings,
        })
    }

    /// All rows of a query, read in pages of this size.
    pub fn paged(&self, cql: &str, values: &[BoundValue], page_size: usize) -> Vec<String> {
        let mut rows = Vec::new();
        let mut paging_state = None;
        loop {
            let parameters = ExecutionParameters {
                values: values.to_vec(),
                page_size: Some(page_size),
                paging_state,
                ..ExecutionParameters::default()
            };
            let page = match self.page(cql, parameters) {
                Ok(page) => page,
                Err(error) => panic!("{cql}: {error}"),
            };
            assert!(page.rows.len() <= page_size, "{cql}: page too large");
            rows.extend(page.rows);
            match page.paging_state {
                Some(state) => paging_state = Some(state),
                None => return rows,
            }
        }
    }

    /// The error message of a statement that is refused.
    pub fn refused(&self, cql: &str, values: &[BoundValue]) -> String {
        let parameters = ExecutionParameters {
            values: values.to_vec(),
            ..ExecutionParameters::default()
        };
        match self.execute(cql, parameters) {
            Ok(_) => panic!("{cql}: not refused"),
            Err(error) => error.message,
        }
    }

    /// The names and types of a query's columns.
    pub fn columns(&self, cql: &str) -> Vec<String> {
        let plan = self.plan(cql).unwrap_or_else(|e| panic!("{cql}: {e}"));
        plan.result_columns()
            .unwrap()
            .iter()
            .map(|column| format!("{} {}", column.name, column.cql_type))
            .collect()
    }

    /// The names and types of a statement's bind markers.
    pub fn variables(&self, cql: &str) -> Vec<String> {
        let plan = self.plan(cql).unwrap_or_else(|e| panic!("{cql}: {e}"));
        plan.variables()
            .iter()
            .map(|column| format!("{} {}", column.name, column.cql_type))
            .collect()
    }

    /// The plan of a query as text.
    pub fn explain(&self, cql: &str) -> String {
        match self.plan(cql).unwrap_or_else(|e| panic!("{cql}: {e}")) {
            StatementPlan::Select(plan) => plan.to_string(),
            other => panic!("{cql}: no SELECT but {other:?}"),
        }
    }
}

fn to_text(rows: &ResultRows) -> Vec<String> {
    let mut body = Bytes::copy_from_slice(&rows.body);
    let columns = Arc::clone(&rows.columns);
    let texts = (0..rows.count)
        .map(|_| {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| {
                    let Ok(length) = usize::try_from(body.get_i32()) else {
                        return "null".to_owned();
                    };
                    let bytes = body.split_to(length);
                    Value::deserialize(&column.cql_type, &bytes)
                        .unwrap_or_else(|error| panic!("{}: {error}", column.name))
                        .to_literal()
                })
                .collect();
            cells.join(" | ")
        })
        .collect();
    assert!(body.is_empty(), "bytes are left over behind the rows");
    texts
}

/// A bound int.
pub fn int(value: i32) -> BoundValue {
    BoundValue::Value(Value::Int(value).serialize())
}

/// A bound text.
pub fn text(value: &str) -> BoundValue {
    BoundValue::Value(Bytes::copy_from_slice(value.as_bytes()))
}

/// A bound list of ints.
pub fn ints(values: &[i32]) -> BoundValue {
    let values = values.iter().map(|value| Value::Int(*value)).collect();
    BoundValue::Value(Value::List(values).serialize())
}

/// A bound float vector.
pub fn vector(elements: &[f32]) -> BoundValue {
    BoundValue::Value(Value::FloatVector(elements.to_vec()).serialize())
}
