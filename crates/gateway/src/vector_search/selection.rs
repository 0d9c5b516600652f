//! The selection of a query: what the cluster reads for the client, and what the gateway computes
//! and puts between it.
//!
//! ```text
//! SELECT name, BM25_SCORE(body, ?), length(name) FROM films ...     the client's statement
//! SELECT name, length(name), "id" FROM "shop"."films" WHERE ...     what the cluster reads
//!        0     (the gateway's)  1    2
//! ```

use std::sync::Arc;

use bytes::Bytes;
use cql::ast::{FunctionCall, ProjectionList, Select, SelectItem, Selector, Term};
use cql::error::CqlError;
use cql::parser::SelectionText;
use cql::wire::{ColumnSpec, ColumnsMetadata};
use query::bind::{PrepareContext, PreparedTerm, TermValue, prepare_term};
use query::functions::term_text;
use query::values::EvaluationInputs;
use query::{SearchCall, SearchCallPart, SearchWords};
use value::CqlType;

use super::row::CellSource;
use super::selection_items::{WrittenItem, written_items};
use crate::catalog::{DefinedIndex, LoggedTable};

/// The function that makes of a text the query for its words.
const WORDS_FUNCTION: &str = "bm25_words";

/// The selection of a query.
#[derive(Debug)]
pub(super) struct PlannedSelection {
    /// The items that the gateway computes, in the order of their places.
    pub(super) computed: Vec<ComputedItem>,
    /// The positions of the bind markers that the cluster gets, among all of the statement.
    pub(super) markers: Vec<usize>,
    /// Whether the rows are counted.
    pub(super) counts: bool,
    /// The text of what the cluster reads.
    pub(super) text: String,
    /// The selection that the cluster reads, as data.
    pub(super) read: ProjectionList,
}

/// An item of the selection that the gateway computes.
#[derive(Debug)]
pub(super) struct ComputedItem {
    /// The place among all items.
    place: usize,
    /// The column of the answer.
    spec: ColumnSpec,
    /// The value.
    pub(super) value: ComputedValue,
}

/// A value that the gateway computes.
#[derive(Debug)]
pub(super) enum ComputedValue {
    /// A part of the hit of the search that a call means.
    Hit {
        /// The call.
        call: usize,
        /// The part of it.
        part: SearchCallPart,
    },
    /// The score of a text, in a query without an ordering.
    Score(TextCall),
    /// The place in a text where words occur.
    Highlight(TextCall),
    /// The value of a term.
    Term(PreparedTerm),
    /// The number of rows.
    Count,
}

/// Words that are looked for in the texts of rows that are read.
#[derive(Clone, Debug)]
pub(super) struct TextCall {
    /// The words.
    pub(super) words: SearchWords,
    /// The index on the texts.
    pub(super) index: Arc<DefinedIndex>,
    /// The position of the column among those of searches.
    pub(super) searched: usize,
}

/// Plans the calls in a selection, as the statement's ordering has it.
pub(super) trait CallPlanner {
    /// The value of a call.
    ///
    /// # Errors
    /// Calls without an index, and those that make no sense in the statement.
    fn plan(
        &mut self,
        call: &SearchCall<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<ComputedValue, CqlError>;
}

impl PlannedSelection {
    /// Plans the selection of `select`, which is `written` so.
    ///
    /// # Errors
    /// Those of `calls`, and searches within other expressions.
    pub(super) fn of(
        select: &Select,
        written: &SelectionText<'_>,
        table: &LoggedTable,
        calls: &mut impl CallPlanner,
        ctx: &mut PrepareContext,
    ) -> Result<PlannedSelection, CqlError> {
        let whole = |read: ProjectionList| PlannedSelection {
            computed: Vec::new(),
            markers: (0..written.markers).collect(),
            counts: false,
            text: written.text.to_owned(),
            read,
        };
        let ProjectionList::Items(items) = &select.projection else {
            return Ok(whole(ProjectionList::All));
        };
        let mut computed = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let Some(value) = computed_value(&item.selector, calls, ctx)? else {
                continue;
            };
            let name = match &item.alias {
                Some(alias) => alias.clone(),
                None => name_of(&item.selector),
            };
            computed.push(ComputedItem {
                place,
                spec: ColumnSpec {
                    keyspace: table.keyspace.as_str().into(),
                    table: table.name.as_str().into(),
                    name: name.as_str().into(),
                    cql_type: value.cql_type(),
                },
                value,
            });
        }
        if computed.is_empty() {
            return Ok(whole(select.projection.clone()));
        }
        let texts = written_items(written.text).filter(|texts| texts.len() == items.len());
        let texts = texts.ok_or_else(|| {
            CqlError::invalid("The gateway can't tell the selected items apart: leave out comments")
        })?;
        let is_count = |item: &ComputedItem| matches!(item.value, ComputedValue::Count);
        let counts = computed.iter().any(is_count);
        let is_computed = |place: usize| computed.iter().any(|item| item.place == place);
        let (read, text, markers) = read_items(items, &texts, is_computed);
        Ok(PlannedSelection {
            computed,
            markers,
            counts,
            text,
            read,
        })
    }

