//! The selection: resolves selectors to expressions with names and types.

use std::borrow::Cow;
use std::sync::Arc;

use cql::ast::{self, ArgumentPart, FunctionCall, Selector, Term, TimeFunction};
use cql::error::CqlError;
use query::bind::{PrepareContext, PreparedTerm, prepare_term};
use query::functions::{self, CallArgument, TypeCast, own_type, term_excerpt};
use query::{SearchCall, SearchCallPart, SearchTerm, clauses, resolve};
use schema::{Column, ColumnKind, Table};
use storage::read::Row;
use value::identifier::Identifier;
use value::{CqlType, UserType, json_string};

use super::aggregate::{AggregateCall, AggregateFunction};
use super::column_location::{ColumnLocation, ValueShape};
use super::expression::{Expression, JsonField, OutputColumns};
use super::names::{no_type, selector_name};
use crate::statement::ColumnSpec;

/// The name of a bind marker in a selection, if its place has no name.
const MARKER_NAME: &str = "[selection]";

/// A resolved selection.
#[derive(Clone, Debug)]
pub(super) struct ResolvedSelection {
    /// The expressions, one for each result column.
    pub outputs: OutputColumns,
    /// The specs of the result columns.
    pub columns: Arc<[ColumnSpec]>,
    /// The literals and bind markers in the outputs.
    pub terms: Vec<PreparedTerm>,
    /// The aggregates in the outputs. If there is one, the answer is a single row.
    pub aggregates: Vec<AggregateCall>,
    /// The columns that are read, each once.
    pub read: Vec<Column>,
    /// Whether the outputs show when cells were written or when they expire.
    pub reads_times: bool,
    /// The values that the outputs show of searches.
    pub searches: Vec<SelectedSearch>,
}

/// A value that a selection shows of a search.
#[derive(Clone, Debug)]
pub(super) struct SelectedSearch {
    /// The vector or the words that the search looks for.
    pub term: SearchTerm,
    /// The part of what it knows of a row.
    pub part: SearchCallPart,
}

/// Resolves a selection. With `is_json` each row becomes the text of a JSON object.
///
/// # Errors
/// Unknown columns and functions, wrong types, and selectors that are not allowed.
pub(super) fn prepare(
    table: &Table,
    is_json: bool,
    projection: &ast::ProjectionList,
    ctx: &mut PrepareContext,
) -> Result<ResolvedSelection, CqlError> {
    let mut builder = ExpressionBuilder {
        table,
        ctx,
        terms: Vec::new(),
        aggregates: Vec::new(),
        read: Vec::new(),
        reads_times: false,
        searches: Vec::new(),
        in_aggregate: false,
    };
    let mut outputs = Vec::new();
    let mut columns = Vec::new();
    let keyspace: Arc<str> = table.keyspace.as_str().into();
    let table_name: Arc<str> = table.name.as_str().into();
    let spec = |name: String, cql_type: CqlType| ColumnSpec {
        keyspace: keyspace.clone(),
        table: table_name.clone(),
        name: name.into(),
        cql_type,
    };
    match projection {
        ast::ProjectionList::All => {
            for column in table.columns_in_select_order() {
                outputs.push(builder.column(column));
                columns.push(spec(column.name.clone(), column.cql_type.clone()));
            }
        }
        ast::ProjectionList::Items(items) => {
            for item in items {
                let (output, cql_type) = builder.selector(&item.selector)?;
                let name = match &item.alias {
                    Some(alias) => alias.clone(),
                    None => builder.name(&item.selector, &output),
                };
                outputs.push(output);
                columns.push(spec(name, cql_type));
            }
        }
    }
    let outputs = match is_json {
        true => {
            let json = spec("[json]".to_owned(), CqlType::Text);
            let columns = std::mem::replace(&mut columns, vec![json]);
            OutputColumns::Json(json_fields(outputs, columns))
        }
        false => OutputColumns::Values(outputs),
    };
    Ok(ResolvedSelection {
        outputs,
        columns: columns.into(),
        terms: builder.terms,
        aggregates: builder.aggregates,
        read: builder.read,
        reads_times: builder.reads_times,
        searches: builder.searches,
    })
}

