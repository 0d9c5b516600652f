//! Searches in a SELECT: `ORDER BY v ANN OF ...`, `ORDER BY BM25(c, ...)`, several of them, words
//! in WHERE, and the scores and ranks of a selection: which indexes serve them, and what they look
//! for.

use std::fmt;
use std::sync::Arc;

use cql::ast;
use cql::error::CqlError;
use index::CandidateRule;
use query::bind::PrepareContext;
use query::condition::{FilterSupport, SearchCondition, conditions, is_key_column};
use query::relation::PreparedRelation;
use query::{
    AnnOptions, IndexDefinition, SearchCallPart, SearchCallPlan, SearchForm, SearchKind,
    SearchTerm, SearchWords, SearchedOrdering, WordRelation, clauses, covered, serving,
};
use schema::{Column, ColumnId, SearchIndexMetadata, Table};

use super::column_location::ColumnLocation;
use super::projection::{ResolvedSelection, SelectedSearch};

/// The searches of a SELECT, resolved.
#[derive(Debug)]
pub(super) struct SearchOrder {
    /// The form of the query, for messages.
    pub form: SearchForm,
    /// The searches by which rows are ordered or of which the selection shows more; `None` if all
    /// rows that satisfy WHERE are wanted, in no order.
    pub plan: Option<SearchCallPlan>,
    /// The index and the column of each call in the plan.
    pub targets: Vec<SearchTarget>,
    /// The conditions of WHERE on words.
    pub words: Vec<WordTarget>,
    /// The values of searches in the selection, one for each of
    /// [`ResolvedSelection::searches`].
    pub selected: Vec<SelectedHit>,
    /// All columns of the primary key, partition key first.
    pub key_columns: Vec<Column>,
    /// The number of partition key columns, which are the first of `key_columns`.
    pub partition_columns: usize,
    /// The options of searches for neighbours.
    pub options: AnnOptions,
    /// The columns that all searched indexes keep with their values.
    kept: Vec<ColumnId>,
    /// The columns with an index of their own.
    indexed: Vec<ColumnId>,
    /// The relations of WHERE but those on words. Each row is checked for all of them, as an index
    /// may not have taken up a change yet.
    pub conditions: Vec<SearchCondition>,
    /// The columns outside of the key that the selection reads, if each searched index keeps all
    /// of them as the rows have them, and all columns of WHERE. Then they can answer by themselves.
    pub covered: Option<Vec<Column>>,
}

/// An index and the column that it is on.
#[derive(Clone, Debug)]
pub(super) struct SearchTarget {
    /// The index that names rows.
    pub index: Arc<SearchIndexMetadata>,
    /// The place of the column in a row.
    pub place: ColumnLocation,
    /// The number of candidates to request, and whether they are put in order again.
    pub candidates: CandidateRule,
}

/// A condition of WHERE on words.
#[derive(Clone, Debug)]
pub(super) struct WordTarget {
    pub relation: WordRelation,
    pub target: SearchTarget,
}

/// A value that the selection shows of a search.
#[derive(Clone, Debug)]
pub(super) enum SelectedHit {
    /// A part of what a search of the plan knows of the row.
    Call {
        /// The position of the call in the plan.
        call: usize,
        /// The part.
        part: SearchCallPart,
    },
    /// The score of the row's text, whichever way the row was found.
    Score(WordsOfRow),
    /// The place in the row's text where words occur.
    Highlight(WordsOfRow),
}

/// Words that are looked for in the text of each row.
#[derive(Clone, Debug)]
pub(super) struct WordsOfRow {
    pub words: SearchWords,
    pub target: SearchTarget,
}

impl fmt::Display for SearchOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, target) in self.targets.iter().enumerate() {
            let index = &target.index;
            let what = match index.is_full_text() {
                true => "best words of",
                false => "nearest",
            };
            writeln!(f, "{what} {} by index {}", index.column, index.name)?;
            if self.options.exact && !index.is_full_text() {
                writeln!(f, "exactly")?;
            }
            if target.candidates.oversampling != 1.0 {
                writeln!(f, "oversampling {}", target.candidates.oversampling)?;
            }
            if let Some(similarity) = target.candidates.rescoring {
                writeln!(f, "rescoring by {similarity:?}")?;
            }
            if at > 0 && self.plan.as_ref().is_some_and(SearchCallPlan::is_single) {
                writeln!(f, "for the selection only")?;
            }
        }
        match &self.plan {
            None => writeln!(f, "all rows with these words")?,
            Some(plan) if plan.is_single() => {}
            Some(plan) if plan.is_expression() => writeln!(f, "ranked by an expression")?,
            Some(_) => writeln!(f, "ranked by reciprocal ranks")?,
        }
        for WordTarget { relation, target } in &self.words {
            writeln!(f, "words by index {}: {}", target.index.name, relation.text)?;
        }
        for (name, is_kept) in [("filter in the index", true), ("filter of rows", false)] {
            let conditions = self.conditions.iter();
            let of_name = conditions.filter(|condition| condition.is_kept == is_kept);
            let texts: Vec<&str> = of_name.map(|one| one.relation.text.as_str()).collect();
            if !texts.is_empty() {
                writeln!(f, "{name}: {}", texts.join(" and "))?;
            }
        }
        if self.covered.is_some() {
            writeln!(f, "by the index alone at consistency ONE")?;
        }
        Ok(())
    }
}