    /// The columns of the answer, where the cluster reads these for the client, and their sources.
    pub(super) fn answer(&self, read: &[ColumnSpec]) -> (ColumnsMetadata, Vec<CellSource>) {
        let count = read.len() + self.computed.len();
        let (mut columns, mut sources) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut computed = self.computed.iter().enumerate().peekable();
        let mut read = read.iter().enumerate();
        for place in 0..count {
            let of_gateway = computed.next_if(|(_, item)| item.place == place);
            if let Some((position, item)) = of_gateway {
                columns.push(item.spec.clone());
                sources.push(CellSource::Computed(position));
            } else if let Some((position, column)) = read.next() {
                columns.push(column.clone());
                sources.push(CellSource::Read(position));
            }
        }
        (ColumnsMetadata { columns }, sources)
    }
}

impl ComputedValue {
    /// The type of the value.
    fn cql_type(&self) -> CqlType {
        match self {
            ComputedValue::Hit { part, .. } => part.cql_type(),
            ComputedValue::Score(_) => SearchCallPart::Score.cql_type(),
            ComputedValue::Highlight(_) => SearchCallPart::Highlight.cql_type(),
            ComputedValue::Term(term) => term.cql_type.clone(),
            ComputedValue::Count => CqlType::Bigint,
        }
    }
}

