//! `INSERT JSON`: the values of an INSERT that come as one JSON object.
//!
//! Such an INSERT is prepared as one that names all columns of its table and has a bind marker for
//! each. These markers follow those of the statement. Their values are read from the object when
//! the statement is executed.

use std::borrow::Cow;

use cql::ast::{BindMarker, Term};
use cql::error::CqlError;
use cql::wire::BoundValue;
use query::bind::{Bound, PrepareContext, PreparedTerm, StatementClock, prepare_term};
use schema::Table;
use value::{CqlType, from_json, json_column, json_fields};

use crate::parameters::Parameters;

/// The object of an INSERT JSON, and the markers that take its values.
#[derive(Debug)]
pub(super) struct JsonInsert {
    /// The text of the object.
    text: PreparedTerm,
    /// The name and the type of each column, in the order of the markers.
    columns: Vec<(String, CqlType)>,
    /// The index of the first of the markers.
    first: usize,
    /// Whether columns that the object does not name keep what they have.
    default_unset: bool,
}

impl JsonInsert {
    /// Resolves the object. Returns the names of the columns and their markers, too.
    ///
    /// # Errors
    /// A term that is no text.
    pub fn prepare(
        table: &Table,
        json: &Term,
        default_unset: bool,
        ctx: &mut PrepareContext,
    ) -> Result<(JsonInsert, Vec<String>, Vec<Term>), CqlError> {
        let text = prepare_term(json, &CqlType::Text, "[json]", ctx)?;
        let first = ctx.variables.len();
        let columns: Vec<(String, CqlType)> = table
            .columns_in_select_order()
            .into_iter()
            .map(|column| (column.name.clone(), column.cql_type.clone()))
            .collect();
        let names = columns.iter().map(|(name, _)| name.clone()).collect();
        let markers = (first..first + columns.len()).map(|index| {
            Term::Marker(BindMarker {
                index: index as u16,
                name: None,
            })
        });
        let markers = markers.collect();
        let insert = JsonInsert {
            text,
            columns,
            first,
            default_unset,
        };
        insert.check_constant()?;
        Ok((insert, names, markers))
    }

    /// Reads the object if it stands in the statement, so that its faults come early.
    fn check_constant(&self) -> Result<(), CqlError> {
        match self.text.constant() {
            Some(bound) => self.read(bound.clone()).map(drop),
            None => Ok(()),
        }
    }

    /// The parameters of an execution with the values of the object.
    ///
    /// # Errors
    /// An object that can't be read, names unknown columns, or has values of other types.
    pub fn bind<'a>(
        &self,
        parameters: &'a Parameters,
        clock: &StatementClock,
    ) -> Result<Cow<'a, Parameters>, CqlError> {
        let object = self.text.evaluate(&parameters.values, clock)?;
        let read = self.read(object)?;
        let mut values = parameters.values.clone();
        values.resize(self.first, BoundValue::Unset);
        values.extend(read);
        Ok(Cow::Owned(Parameters {
            values,
            ..parameters.clone()
        }))
    }

    /// The values of the columns.
    fn read(&self, object: Bound) -> Result<Vec<BoundValue>, CqlError> {
        let text = match object {
            Bound::Value(bytes) => bytes,
            Bound::Null => return Err(CqlError::invalid("Got null for INSERT JSON values")),
            Bound::Unset => return Err(CqlError::invalid("Got unset for INSERT JSON values")),
        };
        let text = String::from_utf8_lossy(&text);
        let invalid = |error: value::ValueError| CqlError::invalid(error.0);
        let mut fields = Vec::new();
        for (name, json) in json_fields(&text).map_err(invalid)? {
            fields.push((json_column(&name), json));
        }
        let values = self.columns.iter().map(|(name, cql_type)| {
            let at = fields.iter().position(|(field, _)| field == name);
            let Some(at) = at else {
                return Ok(match self.default_unset {
                    true => BoundValue::Unset,
                    false => BoundValue::Null,
                });
            };
            let (_, json) = fields.swap_remove(at);
            let read = from_json(cql_type, json.get()).map_err(|error| {
                CqlError::invalid(format!("Error decoding JSON value for {name}: {}", error.0))
            })?;
            Ok(read.map_or(BoundValue::Null, BoundValue::Value))
        });
        let values = values.collect::<Result<_, CqlError>>()?;
        match fields.first() {
            Some((name, _)) => Err(CqlError::invalid(format!(
                "JSON values map contains unrecognized column: {name}"
            ))),
            None => Ok(values),
        }
    }
}
