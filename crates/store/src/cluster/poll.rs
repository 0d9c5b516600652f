//! Looks at the schema. A look is valid as a whole if the schema didn't change while it was taken.
//!
//! A schema that changes all the time would never give a valid look. Then an index counts if two
//! looks in a row describe it alike, and the others wait.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::{StreamExt, TryStreamExt};
use index::target::StoredTarget;
use uuid::Uuid;

use super::describe::{IndexClass, IndexDescription, IndexFacts, describe};
use super::discovery_error::DiscoveryError;
use super::schema_statements::{DiscoveryStatements, ListedIndex, own_columns};
use super::session::DbSession;
use crate::database::DiscoveredIndexes;
use crate::identity::{IndexIdentity, IndexName};

/// The number of indexes whose entries are read at the same time.
const INDEXES_AT_A_TIME: usize = 16;

/// The result of a look.
#[derive(Clone, Debug)]
pub(super) enum DiscoveryRound {
    /// The schema is the one of the last look.
    Unchanged,
    /// The schema is changing, so another look is needed.
    Unsettled,
    /// The indexes of the schema.
    Indexes(DiscoveredIndexes),
}

/// Looks at the schema, and knows the result of the last look.
#[derive(Default)]
pub(super) struct IndexDiscovery {
    statements: DiscoveryStatements,
    /// The version of the schema at the last look that left nothing unclear. The inner `None`: the
    /// database keeps no versions.
    seen: Option<Option<Uuid>>,
    /// The result of the last look, if the schema changed while it was taken.
    unsettled: Option<Listing>,
    /// The generation of the session and the version of the schema for which the driver's metadata
    /// was refreshed last.
    refreshed: Option<(u64, Uuid)>,
    /// The latest known truncation of each table, by the table's id, milliseconds since the epoch.
    /// Nodes know different times and don't always answer. A time never goes back, or one
    /// truncation would look like several.
    truncated_ms: HashMap<Uuid, i64>,
    /// Whether the cluster had one node at the last full look.
    one_node: bool,
    /// Whether indexes on texts are left out.
    ignores_texts: bool,
    /// The remarks that have been logged, so that each is logged once.
    said: HashSet<(IndexName, String)>,
}

/// The result of a look for each index.
type Listing = BTreeMap<IndexName, IndexDescription>;

impl IndexDiscovery {
    /// Looks at indexes on texts only if `takes_texts`. No look was taken yet.
    pub(super) fn new(takes_texts: bool) -> IndexDiscovery {
        IndexDiscovery {
            ignores_texts: !takes_texts,
            ..IndexDiscovery::default()
        }
    }

    /// Makes the next look a full one.
    pub(super) fn forget(&mut self) {
        self.seen = None;
        self.refreshed = None;
    }

    /// Looks at the schema if it has changed.
    pub(super) async fn poll(&mut self, db: &DbSession) -> Result<DiscoveryRound, DiscoveryError> {
        let version = self.statements.version(db).await?;
        if self.seen == Some(version) {
            return Ok(DiscoveryRound::Unchanged);
        }
        let agreement = db.session.check_schema_agreement().await;
        let Some(agreed) =
            agreement.map_err(|error| DiscoveryError::Unreachable(error.to_string()))?
        else {
            return Ok(DiscoveryRound::Unsettled);
        };
        if self.refreshed != Some((db.generation, agreed)) {
            db.session
                .refresh_metadata()
                .await
                .map_err(|error| DiscoveryError::Unreachable(error.to_string()))?;
            self.refreshed = Some((db.generation, agreed));
        }
        let listing = self.listing(db).await?;
        if self.statements.version(db).await? != version {
            let before = self.unsettled.replace(listing.clone());
            return Ok(match before {
                Some(before) => DiscoveryRound::Indexes(agreed_by(&before, &listing)),
                None => DiscoveryRound::Unsettled,
            });
        }
        self.unsettled = None;
        let discovered = agreed_by(&listing, &listing);
        if discovered.unclear.is_empty() {
            self.seen = Some(version);
        } else {
            self.forget();
        }
        Ok(DiscoveryRound::Indexes(discovered))
    }

    /// Describes every index.
    async fn listing(&mut self, db: &DbSession) -> Result<Listing, DiscoveryError> {
        let mut indexes = self.statements.indexes(db).await?;
        if self.ignores_texts {
            indexes.retain(|listed| IndexClass::of(listed) != Some(IndexClass::FullText));
        }
        let statements = &self.statements;
        let own = own_columns(&indexes);
        let facts: Vec<(ListedIndex, IndexFacts)> = futures::stream::iter(indexes)
            .map(|listed| {
                let own = own.get(&listed.of_table()).cloned().unwrap_or_default();
                async move {
                    let facts = facts(statements, db, &listed, own).await?;
                    Ok::<_, DiscoveryError>((listed, facts))
                }
            })
            .buffer_unordered(INDEXES_AT_A_TIME)
            .try_collect()
            .await?;
        let state = db.session.get_cluster_state();
        self.one_node = state.get_nodes_info().len() == 1;
        let mut listing = Listing::new();
        for (listed, mut facts) in facts {
            // A single node's answer is exact, even if its clock was set back in between.
            if !self.one_node
                && let Some(id) = facts.table_id
            {
                facts.truncated_ms = self.latest_truncation(id, facts.truncated_ms);
            }
            let (described, remark) = describe(&state, &listed, &facts);
            if let Some(remark) = remark
                && self.said.insert((listed.name.clone(), remark.clone()))
            {
                tracing::warn!(index = %listed.name, "{remark}");
            }
            list(&mut listing, listed.name, described);
        }
        Ok(listing)
    }

