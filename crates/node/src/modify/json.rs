//! `INSERT JSON`: an INSERT whose columns and values come as one JSON object.
//!
//! The object is read when the statement is executed. It becomes an INSERT that names all columns
//! of the table and has a bind marker for each, which is planned and carried out like any other.
//! So the plan of an INSERT JSON is small, however many columns its table has.

use std::collections::HashMap;

use bytes::Bytes;
use cql::ast::{BindMarker, Insert, InsertValues, TableName, Term, UsingClause};
use cql::error::CqlError;
use cql::wire::BoundValue;
use query::bind::{PrepareContext, PreparedTerm, StatementClock, TermValue, prepare_term};
use schema::Table;
use value::{CqlType, ValueError, from_json, json_column, json_fields};

/// The object of an INSERT JSON.
#[derive(Debug)]
pub(super) struct JsonInsert {
    /// The text of the object.
    text: PreparedTerm,
    /// Whether columns that the object does not name keep what they have.
    default_unset: bool,
}

impl JsonInsert {
    /// Resolves the object. One that is written in the statement is read at once, so that its
    /// faults are reported early.
    ///
    /// # Errors
    /// A term that is no text, and an object that can't be read.
    pub fn prepare(
        table: &Table,
        json: &Term,
        default_unset: bool,
        ctx: &mut PrepareContext,
    ) -> Result<JsonInsert, CqlError> {
        let text = prepare_term(json, &CqlType::Text, "[json]", ctx)?;
        let insert = JsonInsert {
            text,
            default_unset,
        };
        if let Some(object) = insert.text.constant() {
            insert.read(table, object.clone())?;
        }
        Ok(insert)
    }

    /// The INSERT of the object's values, and these values in the order of its bind markers.
    ///
    /// # Errors
    /// An object that can't be read, names unknown columns, or has values of other types.
    pub fn expanded(
        &self,
        table: &Table,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<(Insert, Vec<BoundValue>), CqlError> {
        let values = self.read(table, self.text.evaluate(values, clock)?)?;
        let columns = table.columns_in_select_order();
        let names = columns.iter().map(|column| column.name.clone());
        let markers = (0..columns.len()).map(|index| {
            Term::Marker(BindMarker {
                index: u16::try_from(index).expect("a table has few columns"),
                name: None,
            })
        });
        let statement = Insert {
            table: TableName {
                keyspace: Some(table.keyspace.clone()),
                name: table.name.clone(),
            },
            values: InsertValues::Columns {
                columns: names.collect(),
                terms: markers.collect(),
            },
            condition: None,
            using: UsingClause::default(),
        };
        Ok((statement, values))
    }

    /// The values of the table's columns, in their order in a SELECT.
    fn read(&self, table: &Table, object: TermValue) -> Result<Vec<BoundValue>, CqlError> {
        let text = match object {
            TermValue::Value(bytes) => bytes,
            TermValue::Null => return Err(CqlError::invalid("Got null for INSERT JSON values")),
            TermValue::Unset => return Err(CqlError::invalid("Got unset for INSERT JSON values")),
        };
        let text = String::from_utf8_lossy(&text);
        let mut given: HashMap<String, Option<Bytes>> = HashMap::new();
        // An unknown column is refused as soon as it is read, before more of the object is stored.
        let read = json_fields(&text, |name, json| {
            let name = json_column(&name);
            let Some(column) = table.column(&name) else {
                return Err(ValueError(format!(
                    "JSON values map contains unrecognized column: {name}"
                )));
            };
            let value = from_json(&column.cql_type, json).map_err(|error| {
                ValueError(format!("Error decoding JSON value for {name}: {}", error.0))
            })?;
            given.insert(name, value);
            Ok(())
        });
        read.map_err(|error| CqlError::invalid(error.0))?;
        let columns = table.columns_in_select_order();
        let values = columns
            .iter()
            .map(|column| match given.remove(&column.name) {
                Some(Some(value)) => BoundValue::Value(value),
                None if self.default_unset => BoundValue::Unset,
                Some(None) | None => BoundValue::Null,
            });
        Ok(values.collect())
    }
}
