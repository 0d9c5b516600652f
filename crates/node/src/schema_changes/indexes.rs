//! CREATE INDEX and DROP INDEX. There are indexes that index services build, on vectors and on
//! texts, and secondary indexes: those of Cassandra's class SAI, and those without a class. All
//! other kinds are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{CreateIndex, IndexTarget};
use cql::error::CqlError;
use index::SearchClass;
use index::definition::{self, NewName};
use index::secondary::{self, NamedTarget};
use index::target::{StoredTarget, TargetColumn};
use query::{resolve, statement_clock};
use schema::{Catalog, Column, ColumnKind, SearchIndexMetadata, SecondaryIndex, Table};
use storage::clock::ServerClock;
use value::CqlType;

use super::table_options::TableOptions;
use super::{ApplyOutcome, cdc, counters};
use crate::statement::CatalogChangeKind;

/// The name by which `USING` may request an index without a class, in upper or lower case.
const NO_CLASS: &str = "legacy_local_table";

/// A prepared CREATE INDEX.
#[derive(Clone, Debug)]
pub(super) struct CreateIndexPlan {
    keyspace: String,
    table: String,
    /// The name of the index. If it is `None`, the name is made from the names of table and column.
    name: Option<String>,
    if_not_exists: bool,
    /// The class as the user wrote it; `None` for an index without a class.
    class: Option<String>,
    /// The list in parentheses.
    targets: Vec<IndexTarget>,
    options: BTreeMap<String, String>,
    /// The names of the options that have no effect here.
    idle: Vec<String>,
}

/// A prepared DROP INDEX.
#[derive(Clone, Debug)]
pub(super) struct DropIndexPlan {
    pub keyspace: String,
    pub name: String,
    pub if_exists: bool,
}

impl CreateIndexPlan {
    /// The keyspace and the name of the table.
    pub fn table(&self) -> (&str, &str) {
        (&self.keyspace, &self.table)
    }

    pub fn prepare(keyspace: &str, create: &CreateIndex) -> Result<Self, CqlError> {
        let class = known_class(create)?;
        let idle = idle_properties(create, class)?;
        if let Some(name) = &create.name {
            definition::check_name(name)?;
        }
        Ok(CreateIndexPlan {
            keyspace: keyspace.to_owned(),
            table: create.table.name.clone(),
            name: create.name.clone(),
            if_not_exists: create.if_not_exists,
            class: class.map(str::to_owned),
            targets: create.targets.clone(),
            options: create.options.clone(),
            idle,
        })
    }