/// Resolves an ordering by searches and words in WHERE, and checks the other clauses. Without an
/// `ordering`, there are `words` at least.
///
/// # Errors
/// Clauses that such a query can't have, in the words of ScyllaDB, and a column without an index.
pub(super) fn prepare(
    table: &Table,
    ordering: Option<&SearchedOrdering<'_>>,
    words: Vec<WordRelation>,
    select: &ast::Select,
    projection: &ResolvedSelection,
    ctx: &mut PrepareContext,
) -> Result<SearchOrder, CqlError> {
    let finder = TargetFinder { table, select };
    let form = ordering.map_or(SearchForm::Words, SearchedOrdering::form);
    let mut targets = Vec::new();
    for call in ordering.iter().flat_map(|ordering| &ordering.searches) {
        targets.push(finder.target(call.kind, call.column)?);
    }
    check_clauses(select, ordering, form, projection)?;
    let plan = match ordering {
        None => None,
        Some(ordering) => Some(SearchCallPlan::prepare(ordering, ctx, |call, ctx| {
            let column = finder.column(call.column)?;
            let place = (column.name.as_str(), &column.cql_type);
            SearchTerm::prepare(call.kind, &call.term, place, ctx)
        })?),
    };
    let words = words.into_iter().map(|relation| {
        let target = finder.target(SearchKind::Words, &relation.words.column)?;
        Ok::<_, CqlError>(WordTarget { relation, target })
    });
    let key = table.partition_key().into_iter();
    let indexed = table.secondary_indexes.values();
    let indexed = indexed.filter(|index| !index.is_local);
    let mut order = SearchOrder {
        form,
        plan,
        targets,
        words: words.collect::<Result<Vec<WordTarget>, CqlError>>()?,
        selected: Vec::new(),
        kept: Vec::new(),
        indexed: indexed.map(|index| index.column).collect(),
        options: ordering.map_or_else(AnnOptions::default, |ordering| ordering.options),
        partition_columns: table.partition_key().len(),
        key_columns: key.chain(table.clustering_key()).cloned().collect(),
        conditions: Vec::new(),
        covered: None,
    };
    for selected in &projection.searches {
        order.select(&finder, selected)?;
    }
    let kept = table.columns.iter();
    let kept = kept.filter(|column| order.keep(table, column));
    order.kept = kept.map(|column| column.id).collect();
    Ok(order)
}

/// Checks the clauses besides ORDER BY. All rows with words may be taken together, but for groups.
fn check_clauses(
    select: &ast::Select,
    ordering: Option<&SearchedOrdering<'_>>,
    form: SearchForm,
    projection: &ResolvedSelection,
) -> Result<(), CqlError> {
    let has_aggregates = !projection.aggregates.is_empty();
    let Some(ordering) = ordering else {
        if !select.order_by.is_empty() {
            return Err(CqlError::invalid(
                "BM25() in WHERE does not support an ordering by columns: order by BM25(column, words), by another \
                 search, or not at all",
            ));
        }
        // The index names rows in an order of its own, in which those of a group are apart.
        if !select.group_by.is_empty() {
            return Err(CqlError::invalid(
                "BM25() in WHERE does not support GROUP BY: group the rows in the application, or select the \
                 aggregates of one group at a time, with its columns in WHERE",
            ));
        }
        return clauses::check(select, form, &[], false);
    };
    let vectors = ordering.searches.iter();
    let vectors = vectors.filter(|call| call.kind == SearchKind::Vector);
    let vectors: Vec<&str> = vectors.map(|call| call.column).collect();
    clauses::check(select, form, &vectors, has_aggregates)
}

/// Finds the indexes of searches.
struct TargetFinder<'a> {
    table: &'a Table,
    select: &'a ast::Select,
}

impl<'a> TargetFinder<'a> {
    fn column(&self, name: &str) -> Result<&'a Column, CqlError> {
        let table = self.table;
        table
            .column(name)
            .ok_or_else(|| clauses::unknown_column(name, (&table.keyspace, &table.name)))
    }

    /// The index that serves a search on a column.
    fn target(&self, kind: SearchKind, name: &str) -> Result<SearchTarget, CqlError> {
        let table = self.table;
        let column = self.column(name)?;
        if kind == SearchKind::Vector {
            clauses::float_vector_dimensions(&column.name, &column.cql_type)?;
        }
        let is_words = kind == SearchKind::Words;
        let of_column = table.indexes.values();
        let of_column = of_column
            .filter(|index| index.column == column.name && index.is_full_text() == is_words);
        let is_kept = |index: &SearchIndexMetadata, name: &str| {
            let column = table.column(name);
            column.is_some_and(|column| keeps(table, index, column))
        };
        let index = serving(of_column, self.select, is_kept).ok_or_else(|| match kind {
            SearchKind::Vector => clauses::no_vector_index(&column.name),
            SearchKind::Words => clauses::no_text_index(&column.name),
        })?;
        Ok(SearchTarget {
            candidates: CandidateRule::of(|name| match is_words {
                // The options of a full-text index are others.
                true => None,
                false => index.options.get(name).map(String::as_str),
            }),
            index: index.clone(),
            place: ColumnLocation::of(column),
        })
    }
}

