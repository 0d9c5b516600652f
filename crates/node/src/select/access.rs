//! The access path of a query: which relations of its WHERE clause the storage serves, and which
//! are left to filter row by row.
//!
//! A partition is found by its whole key, or by a scan of tokens. Within it, clustering columns
//! narrow the rows down in the order of the key: values for the first columns, then bounds on the
//! next one, or on a tuple that begins there. All other relations filter: they read rows only to
//! throw some away. The user must allow that by ALLOW FILTERING.

use std::collections::BTreeMap;

use cql::error::CqlError;
use query::bind::PreparedInList;
use query::relation::{
    ColumnTest, PreparedRelation, RelationKind, TupleList, TupleTest, conflicts,
};
use schema::{Column, ColumnKind, Table};
use value::CqlType;
use value::predicate::ComparisonOperator;

/// The way in which a query finds its rows.
#[derive(Clone, Debug)]
pub(super) struct RowAccessPath {
    /// The partitions to read.
    pub partitions: PartitionAccess,
    /// The rows to read within a partition.
    pub clustering: ClusteringAccess,
    /// The part that secondary indexes take.
    pub indexes: IndexUse,
    /// The relations that each row is checked for after it is read.
    pub filters: Vec<PreparedRelation>,
    /// Whether a partition with only static content is part of the answer. It is if neither
    /// clustering nor regular columns are restricted.
    pub wants_static_only: bool,
}

#[derive(Clone, Debug)]
/// The way in which a query finds partitions.
pub(super) enum PartitionAccess {
    /// Partitions are found by key. There is one relation for each column of the key, an equality
    /// or an IN.
    Keys(Vec<PreparedRelation>),
    /// Partitions are scanned by token. The relations restrict the token; without any, all
    /// partitions are scanned.
    Tokens(Vec<PreparedRelation>),
}

/// The relations on clustering columns that narrow the rows of a partition down.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusteringAccess {
    /// Equalities and INs on successive columns from the first on.
    pub values: Vec<PreparedRelation>,
    /// Bounds that begin at the next column: none, one or two.
    pub bounds: Vec<PreparedRelation>,
}

/// The part that secondary indexes take in finding rows. They find the rows of a scan for which
/// those of the filters hold that they serve. Partitions that are named by their keys are read
/// without them, but for one with a local index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexUse {
    /// No index takes part.
    Unused,
    /// The query needs its indexes, as the user doesn't allow filtering.
    Needed,
    /// The query can do without indexes.
    Optional,
}

/// The ways to rows that a query may take in addition to its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllowedAccess {
    /// Rows are read only to throw some away.
    pub filtering: bool,
    /// Secondary indexes find rows.
    pub indexes: bool,
}

const NEEDS_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have \
     unpredictable performance. If you want to execute this query despite the performance unpredictability, use \
     ALLOW FILTERING";

/// The error for a query that reads rows only to throw them away.
pub(super) fn needs_filtering() -> CqlError {
    CqlError::invalid(NEEDS_FILTERING)
}

/// Decides how a query finds its rows, by the rules of Cassandra.
///
/// # Errors
/// Relations that can't be combined, and filtering that is not allowed.
pub(super) fn plan(
    table: &Table,
    relations: Vec<PreparedRelation>,
    allowed: AllowedAccess,
) -> Result<RowAccessPath, CqlError> {
    conflicts::check(&relations)?;
    refuse_vector_comparisons(table, &relations)?;
    let mut groups = RelationGroups::of(relations);
    // Before `partition_access` takes relations out of the groups.
    let needs = FilteringAnalysis::of(&groups, allowed);
    let wants_static_only = groups.clustering.is_empty()
        && groups.others.iter().all(|relation| {
            relation
                .first_column()
                .is_some_and(|column| column.kind == ColumnKind::Static)
        });
    let (partitions, mut filters) = partition_access(table, &mut groups);
    let narrowing = narrowing(table, groups.clustering);
    let is_scan = matches!(partitions, PartitionAccess::Tokens(_));
    let indexes = needs.indexes(&partitions, &filters, narrowing.fault)?;

    filters.extend(narrowing.unserved);
    let clustering = narrowing.access;
    filters.extend(groups.others);
    let is_local = filters.iter().any(is_served_locally);
    if indexes != IndexUse::Unused && (is_scan || is_local) {
        // A row that an index finds can be anywhere in its partition.
        filters.extend(clustering.values.iter().chain(&clustering.bounds).cloned());
    }
    if indexes != IndexUse::Unused
        && is_local
        && let PartitionAccess::Keys(relations) = &partitions
    {
        // A local index is read by the partition's token, which others may have, too.
        filters.extend(relations.iter().cloned());
    }
    Ok(RowAccessPath {
        partitions,
        clustering,
        indexes,
        filters,
        wants_static_only,
    })
}

