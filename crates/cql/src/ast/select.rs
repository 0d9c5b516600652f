//! `SELECT` as data.

use value::CqlType;

use super::{DataType, FunctionCall, OptionValue, Relation, TableName, Term};

/// A `SELECT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The table after `FROM`.
    pub table: TableName,
    /// Whether `JSON` is written: each row is returned as one JSON text.
    pub json: bool,
    /// Whether `DISTINCT` is written.
    pub distinct: bool,
    /// The selected columns and expressions.
    pub projection: ProjectionList,
    /// The relations of `WHERE`; empty without a `WHERE`.
    pub relations: Vec<Relation>,
    /// The columns of `GROUP BY`, and calls of functions on them.
    pub group_by: Vec<Selector>,
    /// The orderings of `ORDER BY`.
    pub order_by: Vec<OrderByItem>,
    /// `PER PARTITION LIMIT`: an integer or a bind marker.
    pub per_partition_limit: Option<Term>,
    /// `LIMIT`: an integer or a bind marker.
    pub limit: Option<Term>,
    /// Whether `ALLOW FILTERING` is written.
    pub allow_filtering: bool,
    /// The options of `WITH`, as in DataStax's Cassandra; empty without a `WITH`. A list in a map
    /// is its text, `[1, 2]`.
    pub options: Vec<(String, OptionValue)>,
    /// Whether ScyllaDB's hint `BYPASS CACHE` is written. It is accepted, without effect.
    pub bypass_cache: bool,
    /// ScyllaDB's `USING TIMEOUT`: a duration, a number or a bind marker.
    pub timeout: Option<Term>,
}

/// The part of a `SELECT` before `FROM`.
#[derive(Clone, Debug, PartialEq)]
pub enum ProjectionList {
    /// `*`.
    All,
    /// One or more selectors.
    Items(Vec<SelectItem>),
}

/// `selector [AS alias]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// The expression that is computed of each row.
    pub selector: Selector,
    /// The name after `AS`, if one is written.
    pub alias: Option<String>,
}

/// An expression that a `SELECT` computes of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// A column.
    Column(String),
    /// `count(*)`, `count(1)`.
    CountAll,
    /// `writetime(c)`, `maxwritetime(c)` or `ttl(c)`, of a column or of a part of it.
    Time {
        /// The function.
        function: TimeFunction,
        /// The column.
        column: String,
        /// The part of the column.
        part: Box<ArgumentPart>,
    },
    /// Any other function call.
    Function(FunctionCall<Selector>),
    /// `cast(selector as type)`.
    Cast {
        /// The selector whose value is converted.
        selector: Box<Selector>,
        /// The type that it is converted to.
        cql_type: CqlType,
    },
    /// `selector[key]`.
    Element {
        /// The selector of a map or set.
        selector: Box<Selector>,
        /// The term in brackets.
        key: Term,
    },
    /// `selector[from..to]`. One of the bounds is there at least.
    Slice {
        /// The selector of a map or set.
        selector: Box<Selector>,
        /// The first key or element; `None` for all from the beginning on.
        from: Option<Box<Term>>,
        /// The last key or element; `None` for all up to the end.
        to: Option<Box<Term>>,
    },
    /// `selector.field`, of a user type.
    Field {
        /// The selector whose value has a user type.
        selector: Box<Selector>,
        /// The field of that type.
        field: String,
    },
    /// `(a, b)` of which not all are terms.
    Tuple(Vec<Selector>),
    /// `[a, b]` of which not all are terms.
    List(Vec<Selector>),
    /// `{a, b}` of which not all are terms.
    Set(Vec<Selector>),
    /// `{k: v}` of which not all are terms: a map, or a value of a user type, whose fields are
    /// columns here.
    Entries(Vec<(Selector, Selector)>),
    /// `(type) selector`, where the selector is no term.
    Hint {
        /// The type in parentheses.
        data_type: DataType,
        /// The selector after it.
        selector: Box<Selector>,
    },
    /// A literal or bind marker, as in `similarity_cosine(v, [1, 2])`.
    Term(Term),
}

/// A function that returns times of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFunction {
    /// `writetime`: when cells were written.
    WriteTime,
    /// `maxwritetime`: when the newest of the cells was written.
    MaxWriteTime,
    /// `ttl`: how long cells have left to live.
    Ttl,
}

impl TimeFunction {
    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            TimeFunction::WriteTime => "writetime",
            TimeFunction::MaxWriteTime => "maxwritetime",
            TimeFunction::Ttl => "ttl",
        }
    }
}

/// The part of a column that a function is called with.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentPart {
    /// All of the column.
    Whole,
    /// `.field`, of a user type.
    Field(String),
    /// `[key]`, of a map, or `[element]`, of a set.
    Element(Term),
    /// `[from..to]`, of a map or set, as in [`Selector::Slice`].
    Slice {
        /// The first key or element.
        from: Option<Term>,
        /// The last key or element.
        to: Option<Term>,
    },
    /// Several of them after each other, `.field[key]`.
    Nested {
        /// The part of the column whose cell has the time: the first that is no slice.
        timed: Box<ArgumentPart>,
        /// The column with all of them.
        whole: Box<Selector>,
    },
}

/// One entry of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderByItem {
    /// `column [ASC | DESC]`.
    Column {
        /// The column.
        column: String,
        /// Whether `DESC` is written.
        descending: bool,
    },
    /// `column ANN OF vector`.
    Ann {
        /// The column that is searched.
        column: String,
        /// The vector whose nearest neighbours are wanted.
        vector: Term,
        /// Whether `DESC` is written.
        descending: bool,
    },
    /// `ANN(column, term)`, `BM25(column, term)`, `RRF(call, call)` or any other function.
    Function {
        /// The call whose values the rows are ordered by.
        function: FunctionCall<Selector>,
        /// Whether `DESC` is written.
        descending: bool,
    },
    /// An expression with operators: `0.7 * ANN_SCORE(column, term) + ...`.
    Expression {
        /// The expression whose values the rows are ordered by.
        expression: Selector,
        /// Whether `DESC` is written.
        descending: bool,
    },
}