    /// Whether the cluster had one node at the last full look.
    pub(super) fn one_node(&self) -> bool {
        self.one_node
    }

    /// Takes a time of truncation into account and returns the latest known one of the table,
    /// milliseconds since the epoch.
    pub(super) fn latest_truncation(
        &mut self,
        table: Uuid,
        truncated_ms: Option<i64>,
    ) -> Option<i64> {
        if let Some(truncated_ms) = truncated_ms {
            let latest = self.truncated_ms.entry(table).or_insert(truncated_ms);
            *latest = truncated_ms.max(*latest);
        }
        self.truncated_ms.get(&table).copied()
    }
}

/// Adds the description of an entry to those of other entries with the same name. Names are unique
/// in a keyspace, but a gateway's index and one of Cassandra's own may have been given the same
/// name at the same time. So an entry that isn't ours never displaces one that is.
fn list(listing: &mut Listing, name: IndexName, described: IndexDescription) {
    match listing.entry(name) {
        Entry::Vacant(place) => {
            place.insert(described);
        }
        Entry::Occupied(mut known) => {
            if *known.get() == IndexDescription::NotOurs {
                known.insert(described);
            }
        }
    }
}

/// Reads the entries of the schema that belong to an index. `own` are the columns of its table with
/// an index of the database's own.
async fn facts(
    statements: &DiscoveryStatements,
    db: &DbSession,
    listed: &ListedIndex,
    own: BTreeSet<String>,
) -> Result<IndexFacts, DiscoveryError> {
    let (options, table_id) = tokio::try_join!(
        statements.options(db, listed),
        statements.table_id(db, listed)
    )?;
    let target = options
        .as_ref()
        .and_then(|options| options.get("target"))
        .map(|target| StoredTarget::decode(target));
    let columns = async {
        let mut columns = HashMap::new();
        let named = target.iter().flat_map(StoredTarget::columns);
        for name in named.chain(own.iter().map(String::as_str)) {
            if let Some(column) = statements.column(db, listed, name).await? {
                columns.insert(name.to_owned(), column);
            }
        }
        Ok::<_, DiscoveryError>(columns)
    };
    let truncated_ms = async {
        match table_id {
            Some(id) => statements.truncated_ms(db, id).await,
            None => Ok(None),
        }
    };
    let (columns, truncated_ms) = tokio::try_join!(columns, truncated_ms)?;
    Ok(IndexFacts {
        options,
        target,
        columns,
        own: own.into_iter().collect(),
        table_id,
        truncated_ms,
    })
}

/// The indexes that two looks describe alike. An index is unclear if they differ, or if neither
/// could describe it.
fn agreed_by(before: &Listing, now: &Listing) -> DiscoveredIndexes {
    let mut discovered = DiscoveredIndexes::default();
    for name in before.keys().chain(now.keys()) {
        match (before.get(name), now.get(name)) {
            (Some(IndexDescription::Index(before)), Some(IndexDescription::Index(now)))
                if before == now =>
            {
                discovered
                    .indexes
                    .insert(name.clone(), IndexIdentity::clone(now));
            }
            (Some(IndexDescription::NotOurs), Some(IndexDescription::NotOurs)) => {}
            _ => {
                discovered.unclear.insert(name.clone());
            }
        }
    }
    discovered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::identity;

    #[test]
    fn an_index_that_is_not_ours_takes_no_place_of_one_that_is() {
        let index = || IndexDescription::Index(Box::new(identity("same")));
        for (first, second, listed) in [
            (index(), IndexDescription::NotOurs, index()),
            (IndexDescription::NotOurs, index(), index()),
            (
                IndexDescription::Unclear,
                IndexDescription::NotOurs,
                IndexDescription::Unclear,
            ),
            (
                IndexDescription::NotOurs,
                IndexDescription::Unclear,
                IndexDescription::Unclear,
            ),
        ] {
            let mut listing = Listing::new();
            for described in [first, second] {
                list(&mut listing, identity("same").name, described);
            }
            assert_eq!(listing.into_values().collect::<Vec<_>>(), [listed]);
        }
    }

    #[test]
    fn two_looks_agree_on_what_both_say() {
        let index = |name| IndexDescription::Index(Box::new(identity(name)));
        let changed = IndexDescription::Index(Box::new(IndexIdentity {
            truncated_ms: Some(1),
            ..identity("changed")
        }));
        let listing = |entries: &[(&str, IndexDescription)]| -> Listing {
            entries
                .iter()
                .map(|(name, described)| (identity(name).name, described.clone()))
                .collect()
        };
        let before = listing(&[
            ("same", index("same")),
            ("changed", index("changed")),
            ("gone", index("gone")),
            ("odd", IndexDescription::Unclear),
            ("text", IndexDescription::NotOurs),
        ]);
        let now = listing(&[
            ("same", index("same")),
            ("changed", changed),
            ("new", index("new")),
            ("odd", IndexDescription::Unclear),
            ("text", IndexDescription::NotOurs),
        ]);
        let agreed = agreed_by(&before, &now);
        let names = |names: &[&str]| names.iter().map(|name| identity(name).name).collect();
        assert_eq!(
            agreed.indexes.keys().cloned().collect::<HashSet<_>>(),
            names(&["same"])
        );
        assert_eq!(agreed.unclear, names(&["changed", "gone", "new", "odd"]));
        // The next look agrees with the last one.
        let agreed = agreed_by(&now, &now);
        assert_eq!(
            agreed.indexes.keys().cloned().collect::<HashSet<_>>(),
            names(&["same", "changed", "new"])
        );
        assert_eq!(agreed.unclear, names(&["odd"]));
    }
}