/// The fields of the JSON object that these values of columns become.
fn json_fields(values: Vec<Expression>, columns: Vec<ColumnSpec>) -> Vec<JsonField> {
    let fields = values.into_iter().zip(columns);
    fields
        .map(|(value, column)| JsonField {
            name: json_name(&column.name),
            cql_type: column.cql_type,
            value,
        })
        .collect()
}

impl ResolvedSelection {
    /// The number of selected values. As JSON they are one column of the answer.
    pub(super) fn width(&self) -> usize {
        match &self.outputs {
            OutputColumns::Values(values) => values.len(),
            OutputColumns::Json(fields) => fields.len(),
        }
    }

    /// Drops the cells of a row that the outputs do not read.
    pub(super) fn retain_read(&self, row: &mut Row) {
        row.retain_cells(|id| self.read.iter().any(|column| column.id == id));
    }

    /// Resolves a function call of GROUP BY, whose terms join those of the selection. Returns the
    /// clustering column that it is of, too.
    ///
    /// # Errors
    /// As [`prepare`], and for another number of clustering columns than one.
    pub(super) fn group_function(
        &mut self,
        table: &Table,
        call: &Selector,
        ctx: &mut PrepareContext,
    ) -> Result<(Expression, Column), CqlError> {
        let mut builder = ExpressionBuilder {
            table,
            ctx,
            terms: std::mem::take(&mut self.terms),
            aggregates: Vec::new(),
            read: Vec::new(),
            reads_times: false,
            searches: Vec::new(),
            in_aggregate: false,
        };
        let resolved = builder.selector(call);
        let ExpressionBuilder {
            terms,
            aggregates,
            mut read,
            searches,
            ..
        } = builder;
        self.terms = terms;
        let (function, _) = resolved?;
        if !searches.is_empty() {
            return Err(CqlError::invalid(
                "Scores and ranks of searches are not supported within the GROUP BY clause",
            ));
        }
        if !aggregates.is_empty() {
            let name = match call {
                Selector::Function(call) => &call.name,
                _ => "count_rows",
            };
            return Err(CqlError::invalid(format!(
                "Aggregate functions are not supported within the GROUP BY clause, got: system.{name}"
            )));
        }
        let Some(column) = read.pop() else {
            return Err(CqlError::invalid(
                "GROUP BY functions must have one clustering column name as parameter",
            ));
        };
        if !read.is_empty() {
            let names = read.iter().chain([&column]).map(|read| &*read.name);
            return Err(CqlError::invalid(format!(
                "GROUP BY functions accept only one clustering column as parameter, got: {}",
                names.collect::<Vec<_>>().join(",")
            )));
        }
        if !matches!(column.kind, ColumnKind::Clustering { .. }) {
            return Err(CqlError::invalid(format!(
                "Group by functions are only supported on clustering columns, got {}",
                column.name
            )));
        }
        Ok((function, column))
    }
}

/// The name of a column as the name of a JSON field. One that is not in lower case has its quotes
/// in the field, so that it differs from every other.
pub(crate) fn json_name(name: &str) -> String {
    let quoted = match name.chars().any(char::is_uppercase) {
        true => Cow::Owned(format!("\"{name}\"")),
        false => Cow::Borrowed(name),
    };
    json_string(&quoted)
}

pub(super) struct ExpressionBuilder<'a> {
    pub(super) table: &'a Table,
    ctx: &'a mut PrepareContext,
    terms: Vec<PreparedTerm>,
    aggregates: Vec<AggregateCall>,
    read: Vec<Column>,
    pub(super) reads_times: bool,
    searches: Vec<SelectedSearch>,
    /// Whether the argument of an aggregate is being resolved. No other aggregate is allowed there.
    in_aggregate: bool,
}

