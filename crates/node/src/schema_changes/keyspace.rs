//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{CreateKeyspace, OptionValue};
use cql::error::{CqlError, ErrorKind};
use schema::{Catalog, Keyspace, Resource};

use super::{ApplyOutcome, names, properties, replication};
use crate::statement::CatalogChangeKind;

/// A prepared CREATE KEYSPACE.
#[derive(Clone, Debug)]
pub(super) struct CreateKeyspacePlan {
    keyspace: Keyspace,
    if_not_exists: bool,
}

/// A prepared ALTER KEYSPACE.
#[derive(Clone, Debug)]
pub(super) struct AlterKeyspacePlan {
    name: String,
    if_exists: bool,
    properties: KeyspaceProperties,
}

/// A prepared DROP KEYSPACE.
#[derive(Clone, Debug)]
pub(super) struct DropKeyspacePlan {
    pub name: String,
    pub if_exists: bool,
}

/// The properties that a statement gives for a keyspace; `None` for each that it leaves out.
#[derive(Clone, Debug, Default)]
struct KeyspaceProperties {
    replication: Option<BTreeMap<String, String>>,
    durable_writes: Option<bool>,
    tablets: Option<bool>,
}

impl CreateKeyspacePlan {
    pub fn prepare(create: &CreateKeyspace, data_center: &str) -> Result<Self, CqlError> {
        names::check_keyspace(&create.name)?;
        let properties = KeyspaceProperties::parse(&create.options, &create.name, data_center)?;
        let mut replication = properties
            .replication
            .ok_or_else(|| CqlError::invalid("Missing mandatory option 'replication'"))?;
        replication::complete(&mut replication, None);
        Ok(CreateKeyspacePlan {
            keyspace: Keyspace {
                name: create.name.clone(),
                replication,
                durable_writes: properties.durable_writes.unwrap_or(true),
                // Tablets are off by default. Drivers expect a node to tell them the replicas of
                // tablets while they send requests, and this node does not.
                tablets: properties.tablets.unwrap_or(false),
                types: Default::default(),
                tables: BTreeMap::new(),
            },
            if_not_exists: create.if_not_exists,
        })
    }

    /// The warnings that the replication factor is higher than the number of nodes, and that
    /// tablets do nothing here.
    pub fn warnings(&self) -> Vec<String> {
        let copies = replication::warning(&self.keyspace.name, &self.keyspace.replication);
        let tablets = self.keyspace.tablets.then(|| {
            format!(
                "Tablets of keyspace {} spread nothing, as there is one node; each CDC log gets \
                 streams of its own",
                self.keyspace.name
            )
        });
        copies.into_iter().chain(tablets).collect()
    }

    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let name = &self.keyspace.name;
        if catalog.keyspace(name).is_some() {
            if self.if_not_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(CqlError::new(
                ErrorKind::AlreadyExists {
                    keyspace: name.clone(),
                    table: String::new(),
                },
                format!("Cannot add existing keyspace \"{name}\""),
            ));
        }
        catalog
            .keyspaces
            .insert(name.clone(), Arc::new(self.keyspace.clone()));
        Ok(ApplyOutcome::keyspace(CatalogChangeKind::Created, name))
    }
}

impl AlterKeyspacePlan {
    /// The keyspace that is altered.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn prepare(
        name: &str,
        if_exists: bool,
        options: &[(String, OptionValue)],
        data_center: &str,
    ) -> Result<Self, CqlError> {
        Ok(AlterKeyspacePlan {
            name: name.to_owned(),
            if_exists,
            properties: KeyspaceProperties::parse(options, name, data_center)?,
        })
    }

    /// The warning if the new replication factor is higher than the number of nodes.
    pub fn warning(&self) -> Option<String> {
        replication::warning(&self.name, self.properties.replication.as_ref()?)
    }

    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let Some(keyspace) = catalog.keyspaces.get_mut(&self.name) else {
            return super::missing_keyspace(&self.name, self.if_exists);
        };
        if self
            .properties
            .tablets
            .is_some_and(|tablets| tablets != keyspace.tablets)
        {
            return Err(CqlError::invalid(format!(
                "Cannot switch tablets on or off for the existing keyspace '{}': the CDC streams \
                 of its tables depend on it",
                self.name
            )));
        }
        let keyspace = Arc::make_mut(keyspace);
        if let Some(replication) = &self.properties.replication {
            let mut replication = replication.clone();
            replication::complete(&mut replication, Some(&keyspace.replication));
            keyspace.replication = replication;
        }
        if let Some(durable_writes) = self.properties.durable_writes {
            keyspace.durable_writes = durable_writes;
        }
        Ok(ApplyOutcome::keyspace(
            CatalogChangeKind::Updated,
            &self.name,
        ))
    }
}

impl DropKeyspacePlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        if catalog.keyspaces.remove(&self.name).is_none() {
            return super::missing_keyspace(&self.name, self.if_exists);
        }
        catalog.forget_grants(&Resource::Keyspace(self.name.clone()));
        catalog.forget_grants(&Resource::FunctionsOf(self.name.clone()));
        Ok(ApplyOutcome::keyspace(
            CatalogChangeKind::Dropped,
            &self.name,
        ))
    }
}

impl KeyspaceProperties {
    fn parse(
        options: &[(String, OptionValue)],
        keyspace: &str,
        data_center: &str,
    ) -> Result<Self, CqlError> {
        let mut parsed = KeyspaceProperties::default();
        for (name, value) in options {
            match name.as_str() {
                "replication" => {
                    parsed.replication =
                        Some(replication::parse(name, value, keyspace, data_center)?);
                }
                "durable_writes" => {
                    parsed.durable_writes = Some(properties::boolean(name, value)?);
                }
                "tablets" => parsed.tablets = Some(tablets(name, value)?),
                _ => return Err(properties::unknown(name)),
            }
        }
        Ok(parsed)
    }
}

/// Reads `{'enabled': true, 'initial': 8}` and returns whether tablets are enabled. The storage
/// chooses the number of tablets itself.
fn tablets(name: &str, value: &OptionValue) -> Result<bool, CqlError> {
    let mut enabled = true;
    for (key, text) in properties::map(name, value)? {
        let invalid = || {
            CqlError::config(format!(
                "Invalid value '{text}' for '{key}' of property '{name}'"
            ))
        };
        match key.as_str() {
            "enabled" => enabled = properties::read_boolean(text).ok_or_else(invalid)?,
            "initial" => {
                text.parse::<u32>().map_err(|_| invalid())?;
            }
            _ => {
                return Err(CqlError::config(format!(
                    "Unknown key '{key}' of property '{name}': only 'enabled' and 'initial' are \
                     allowed"
                )));
            }
        }
    }
    Ok(enabled)
}