    /// The warning that options have no effect.
    pub fn warning(&self) -> Option<String> {
        let names = self.idle.join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "Options of an index without effect here, as it has no table of its own: {names}"
            )
        })
    }

    pub fn apply(
        &self,
        catalog: &mut Catalog,
        clock: &ServerClock,
    ) -> Result<ApplyOutcome, CqlError> {
        let Some(table) = catalog.table(&self.keyspace, &self.table) else {
            return super::missing_table(catalog, &self.keyspace, &self.table, false);
        };
        super::refuse_log(table)?;
        counters::check_index(table)?;
        let table = match self.secondary(table)? {
            Some((target, is_local)) => {
                self.with_secondary(catalog, table, &target, is_local, clock)?
            }
            None => self.with_search_index(catalog, table, clock)?,
        };
        let Some(table) = table else {
            return Ok(ApplyOutcome::Nothing);
        };
        catalog.put_table(table);
        Ok(ApplyOutcome::table(
            CatalogChangeKind::Updated,
            &self.keyspace,
            &self.table,
        ))
    }

    /// The target of a secondary index, and whether the index is local; `None` if index services
    /// build the index.
    fn secondary(&self, table: &Table) -> Result<Option<(NamedTarget, bool)>, CqlError> {
        let Some(class) = &self.class else {
            return self.plain_target(table).map(Some);
        };
        if !secondary::is_sai_class(class) {
            return Ok(None);
        }
        let is_of_vectors = |name: &str| {
            let column = table.column(name);
            column.is_some_and(|column| matches!(column.cql_type, CqlType::Vector { .. }))
        };
        let mut targets = self.targets.iter();
        let is_vector_index = targets.any(|target| match target {
            IndexTarget::Column(name) => is_of_vectors(name),
            IndexTarget::LocalKey(_) | IndexTarget::Collection { .. } => false,
        });
        match is_vector_index {
            true => Ok(None),
            false => Ok(Some((NamedTarget::of(&self.targets)?, false))),
        }
    }

    /// The target of an index without a class, and whether the index is local.
    fn plain_target(&self, table: &Table) -> Result<(NamedTarget, bool), CqlError> {
        let (key, targets) = match self.targets.as_slice() {
            [IndexTarget::LocalKey(key), rest @ ..] => (Some(key), rest),
            all => (None, all),
        };
        if targets.len() > 1 {
            return Err(CqlError::invalid(
                "Only CUSTOM indexes support multiple columns",
            ));
        }
        if let Some(key) = key {
            check_local_key(table, key)?;
            if targets.is_empty() {
                return Err(CqlError::invalid(
                    "A local index needs a column behind the partition key",
                ));
            }
        }
        Ok((NamedTarget::of(targets)?, key.is_some()))
    }

    /// The class of an index that index services build. A class of Cassandra's means an index on
    /// vectors there.
    fn search_class(&self) -> SearchClass {
        let class = self.class.as_deref().and_then(SearchClass::of);
        class.unwrap_or(SearchClass::Vector)
    }

    /// The table with the new index; `None` if there is such an index already.
    fn with_search_index(
        &self,
        catalog: &Catalog,
        table: &Table,
        clock: &ServerClock,
    ) -> Result<Option<Table>, CqlError> {
        let class = self.search_class();
        let target = StoredTarget::of(&self.targets, class)?;
        let key = table.partition_key().into_iter();
        let key = key.chain(table.clustering_key());
        let key: Vec<&str> = key.map(|column| column.name.as_str()).collect();
        let column = |name: &str| table.column(name).map(described);
        definition::check(class, &target, &self.options, &key, column)?;
        cdc::check_for_new_index(table.cdc.as_ref(), class)?;

        let on_column = find_equal_index(table, class, &target).map(|index| index.name.as_str());
        let Some(name) = self.new_name(catalog, &target.column, on_column)? else {
            return Ok(None);
        };
        let index = SearchIndexMetadata {
            name: name.clone(),
            target: target.encode(),
            column: target.column,
            local_key: target.local_key,
            filter_columns: target.filter_columns,
            options: self.options.clone(),
            class_name: class.name().to_owned(),
            version: statement_clock::timeuuid(clock),
        };
        let mut table = table.clone();
        table.indexes.insert(name, Arc::new(index));
        Ok(Some(table))
    }

    /// The table with the new index; `None` if there is such an index already.
    fn with_secondary(
        &self,
        catalog: &Catalog,
        table: &Table,
        target: &NamedTarget,
        is_local: bool,
        clock: &ServerClock,
    ) -> Result<Option<Table>, CqlError> {
        let column = resolve::column(table, &target.column)?;
        if is_local
            && !matches!(
                column.kind,
                ColumnKind::Regular | ColumnKind::Clustering { .. }
            )
        {
            return Err(CqlError::invalid(format!(
                "Local indexes are on regular and clustering columns: all rows of a partition have \
                 the same {}",
                column.name
            )));
        }
        if self.class.is_none() && matches!(column.cql_type, CqlType::Vector { .. }) {
            return Err(CqlError::invalid(format!(
                "An index on vectors ({}) needs a class: CREATE CUSTOM INDEX ... USING \
                 'vector_index'",
                column.name
            )));
        }
        let is_whole_key = matches!(column.kind, ColumnKind::PartitionKey { .. })
            && table.partition_key().len() == 1;
        let part = target.check(&described(column), is_whole_key)?;
        let is_key = !matches!(column.kind, ColumnKind::Regular | ColumnKind::Static);
        let types = secondary::term_types(&column.cql_type, part);
        secondary::check_options(&self.options, &types, is_key)?;

        let mut on_column = table.secondary_indexes_on(column.id);
        let is_attached = self.class.is_some();
        let is_alike = |index: &&SecondaryIndex| {
            index.part == part
                && index.is_storage_attached() == is_attached
                && index.is_local == is_local
        };
        let alike = on_column.find(is_alike);
        // A name is no excuse for a second index without a class.
        let equal = alike.filter(|index| is_attached && index.options == self.options);
        let on_column = equal.map(|index| index.name.as_str());
        let Some(name) = self.new_name(catalog, &column.name, on_column)? else {
            return Ok(None);
        };
        match alike {
            None => {}
            Some(_) if is_attached => {
                return Err(CqlError::invalid(format!(
                    "Cannot create more than one storage-attached index on the same column: {}",
                    column.name
                )));
            }
            Some(_) if self.if_not_exists => return Ok(None),
            Some(existing) => {
                return Err(CqlError::invalid(format!(
                    "Index {name} is a duplicate of existing index {}",
                    existing.name
                )));
            }
        }
        let index = SecondaryIndex {
            name: name.clone(),
            column: column.id,
            part,
            is_local,
            class_name: self.class.clone(),
            options: self.options.clone(),
            version: statement_clock::timeuuid(clock),
        };
        let mut table = table.clone();
        table.secondary_indexes.insert(name, Arc::new(index));
        Ok(Some(table))
    }

    /// The name of the new index; `None` if there is such an index already.
    fn new_name(
        &self,
        catalog: &Catalog,
        column: &str,
        on_column: Option<&str>,
    ) -> Result<Option<String>, CqlError> {
        let new_name = definition::new_name(
            self.name.as_deref(),
            self.if_not_exists,
            (&self.table, column),
            |name| find(catalog, &self.keyspace, name).is_some(),
            on_column,
        )?;
        Ok(match new_name {
            NewName::Name(name) => Some(name),
            NewName::Exists => None,
        })
    }
}