/// An argument of a function that is not chosen yet.
enum UnresolvedArgument<'s> {
    Term(&'s Term),
    Typed {
        expression: Expression,
        cql_type: CqlType,
        text: String,
    },
}

impl ExpressionBuilder<'_> {
    /// The name of a result column without an alias, given what it shows. What is cast to its own
    /// type keeps its name. To Cassandra the type of a descending column is another one.
    fn name(&self, selector: &Selector, shown: &Expression) -> String {
        if let Selector::Cast { selector, .. } = selector
            && let Expression::Cast { cast, argument } = shown
            && cast.changes_nothing()
            && !self.is_descending(selector)
        {
            return self.name(selector, argument);
        }
        selector_name(selector)
    }

    fn is_descending(&self, selector: &Selector) -> bool {
        let Selector::Column(name) = selector else {
            return false;
        };
        let kind = self.table.column(name).map(|column| column.kind);
        matches!(
            kind,
            Some(ColumnKind::Clustering {
                descending: true,
                ..
            })
        )
    }

    /// The times of a column's cells, or of those of a part of it.
    fn time(
        &mut self,
        function: TimeFunction,
        column: &str,
        part: &ArgumentPart,
    ) -> Result<(Expression, CqlType), CqlError> {
        if let ArgumentPart::Nested { timed, whole } = part {
            let (time, cql_type) = self.time(function, column, timed)?;
            let (part, _) = self.selector(whole)?;
            let time = Expression::IfPresent {
                part: Box::new(part),
                is_slice: matches!(**whole, Selector::Slice { .. }),
                time: Box::new(time),
            };
            return Ok((time, cql_type));
        }
        let cells = self.cells(function, column, part)?;
        Ok(match function {
            TimeFunction::Ttl => {
                let cql_type = cells.result_type(CqlType::Int);
                (Expression::Ttl(cells), cql_type)
            }
            TimeFunction::WriteTime | TimeFunction::MaxWriteTime => {
                let cql_type = cells.result_type(CqlType::Bigint);
                (Expression::WriteTime(cells), cql_type)
            }
        })
    }

    pub(super) fn selector(
        &mut self,
        selector: &Selector,
    ) -> Result<(Expression, CqlType), CqlError> {
        match selector {
            Selector::Column(name) => {
                let column = resolve::column(self.table, name)?;
                Ok((self.column(column), column.cql_type.clone()))
            }
            Selector::CountAll => self.aggregate(AggregateFunction::CountRows, "count", &[]),
            Selector::Time {
                function,
                column,
                part,
            } => self.time(*function, column, part),
            Selector::Function(call) => self.function(call),
            Selector::Cast { selector, cql_type } => {
                let (argument, from) = self.selector(selector)?;
                let cast = Expression::Cast {
                    cast: TypeCast::new(&from, cql_type)?,
                    argument: Box::new(argument),
                };
                Ok((cast, cql_type.clone()))
            }
            Selector::Element { selector, key } => self.element(selector, key),
            Selector::Slice { selector, from, to } => {
                self.slice(selector, from.as_deref(), to.as_deref())
            }
            Selector::Tuple(parts) => self.tuple(selector, parts),
            Selector::List(parts) => self.elements_of_one_type(selector, parts, false),
            Selector::Set(parts) => self.elements_of_one_type(selector, parts, true),
            Selector::Entries(_) => Err(no_type(selector)),
            Selector::Hint {
                data_type,
                selector,
            } => {
                let cql_type = self.ctx.type_of(data_type)?;
                Ok((self.wanted(selector, &cql_type)?, cql_type))
            }
            Selector::Field { selector, field } => {
                let (argument, cql_type) = self.selector(selector)?;
                let (definition, position) =
                    field_of(&cql_type, field, || selector_name(selector))?;
                let field_type = definition.field_types[position].clone();
                let field = Expression::Field {
                    definition: definition.clone(),
                    position,
                    argument: Box::new(argument),
                };
                Ok((field, field_type))
            }
            Selector::Term(term) => {
                let cql_type = match term.without_parentheses() {
                    Term::TypeHint { data_type, .. } => Some(self.ctx.type_of(data_type)?),
                    term => own_type(term),
                };
                let cql_type = cql_type.ok_or_else(|| {
                    CqlError::invalid(format!(
                        "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
                        term_excerpt(term)
                    ))
                })?;
                Ok((self.term(term, &cql_type)?, cql_type))
            }
        }
    }

    pub(super) fn column(&mut self, column: &Column) -> Expression {
        if !self.read.iter().any(|seen| seen.id == column.id) {
            self.read.push(column.clone());
        }
        Expression::Column {
            place: ColumnLocation::of(column),
            shape: ValueShape::of(&column.cql_type),
        }
    }

    pub(super) fn term(&mut self, term: &Term, cql_type: &CqlType) -> Result<Expression, CqlError> {
        self.named_term(term, cql_type, MARKER_NAME)
    }

    pub(super) fn named_term(
        &mut self,
        term: &Term,
        cql_type: &CqlType,
        name: &str,
    ) -> Result<Expression, CqlError> {
        let prepared = prepare_term(term, cql_type, name, self.ctx)?;
        self.terms.push(prepared);
        Ok(Expression::Term(self.terms.len() - 1))
    }

    fn function(
        &mut self,
        call: &FunctionCall<Selector>,
    ) -> Result<(Expression, CqlType), CqlError> {
        let is_native = call.keyspace.as_deref().is_none_or(|name| name == "system");
        if is_native && let Some(function) = AggregateFunction::by_name(&call.name) {
            return self.aggregate(function, &call.name, &call.arguments);
        }
        if is_native && call.name == "token" {
            return self.token(&call.arguments);
        }
        if let Some(search) = SearchCall::of(call)? {
            return self.search(&search);
        }
        let takes_vectors = functions::takes_float_vectors(&call.name);
        let pending: Vec<UnresolvedArgument<'_>> = call
            .arguments
            .iter()
            .map(|argument| match argument {
                Selector::List(parts) if takes_vectors => self.float_vector(argument, parts.len()),
                argument => self.pending(argument),
            })
            .collect::<Result<_, _>>()?;
        let arguments: Vec<CallArgument<'_>> = pending
            .iter()
            .map(UnresolvedArgument::as_argument)
            .collect();
        let function = functions::resolve(call.keyspace.as_deref(), &call.name, &arguments, None)?;
        let arguments = pending
            .into_iter()
            .zip(&function.argument_types)
            .map(|(pending, cql_type)| match pending {
                UnresolvedArgument::Term(term) => self.term(term, cql_type),
                UnresolvedArgument::Typed { expression, .. } => Ok(expression),
            })
            .collect::<Result<_, _>>()?;
        let return_type = function.return_type.clone();
        Ok((
            Expression::Function {
                function,
                arguments,
            },
            return_type,
        ))
    }

    /// A value that a search gives of the row.
    fn search(&mut self, call: &SearchCall<'_>) -> Result<(Expression, CqlType), CqlError> {
        let table = self.table;
        let column = table.column(call.column);
        let column = column
            .ok_or_else(|| clauses::unknown_column(call.column, (&table.keyspace, &table.name)))?;
        if call.part == SearchCallPart::Highlight {
            // The text has to be read.
            self.column(column);
        }
        let place = (column.name.as_str(), &column.cql_type);
        self.searches.push(SelectedSearch {
            term: SearchTerm::prepare(call.kind, &call.term, place, self.ctx)?,
            part: call.part,
        });
        let hit = Expression::Hit(self.searches.len() - 1);
        Ok((hit, call.part.cql_type()))
    }

    fn pending<'s>(&mut self, argument: &'s Selector) -> Result<UnresolvedArgument<'s>, CqlError> {
        if let Selector::Term(term) = argument {
            return Ok(UnresolvedArgument::Term(term));
        }
        let (expression, cql_type) = self.selector(argument)?;
        Ok(UnresolvedArgument::Typed {
            expression,
            cql_type,
            text: selector_name(argument),
        })
    }

    /// A list of columns as a vector, where a function takes nothing else.
    fn float_vector<'s>(
        &mut self,
        list: &'s Selector,
        length: usize,
    ) -> Result<UnresolvedArgument<'s>, CqlError> {
        let cql_type = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: u16::try_from(length).unwrap_or(u16::MAX),
        };
        Ok(UnresolvedArgument::Typed {
            expression: self.wanted(list, &cql_type)?,
            cql_type,
            text: selector_name(list),
        })
    }

    /// `token(...)` takes one value for each column of the partition key.
    fn token(&mut self, arguments: &[Selector]) -> Result<(Expression, CqlType), CqlError> {
        let key = self.table.partition_key();
        if arguments.len() != key.len() {
            return Err(CqlError::invalid(format!(
                "Invalid number of arguments in call to function system.token: {} required but {} provided",
                key.len(),
                arguments.len()
            )));
        }
        let is_own_key = key
            .iter()
            .zip(arguments)
            .all(|(column, argument)| *argument == Selector::Column(column.name.clone()));
        let mut expressions = Vec::new();
        for (index, (column, argument)) in key.iter().zip(arguments).enumerate() {
            let expression = match self.pending(argument)? {
                UnresolvedArgument::Term(term) => self.term(term, &column.cql_type)?,
                UnresolvedArgument::Typed {
                    expression,
                    cql_type,
                    text,
                } => {
                    if cql_type != column.cql_type {
                        return Err(CqlError::invalid(format!(
                            "Type error: {text} cannot be passed as argument {index} of function system.token of type {}",
                            column.cql_type
                        )));
                    }
                    expression
                }
            };
            expressions.push(expression);
        }
        if is_own_key {
            expressions.clear();
        }
        let token = Expression::Token {
            partitioner: self.table.partitioner,
            arguments: expressions,
        };
        Ok((token, CqlType::Bigint))
    }

    fn aggregate(
        &mut self,
        function: AggregateFunction,
        name: &str,
        arguments: &[Selector],
    ) -> Result<(Expression, CqlType), CqlError> {
        if self.in_aggregate {
            return Err(CqlError::invalid(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        let wanted = usize::from(function != AggregateFunction::CountRows);
        if arguments.len() != wanted {
            return Err(CqlError::invalid(format!(
                "Invalid number of arguments in call to function system.{name}: {wanted} required but {} provided",
                arguments.len()
            )));
        }
        let (argument, argument_type) = match arguments.first() {
            None => (None, CqlType::Bigint),
            Some(argument) => {
                self.in_aggregate = true;
                let typed = self.selector(argument);
                self.in_aggregate = false;
                let (argument, cql_type) = typed?;
                (Some(argument), cql_type)
            }
        };
        let result_type = function.result_type(name, &argument_type)?;
        self.aggregates.push(AggregateCall {
            function,
            argument,
            argument_type,
        });
        Ok((
            Expression::Aggregate(self.aggregates.len() - 1),
            result_type,
        ))
    }
}

/// The user type of a selected value, and the position of a field of it.
pub(super) fn field_of<'t>(
    cql_type: &'t CqlType,
    field: &str,
    selected: impl Fn() -> String,
) -> Result<(&'t Arc<UserType>, usize), CqlError> {
    let definition = cql_type.user_type().ok_or_else(|| {
        CqlError::invalid(format!(
            "Invalid field selection: {} of type {cql_type} is not a user type",
            selected()
        ))
    })?;
    let position = definition.position(field).ok_or_else(|| {
        CqlError::invalid(format!(
            "{} of type {} has no field {field}",
            selected(),
            Identifier(&definition.name)
        ))
    })?;
    Ok((definition, position))
}

impl UnresolvedArgument<'_> {
    fn as_argument(&self) -> CallArgument<'_> {
        match self {
            UnresolvedArgument::Term(term) => CallArgument::Term(term),
            UnresolvedArgument::Typed { cql_type, text, .. } => {
                CallArgument::Typed { cql_type, text }
            }
        }
    }
}