/// Whether an index keeps the values of a column: the column is of the primary key, the index names
/// it, or it has an index of its own.
fn keeps(table: &Table, index: &SearchIndexMetadata, column: &Column) -> bool {
    is_key_column(column.kind)
        || index.names(&column.name)
        || table.columns_with_an_index().any(|own| own.id == column.id)
}

impl SearchOrder {
    /// Adds a value that the selection shows of a search.
    fn select(
        &mut self,
        finder: &TargetFinder<'_>,
        selected: &SelectedSearch,
    ) -> Result<(), CqlError> {
        let SelectedSearch { term, part } = selected;
        let target = finder.target(term.kind(), term.column())?;
        let hit = match (&mut self.plan, term, part) {
            (_, SearchTerm::Words(words), SearchCallPart::Highlight) => {
                let words = words.clone();
                SelectedHit::Highlight(WordsOfRow { words, target })
            }
            (Some(plan), term, part) => {
                self.targets.push(target);
                SelectedHit::Call {
                    call: plan.add(term.clone()),
                    part: *part,
                }
            }
            (None, SearchTerm::Words(words), SearchCallPart::Score) => {
                let words = words.clone();
                SelectedHit::Score(WordsOfRow { words, target })
            }
            (None, ..) => {
                return Err(CqlError::invalid(
                    "Without ORDER BY of a search, the selection may have BM25_SCORE() and BM25_HIGHLIGHT() only: there \
                     are no ranks",
                ));
            }
        };
        self.selected.push(hit);
        Ok(())
    }

    /// Whether all searched indexes keep the values of this column.
    pub(super) fn keeps(&self, column: ColumnId) -> bool {
        self.kept.contains(&column)
    }

    /// Whether this column has an index of its own.
    pub(super) fn has_own_index(&self, column: ColumnId) -> bool {
        self.indexed.contains(&column)
    }

    /// The indexes of all searches and conditions.
    fn all_targets(&self) -> impl Iterator<Item = &SearchTarget> {
        // Words in WHERE name rows by themselves where there is no ordering.
        let of_words = self.words.iter().filter(|_| self.plan.is_none()).take(1);
        let of_words = of_words.map(|words| &words.target);
        self.targets.iter().chain(of_words)
    }

    /// Whether all searched indexes keep the values of a column.
    fn keep(&self, table: &Table, column: &Column) -> bool {
        self.all_targets()
            .all(|target| keeps(table, &target.index, column))
    }

    /// Takes the relations of WHERE but those on words.
    ///
    /// # Errors
    /// A column whose values no index keeps, without ALLOW FILTERING.
    pub(super) fn restrict(
        &mut self,
        relations: &[PreparedRelation],
        allow_filtering: bool,
    ) -> Result<(), CqlError> {
        let support = |column: &Column| {
            if self.kept.contains(&column.id) {
                FilterSupport::Kept
            } else if self.indexed.contains(&column.id) {
                FilterSupport::Allowed
            } else {
                FilterSupport::None
            }
        };
        self.conditions = conditions(relations.to_vec(), support, allow_filtering)?;
        Ok(())
    }

    /// Finds out whether the searched indexes can answer by themselves ([`covered`]), once WHERE
    /// has been taken. An expression has true scores of all rows, for which they are read.
    pub(super) fn cover(&mut self, projection: &ResolvedSelection) {
        let has_several = self.targets.len() > 1;
        let reads_text = |hit: &SelectedHit| match hit {
            SelectedHit::Highlight(_) => true,
            SelectedHit::Score(_) => has_several,
            SelectedHit::Call { .. } => false,
        };
        let is_by_ranks = |plan: &SearchCallPlan| !plan.is_expression();
        if !self.plan.as_ref().is_some_and(is_by_ranks)
            || !self.words.is_empty()
            || projection.reads_times
            || self.selected.iter().any(reads_text)
        {
            return;
        }
        let (conditions, read) = (&self.conditions, &projection.read);
        let targets = self.targets.iter();
        let of_targets: Option<Vec<_>> = targets
            .map(|target| covered(&*target.index, &target.candidates, conditions, read))
            .collect();
        self.covered = of_targets.and_then(|columns| columns.into_iter().next());
    }
}
