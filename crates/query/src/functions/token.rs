//! `token()`: the position of a partition on the ring.

use bytes::Bytes;
use cql::ast::FunctionCall;
use cql::error::CqlError;
use value::CqlType;
use value::token::{Partitioner, routing_key};

use super::resolve::check;
use super::{CallArgument, FunctionBody, ScalarFunction};
use crate::resolve::TableColumns;

/// The name of the function.
const NAME: &str = "token";

/// The key of a table, as far as `token()` depends on it.
#[derive(Clone, Debug)]
pub struct TokenKey {
    /// The types of the columns of the partition key, in its order.
    types: Vec<CqlType>,
    partitioner: Partitioner,
}

impl TokenKey {
    /// The key of a table with these columns.
    pub fn of(columns: TableColumns<'_>, partitioner: Partitioner) -> TokenKey {
        let key = columns.partition_key().into_iter();
        TokenKey {
            types: key.map(|column| column.cql_type.clone()).collect(),
            partitioner,
        }
    }

    /// The function for a call with these arguments.
    ///
    /// # Errors
    /// If there is not one argument for each column of the key, or one is of another type.
    pub(crate) fn function(
        &self,
        arguments: &[CallArgument<'_>],
    ) -> Result<ScalarFunction, CqlError> {
        check(NAME, &self.types, arguments)?;
        Ok(ScalarFunction {
            name: NAME,
            argument_types: self.types.clone(),
            return_type: CqlType::Bigint,
            is_foldable: true,
            body: FunctionBody::Token(self.partitioner),
        })
    }
}

/// Whether the call is one of `token()`, whose result is a `bigint` for every table.
pub fn is_token<Argument>(call: &FunctionCall<Argument>) -> bool {
    let keyspace = call.keyspace.as_deref();
    call.name == NAME && keyspace.is_none_or(|keyspace| keyspace == "system")
}

/// The token of a key of these values; `None` if one of them is null.
pub(super) fn of_key(partitioner: Partitioner, values: &[Option<Bytes>]) -> Option<Bytes> {
    let values: Vec<Bytes> = values.iter().cloned().collect::<Option<_>>()?;
    let token = partitioner.token(&routing_key(&values));
    Some(Bytes::copy_from_slice(&token.0.to_be_bytes()))
}