fn described(column: &Column) -> TargetColumn {
    TargetColumn {
        type_text: column.cql_type.to_string(),
        cql_type: Some(column.cql_type.clone()),
        irregular: match column.kind {
            ColumnKind::Regular => None,
            ColumnKind::Static => Some("static"),
            _ => Some("PRIMARY KEY"),
        },
        is_partition_key: matches!(column.kind, ColumnKind::PartitionKey { .. }),
    }
}

impl DropIndexPlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let Some(table) = find(catalog, &self.keyspace, &self.name) else {
            if self.if_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(definition::missing(&self.keyspace, &self.name));
        };
        let mut table = Table::clone(table);
        table.indexes.remove(&self.name);
        table.secondary_indexes.remove(&self.name);
        let name = table.name.clone();
        catalog.put_table(table);
        Ok(ApplyOutcome::table(
            CatalogChangeKind::Updated,
            &self.keyspace,
            &name,
        ))
    }
}

/// The class that the statement names, if it is one that there is; `None` for an index without a
/// class.
fn known_class(create: &CreateIndex) -> Result<Option<&str>, CqlError> {
    let class = match create.using.as_deref() {
        None if create.custom => {
            return Err(CqlError::invalid(
                "CUSTOM index requires specifying the index class",
            ));
        }
        Some(class) if create.custom || !class.eq_ignore_ascii_case(NO_CLASS) => class,
        _ if create.options.is_empty() => return Ok(None),
        _ => {
            return Err(CqlError::invalid(
                "Cannot specify options for a non-CUSTOM index",
            ));
        }
    };
    if SearchClass::of(class).is_some() || secondary::is_sai_class(class) {
        Ok(Some(class))
    } else {
        Err(CqlError::invalid(format!(
            "Non-supported custom class '{class}' provided: use 'sai', 'vector_index' on a column \
             of vectors, or 'fulltext_index' on a column of text"
        )))
    }
}

/// The names of the options of CREATE INDEX that have no effect. They are those of the view that an
/// index is in ScyllaDB, and their values are checked.
fn idle_properties(create: &CreateIndex, class: Option<&str>) -> Result<Vec<String>, CqlError> {
    if let Some(class) = class {
        definition::check_properties(create, class)?;
    }
    TableOptions::parse(&create.properties)?;
    let names = create.properties.iter().map(|(name, _)| name);
    match names
        .clone()
        .find(|name| ["default_time_to_live", "cdc"].contains(&name.as_str()))
    {
        Some(name) => Err(CqlError::invalid(format!(
            "Cannot set {name} for an index: it follows its table"
        ))),
        None => Ok(names.cloned().collect()),
    }
}

/// Checks that the key of a local index is the partition key of the table.
fn check_local_key(table: &Table, key: &[String]) -> Result<(), CqlError> {
    for name in key {
        let column = resolve::column(table, name)?;
        let is_repeated = key.iter().filter(|other| *other == name).count() > 1;
        if is_repeated || !matches!(column.kind, ColumnKind::PartitionKey { .. }) {
            return Err(CqlError::invalid(format!(
                "Local index definition must contain full partition key only. Redundant column: {name}"
            )));
        }
    }
    let mut whole = table.partition_key().into_iter();
    match whole.find(|column| !key.contains(&column.name)) {
        Some(missing) => Err(CqlError::invalid(format!(
            "Local index definition must contain full partition key only. Missing column: {}",
            missing.name
        ))),
        None => Ok(()),
    }
}

/// An index of the class on the same column, with the same local key or also without one.
fn find_equal_index<'t>(
    table: &'t Table,
    class: SearchClass,
    target: &StoredTarget,
) -> Option<&'t Arc<SearchIndexMetadata>> {
    let mut indexes = table.indexes.values();
    indexes.find(|index| {
        index.class() == class
            && index.column == target.column
            && index.local_key == target.local_key
    })
}

/// Finds the table that has an index of this name. An index name is unique in its keyspace.
fn find<'c>(catalog: &'c Catalog, keyspace: &str, name: &str) -> Option<&'c Arc<Table>> {
    catalog.keyspace(keyspace)?.tables.values().find(|table| {
        table.indexes.contains_key(name) || table.secondary_indexes.contains_key(name)
    })
}