/// Whether the relations give the whole partition key one value each.
pub(super) fn names_one_partition(table: &Table, relations: &[PreparedRelation]) -> bool {
    let gives = |column: &Column| {
        let mut relations = relations.iter();
        relations.any(|relation| relation.is_on(&column.name) && is_equality(relation))
    };
    table.partition_key().into_iter().all(gives)
}

/// Whether a local index serves the relation.
fn is_served_locally(relation: &PreparedRelation) -> bool {
    relation.indexes.iter().any(|index| index.is_local)
}

/// The questions of whether a query may use indexes and whether it filters, which are answered
/// part by part of its relations.
struct FilteringAnalysis {
    allowed: AllowedAccess,
    /// Whether an index serves a relation, and indexes are allowed.
    can_use_index: bool,
    /// Whether the partition key is restricted by an IN of several values.
    names_partitions: bool,
    restricts_clustering: bool,
    /// Whether an index serves a relation on clustering columns.
    has_clustering_index: bool,
    /// How far indexes serve the relations on clustering columns.
    clustering: IndexCoverage,
    restricts_others: bool,
    /// How far indexes serve the relations on static and regular columns.
    others: IndexCoverage,
}

/// How far indexes serve a number of relations. Those on elements of a column count as one, as in
/// Cassandra: with a storage-attached index of its values, they may restrict its keys, too.
#[derive(Clone, Copy, Default)]
struct IndexCoverage {
    relations: usize,
    /// The relations that an index serves, of whatever class.
    served: usize,
    /// The relations that storage-attached indexes serve.
    served_together: usize,
}

impl IndexCoverage {
    fn of<'r>(relations: impl IntoIterator<Item = &'r PreparedRelation>) -> IndexCoverage {
        let mut service = IndexCoverage::default();
        let mut of_elements: BTreeMap<&str, Vec<&PreparedRelation>> = BTreeMap::new();
        for relation in relations {
            match relation.kind.element_of() {
                Some((column, _)) => of_elements.entry(&column.name).or_default().push(relation),
                None => service.count(relation.is_served(), relation.is_served_together()),
            }
        }
        for asked in of_elements.values() {
            // An index without a class finds one element.
            service.count(
                asked.len() == 1 && asked[0].is_served(),
                asked.iter().any(|one| one.is_served_together()),
            );
        }
        service
    }

    fn count(&mut self, is_served: bool, is_served_together: bool) {
        self.relations += 1;
        self.served += usize::from(is_served);
        self.served_together += usize::from(is_served_together);
    }

    fn and(self, other: IndexCoverage) -> IndexCoverage {
        IndexCoverage {
            relations: self.relations + other.relations,
            served: self.served + other.served,
            served_together: self.served_together + other.served_together,
        }
    }

    /// Whether indexes serve all relations: storage-attached ones do so together, while one without
    /// a class serves only a single relation.
    fn is_whole(self) -> bool {
        self.relations == self.served_together || (self.relations, self.served) == (1, 1)
    }
}

impl FilteringAnalysis {
    fn of(groups: &RelationGroups, allowed: AllowedAccess) -> FilteringAnalysis {
        let is_served = |relation: &&PreparedRelation| allowed.indexes && relation.is_served();
        let mut whole = groups
            .partition
            .iter()
            .chain(&groups.clustering)
            .chain(&groups.others);
        FilteringAnalysis {
            allowed,
            can_use_index: whole.any(|one| is_served(&one)),
            names_partitions: groups.partition.iter().any(is_in_of_several),
            restricts_clustering: !groups.clustering.is_empty(),
            has_clustering_index: groups.clustering.iter().any(|one| is_served(&one)),
            clustering: IndexCoverage::of(&groups.clustering),
            restricts_others: !groups.others.is_empty(),
            others: IndexCoverage::of(&groups.others),
        }
    }

