//! The option `replication = {...}`, which says where the copies of a keyspace are placed. There is
//! one node in one data centre, so the option is only checked, stored and shown.

use std::collections::BTreeMap;

use cql::ast::OptionValue;
use cql::error::CqlError;

use super::properties;

const PACKAGE: &str = "org.apache.cassandra.locator.";
const FACTOR: &str = "replication_factor";
/// The factor that is filled in where none is given, as in Cassandra.
const DEFAULT_FACTOR: &str = "1";

/// Checks the option and returns it in the form in which it is stored: the class by its short name.
/// [`complete`] adds a factor where one is needed. `replication_factor` keeps its name, so that it
/// holds for the data centre under any name.
///
/// # Errors
/// A class or an option that neither Cassandra nor ScyllaDB knows, a data centre that does not
/// exist here, or an invalid factor.
pub(super) fn parse(
    name: &str,
    value: &OptionValue,
    keyspace: &str,
    data_center: &str,
) -> Result<BTreeMap<String, String>, CqlError> {
    let mut given: BTreeMap<String, String> =
        properties::map(name, value)?.iter().cloned().collect();
    let class = given
        .remove("class")
        .filter(|class| !class.is_empty())
        .ok_or_else(|| CqlError::config("Missing replication strategy class"))?;
    let class = class.strip_prefix(PACKAGE).unwrap_or(&class);
    match class {
        "SimpleStrategy" => known_only(&given, class, keyspace, &[FACTOR], "")?,
        "NetworkTopologyStrategy" => {
            let remedy = format!(
                ": the one data centre here is '{data_center}', and annulus serve --datacenter \
                 gives it another name"
            );
            known_only(&given, class, keyspace, &[FACTOR, data_center], &remedy)?;
            if given.is_empty() {
                given.insert(FACTOR.to_owned(), DEFAULT_FACTOR.to_owned());
            }
        }
        "EverywhereStrategy" => known_only(&given, class, keyspace, &[], "")?,
        "LocalStrategy" => {
            return Err(CqlError::invalid(
                "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
            ));
        }
        _ => {
            return Err(CqlError::config(format!(
                "Unable to find replication strategy class '{class}': there are SimpleStrategy, \
                 NetworkTopologyStrategy and EverywhereStrategy"
            )));
        }
    }
    for (key, factor) in &given {
        check_factor(key, factor)?;
    }
    given.insert("class".to_owned(), class.to_owned());
    Ok(given)
}

/// Gives a factor to the option if the class needs one and none is given: the earlier one of the
/// keyspace, or the default. Drivers drop a keyspace whose factor they can't read.
pub(super) fn complete(
    replication: &mut BTreeMap<String, String>,
    before: Option<&BTreeMap<String, String>>,
) {
    if replication
        .get("class")
        .is_some_and(|class| class == "SimpleStrategy")
    {
        let earlier = before.and_then(|before| before.get(FACTOR)).cloned();
        replication
            .entry(FACTOR.to_owned())
            .or_insert_with(|| earlier.unwrap_or_else(|| DEFAULT_FACTOR.to_owned()));
    }
}

/// The warning for a replication factor that one node cannot provide; `None` if it can.
pub(super) fn warning(keyspace: &str, replication: &BTreeMap<String, String>) -> Option<String> {
    let most = replication
        .iter()
        .filter(|(key, _)| *key != "class")
        .filter_map(|(_, factor)| factor.parse::<u32>().ok())
        .max()?;
    (most > 1).then(|| {
        format!(
            "Your replication factor {most} for keyspace {keyspace} is higher than the number of \
             nodes 1"
        )
    })
}

fn known_only(
    given: &BTreeMap<String, String>,
    class: &str,
    keyspace: &str,
    known: &[&str],
    remedy: &str,
) -> Result<(), CqlError> {
    match given.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(CqlError::config(format!(
            "Unrecognized strategy option {{{key}}} passed to {class} for keyspace {keyspace}{remedy}"
        ))),
    }
}

fn check_factor(key: &str, factor: &str) -> Result<(), CqlError> {
    if factor.parse::<u32>().is_ok() {
        return Ok(());
    }
    Err(CqlError::config(format!(
        "Replication factor must be numeric and non-negative, found '{factor}' for '{key}'"
    )))
}