/// The items that the cluster reads: as data, as text, and the positions of their bind markers.
fn read_items(
    items: &[SelectItem],
    texts: &[WrittenItem<'_>],
    is_computed: impl Fn(usize) -> bool,
) -> (ProjectionList, String, Vec<usize>) {
    let (mut read, mut kept, mut markers, mut marker) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (place, (item, written)) in items.iter().zip(texts).enumerate() {
        let next = marker + written.markers;
        if !is_computed(place) {
            read.push(item.clone());
            kept.push(written.text);
            markers.extend(marker..next);
        }
        marker = next;
    }
    // An item may end with a comment to the end of its line.
    (ProjectionList::Items(read), kept.join("\n, "), markers)
}

/// The value of an item that the gateway computes; `None` for one that the cluster reads.
fn computed_value(
    selector: &Selector,
    calls: &mut impl CallPlanner,
    ctx: &mut PrepareContext,
) -> Result<Option<ComputedValue>, CqlError> {
    match selector {
        Selector::CountAll => {
            return Ok(Some(ComputedValue::Count));
        }
        Selector::Function(call) => {
            if let Some(call) = SearchCall::of(call)? {
                return calls.plan(&call, ctx).map(Some);
            }
            if is_words(call) {
                let term = words_term(call)?;
                let term = prepare_term(&term, &CqlType::Text, WORDS_FUNCTION, ctx)?;
                return Ok(Some(ComputedValue::Term(term)));
            }
        }
        _ => {}
    }
    match nested(selector) {
        None => Ok(None),
        Some(function) => Err(CqlError::invalid(format!(
            "Through a gateway {function}() can't be a part of another expression of the selection: select it by \
             itself"
        ))),
    }
}

fn is_words(call: &FunctionCall<Selector>) -> bool {
    matches!(call.keyspace.as_deref(), None | Some("system")) && call.name == WORDS_FUNCTION
}

/// The call of [`WORDS_FUNCTION`] as a term.
fn words_term(call: &FunctionCall<Selector>) -> Result<Term, CqlError> {
    let argument = |argument: &Selector| match argument {
        Selector::Term(term) => Ok(term.clone()),
        _ => Err(CqlError::invalid(format!(
            "Through a gateway {WORDS_FUNCTION}() in the selection takes a text or a bind marker"
        ))),
    };
    let arguments = call.arguments.iter().map(argument);
    Ok(Term::Function(FunctionCall {
        keyspace: call.keyspace.clone(),
        name: call.name.clone(),
        arguments: arguments.collect::<Result<_, CqlError>>()?,
    }))
}

/// The name of a function that only the gateway knows, within a selector.
fn nested(selector: &Selector) -> Option<String> {
    match selector {
        Selector::Function(call) => {
            let is_search = !matches!(SearchCall::of(call), Ok(None));
            match is_search || is_words(call) {
                true => Some(call.name.to_ascii_uppercase()),
                false => call.arguments.iter().find_map(nested),
            }
        }
        Selector::Cast { selector, .. }
        | Selector::Field { selector, .. }
        | Selector::Element { selector, .. }
        | Selector::Slice { selector, .. }
        | Selector::Hint { selector, .. } => nested(selector),
        Selector::Tuple(parts) | Selector::List(parts) | Selector::Set(parts) => {
            parts.iter().find_map(nested)
        }
        Selector::Entries(entries) => entries
            .iter()
            .find_map(|(key, value)| nested(key).or_else(|| nested(value))),
        Selector::Column(_) | Selector::CountAll | Selector::Time { .. } | Selector::Term(_) => {
            None
        }
    }
}

/// The name of a column of the answer, in the form in which Cassandra names those of functions.
fn name_of(selector: &Selector) -> String {
    match selector {
        Selector::Function(call) => {
            let keyspace = call.keyspace.as_deref().unwrap_or("system");
            let arguments: Vec<String> = call.arguments.iter().map(name_of).collect();
            format!("{keyspace}.{}({})", call.name, arguments.join(", "))
        }
        Selector::Column(name) => name.clone(),
        Selector::Term(term) => term_text(term),
        Selector::Hint {
            data_type,
            selector,
        } => format!("({data_type}){}", name_of(selector)),
        // Of the rest only this is computed.
        _ => "count".to_owned(),
    }
}

/// The value of a term of the selection; `None` for null.
pub(super) fn term_value(
    term: &PreparedTerm,
    values: EvaluationInputs<'_>,
) -> Result<Option<Bytes>, CqlError> {
    match term.evaluate(values.bound, values.clock)? {
        TermValue::Value(bytes) => Ok(Some(bytes)),
        TermValue::Null => Ok(None),
        TermValue::Unset => Err(CqlError::invalid(
            "Invalid unset value in the selection clause",
        )),
    }
}

/// The error for a part of a search that a query without an ordering can't give.
pub(super) fn without_ordering() -> CqlError {
    CqlError::invalid(
        "Without ORDER BY of a search, the selection may have BM25_SCORE() and BM25_HIGHLIGHT() only: there are no \
         ranks",
    )
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::{parse_statement, selection_text};

    use super::super::fixtures::{column, table};
    use super::*;

    /// Takes every call for the score of its search.
    struct ScorePlanner;

    impl CallPlanner for ScorePlanner {
        fn plan(
            &mut self,
            call: &SearchCall<'_>,
            ctx: &mut PrepareContext,
        ) -> Result<ComputedValue, CqlError> {
            prepare_term(&call.term, &CqlType::Text, call.column, ctx)?;
            let part = call.part;
            Ok(ComputedValue::Hit { call: 0, part })
        }
    }

    fn planned(selection: &str) -> Result<PlannedSelection, CqlError> {
        let text = format!("SELECT {selection} FROM films");
        let parsed = parse_statement(&text).unwrap();
        let Statement::Select(select) = parsed.statement else {
            panic!("{text}")
        };
        let written = selection_text(&text).unwrap();
        let mut ctx = PrepareContext::new("shop", "films", parsed.markers.len());
        let table = table(&["id"], &[]);
        PlannedSelection::of(&select, &written, &table, &mut ScorePlanner, &mut ctx)
    }

    #[test]
    fn the_cluster_reads_all_but_what_the_gateway_computes() {
        let all = planned("*").unwrap();
        assert_eq!((all.text.trim(), all.computed.len()), ("*", 0));
        let plain = planned("name, f(v, ?) -- both\n").unwrap();
        assert_eq!(plain.text.trim_end(), "name, f(v, ?) -- both");
        assert_eq!(plain.markers, [0]);

        let text = "f(v, ?), BM25(name, ?) AS hit, m[?] AS x, bm25_words('a b')";
        let mixed = planned(text).unwrap();
        assert_eq!(mixed.text, "f(v, ?)\n, m[?] AS x");
        assert_eq!(mixed.markers, [0, 2]);
        let (columns, sources) = mixed.answer(&[column("f"), column("x")]);
        let names = columns.columns.iter().map(|spec| &*spec.name);
        assert!(names.eq(["f", "hit", "x", "system.bm25_words('a b')"]));
        assert_eq!(
            sources,
            [
                CellSource::Read(0),
                CellSource::Computed(0),
                CellSource::Read(1),
                CellSource::Computed(1)
            ]
        );
        let types: Vec<String> = columns
            .columns
            .iter()
            .map(|spec| spec.cql_type.to_string())
            .collect();
        assert_eq!(types[1], "frozen<tuple<float, int>>");
        assert_eq!(types[3], "text");

        let computed = planned("bm25_score(name, 'x')").unwrap();
        assert_eq!((computed.text.as_str(), computed.counts), ("", false));
        let (columns, _) = computed.answer(&[]);
        assert_eq!(&*columns.columns[0].name, "system.bm25_score(name, 'x')");
        assert!(planned("count(*) AS n").unwrap().counts);
    }

    #[test]
    fn searches_within_expressions_are_refused() {
        for selection in [
            "round(BM25_SCORE(name, ?))",
            "CAST(ann_rank(v, ?) AS text)",
            "[bm25_words(?), name]",
            "1 + bm25_score(name, ?)",
        ] {
            let error = planned(selection).unwrap_err();
            assert!(error.message.contains("by itself"), "{selection}: {error}");
        }
        let error = planned("bm25_words(name)").unwrap_err();
        assert!(error.message.contains("takes a text"), "{error}");
    }
}