    /// The part that indexes take. `unkeyed` are the relations on the partition key that don't name
    /// partitions. `fault` says why the clustering relations don't narrow partitions down.
    ///
    /// # Errors
    /// Filtering that is not allowed, and an IN of partitions together with an index.
    fn indexes(
        &self,
        partitions: &PartitionAccess,
        unkeyed: &[PreparedRelation],
        fault: Option<CqlError>,
    ) -> Result<IndexUse, CqlError> {
        let can_use_index = self.can_use_index;
        // The parts are looked at in Cassandra's order, so that the same error comes first.
        let may_go_on = self.allowed.filtering || can_use_index;
        let is_partly_keyed = !unkeyed.iter().all(is_token);
        if is_partly_keyed && !may_go_on {
            return Err(needs_filtering());
        }
        let is_scan = matches!(partitions, PartitionAccess::Tokens(_));
        let is_whole_ring =
            matches!(partitions, PartitionAccess::Tokens(tokens) if tokens.is_empty());
        let mut checks_clustering = can_use_index && (is_partly_keyed || is_whole_ring);
        checks_clustering |= fault.is_some() || is_scan && self.has_clustering_index;
        match fault {
            Some(fault) if !may_go_on => return Err(fault),
            _ => {}
        }
        if self.restricts_others && !may_go_on {
            return Err(needs_filtering());
        }
        let uses_index = can_use_index && (checks_clustering || self.restricts_others);
        if uses_index && self.names_partitions {
            return Err(CqlError::invalid(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
            ));
        }
        let mut checked =
            IndexCoverage::of(unkeyed.iter().filter(|one| !is_token(one))).and(self.others);
        if checks_clustering {
            checked = checked.and(self.clustering);
        }
        let is_served = checked.relations == 0 || self.allowed.indexes && checked.is_whole();
        let checks_rows = self.restricts_others || checks_clustering && self.restricts_clustering;
        let checks_nothing = !is_partly_keyed && !checks_rows;
        let filters = !is_served || checks_nothing && self.restricts_clustering;
        if filters && (is_scan || uses_index) && !self.allowed.filtering {
            return Err(needs_filtering());
        }
        Ok(match (uses_index, self.allowed.filtering) {
            (false, _) => IndexUse::Unused,
            (true, false) => IndexUse::Needed,
            (true, true) => IndexUse::Optional,
        })
    }
}

fn is_token(relation: &PreparedRelation) -> bool {
    matches!(relation.kind, RelationKind::Token { .. })
}

/// Refuses relations on a vector column with an index, which serves only nearest neighbours. Where
/// there are relations on several such columns, only the first of them counts, as in Cassandra.
fn refuse_vector_comparisons(
    table: &Table,
    relations: &[PreparedRelation],
) -> Result<(), CqlError> {
    let indexed = |column: &Column| {
        table
            .indexes
            .values()
            .any(|index| index.column == column.name)
    };
    let columns = relations.iter().filter_map(PreparedRelation::first_column);
    let vectors = columns.filter(|column| matches!(column.cql_type, CqlType::Vector { .. }));
    let values =
        vectors.filter(|column| matches!(column.kind, ColumnKind::Static | ColumnKind::Regular));
    let first = values.min_by_key(|column| (column.kind != ColumnKind::Static, &column.name));
    if first.is_some_and(indexed) {
        return Err(CqlError::invalid("Vector indexes only support ANN queries"));
    }
    Ok(())
}

/// Relations, grouped by the part of the table that they restrict.
#[derive(Default)]
struct RelationGroups {
    /// Relations on the token.
    token: Vec<PreparedRelation>,
    /// Relations on partition key columns.
    partition: Vec<PreparedRelation>,
    /// Relations on clustering columns, sorted by the position of their first column.
    clustering: Vec<PreparedRelation>,
    /// Relations on static and regular columns.
    others: Vec<PreparedRelation>,
}

impl RelationGroups {
    fn of(relations: Vec<PreparedRelation>) -> RelationGroups {
        let mut groups = RelationGroups::default();
        for relation in relations {
            let group = match relation.first_column().map(|column| column.kind) {
                None => &mut groups.token,
                Some(ColumnKind::PartitionKey { .. }) => &mut groups.partition,
                Some(ColumnKind::Clustering { .. }) => &mut groups.clustering,
                Some(ColumnKind::Static | ColumnKind::Regular) => &mut groups.others,
            };
            group.push(relation);
        }
        groups.clustering.sort_by_key(first_position);
        groups
    }
}

/// The position of the relation's first column in its key.
fn first_position(relation: &PreparedRelation) -> usize {
    match relation.first_column().map(|column| column.kind) {
        Some(ColumnKind::PartitionKey { position } | ColumnKind::Clustering { position, .. }) => {
            position
        }
        _ => 0,
    }
}

/// The way to the partitions, and the relations on the partition key that are left to check.
fn partition_access(
    table: &Table,
    groups: &mut RelationGroups,
) -> (PartitionAccess, Vec<PreparedRelation>) {
    let key_columns = table
        .columns
        .iter()
        .filter(|column| matches!(column.kind, ColumnKind::PartitionKey { .. }))
        .count();
    let mut partition = std::mem::take(&mut groups.partition);
    let token = std::mem::take(&mut groups.token);
    if partition.len() == key_columns && partition.iter().all(gives_values) {
        partition.sort_by_key(first_position);
        (PartitionAccess::Keys(partition), token)
    } else {
        (PartitionAccess::Tokens(token), partition)
    }
}

/// Whether the relation is an equality or an IN, which gives the values of its columns.
fn gives_values(relation: &PreparedRelation) -> bool {
    matches!(
        relation.kind,
        RelationKind::Column {
            test: ColumnTest::Compare(ComparisonOperator::Eq, _) | ColumnTest::In(_),
            ..
        } | RelationKind::Tuple {
            test: TupleTest::Compare(ComparisonOperator::Eq, _) | TupleTest::In(_),
            ..
        }
    )
}

/// Whether the relation compares its columns with a value. An equality counts, too.
fn gives_bound(relation: &PreparedRelation) -> bool {
    matches!(
        relation.kind,
        RelationKind::Column {
            test: ColumnTest::Compare(..),
            ..
        } | RelationKind::Tuple {
            test: TupleTest::Compare(..),
            ..
        }
    )
}

/// The outcome of narrowing partitions down by the relations on clustering columns.
struct ClusteringNarrowing {
    access: ClusteringAccess,
    /// The relations that are left to check.
    unserved: Vec<PreparedRelation>,
    /// The reason why the first of these doesn't narrow partitions down.
    fault: Option<CqlError>,
}

fn narrowing(table: &Table, relations: Vec<PreparedRelation>) -> ClusteringNarrowing {
    let mut access = ClusteringAccess::default();
    let mut unserved = Vec::new();
    let mut fault = None;
    // The position of the next clustering column that may be narrowed down.
    let mut next = 0;
    for relation in relations {
        let position = first_position(&relation);
        let bounded = !access.bounds.is_empty();
        if position == next && !bounded && gives_values(&relation) {
            next += width(&relation);
            access.values.push(relation);
        } else if position == next && gives_bound(&relation) && !gives_values(&relation) {
            access.bounds.push(relation);
        } else {
            fault.get_or_insert_with(|| fault_of(table, &relation, &access));
            unserved.push(relation);
        }
    }
    ClusteringNarrowing {
        access,
        unserved,
        fault,
    }
}

fn width(relation: &PreparedRelation) -> usize {
    match &relation.kind {
        RelationKind::Tuple { columns, .. } => columns.len(),
        _ => 1,
    }
}

/// The error that says why a relation on a clustering column doesn't narrow partitions down.
fn fault_of(table: &Table, relation: &PreparedRelation, access: &ClusteringAccess) -> CqlError {
    let name = relation
        .first_column()
        .map_or("", |column| column.name.as_str());
    let bounded = access
        .bounds
        .first()
        .and_then(PreparedRelation::first_column);
    CqlError::invalid(match bounded {
        _ if relation.is_like() => format!("{} needs ALLOW FILTERING", relation.text),
        _ if !gives_values(relation) && !gives_bound(relation) => {
            "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering"
                .to_owned()
        }
        Some(column) => format!(
            "Clustering column \"{name}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            column.name
        ),
        None => {
            let missing: usize = access.values.iter().map(width).sum();
            let preceding = table
                .columns
                .iter()
                .find(|column| {
                    matches!(column.kind, ColumnKind::Clustering { position, .. } if position == missing)
                })
                .map_or("", |column| column.name.as_str());
            format!(
                "PRIMARY KEY column \"{name}\" cannot be restricted as preceding column \"{preceding}\" is not restricted"
            )
        }
    })
}

impl RowAccessPath {
    /// Whether local indexes find the rows, within the one partition that the query names.
    pub(super) fn is_by_local_index(&self) -> bool {
        self.indexes != IndexUse::Unused
            && self.partitions.is_one_partition()
            && self.filters.iter().any(is_served_locally)
    }

    /// Whether a relation of WHERE leaves a single value to the column.
    pub(super) fn fixes(&self, column: &Column) -> bool {
        let of_partition = match &self.partitions {
            PartitionAccess::Keys(relations) => relations.as_slice(),
            PartitionAccess::Tokens(_) => &[],
        };
        let relations = of_partition.iter().chain(&self.clustering.values);
        relations.chain(&self.filters).any(|relation| {
            relation.is_on(&column.name) && (is_equality(relation) || is_in_of_one(relation))
        })
    }
}

impl PartitionAccess {
    /// Whether each column of the partition key has exactly one value.
    pub(super) fn is_one_partition(&self) -> bool {
        match self {
            PartitionAccess::Keys(relations) => relations.iter().all(is_equality),
            PartitionAccess::Tokens(_) => false,
        }
    }

    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub(super) fn key_variables(&self) -> Vec<u16> {
        let PartitionAccess::Keys(relations) = self else {
            return Vec::new();
        };
        relations
            .iter()
            .map(|relation| match &relation.kind {
                RelationKind::Column {
                    test: ColumnTest::Compare(ComparisonOperator::Eq, term),
                    ..
                } => term.marker(),
                _ => None,
            })
            .collect::<Option<Vec<u16>>>()
            .unwrap_or_default()
    }
}

/// Whether the relation gives each of its columns one value.
fn is_equality(relation: &PreparedRelation) -> bool {
    matches!(
        relation.kind,
        RelationKind::Column {
            test: ColumnTest::Compare(ComparisonOperator::Eq, _),
            ..
        } | RelationKind::Tuple {
            test: TupleTest::Compare(ComparisonOperator::Eq, _),
            ..
        }
    )
}

/// Whether the relation is an `IN` that may have several values.
fn is_in_of_several(relation: &PreparedRelation) -> bool {
    gives_values(relation) && !is_equality(relation) && !is_in_of_one(relation)
}

/// Whether the relation is an `IN` with a list of one value, which means the same as an equality.
fn is_in_of_one(relation: &PreparedRelation) -> bool {
    match &relation.kind {
        RelationKind::Column {
            test: ColumnTest::In(PreparedInList::Terms(terms)),
            ..
        } => terms.len() == 1,
        RelationKind::Tuple {
            test: TupleTest::In(TupleList::Terms(terms)),
            ..
        } => terms.len() == 1,
        _ => false,
    }
}

impl ClusteringAccess {
    /// Whether the relations leave a single value to the clustering column at this position.
    pub(super) fn fixes(&self, position: usize) -> bool {
        self.values.iter().any(|relation| {
            let first = first_position(relation);
            (is_equality(relation) || is_in_of_one(relation))
                && (first..first + width(relation)).contains(&position)
        })
    }

    /// Whether the values make up whole clustering keys, in a table with this many clustering
    /// columns.
    pub(super) fn gives_whole_keys(&self, clustering_columns: usize) -> bool {
        self.values.iter().map(width).sum::<usize>() == clustering_columns
    }
}
