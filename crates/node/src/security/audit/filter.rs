//! The choice of what is logged.

use std::collections::BTreeSet;

use super::AuditOptions;

/// The keyspaces that are left out unless they are named, as in Cassandra: drivers read them at
/// every connection.
const OF_DRIVERS: [&str; 3] = ["system", "system_schema", "system_virtual_schema"];

/// The kind of a logged event. All but `ADMIN`, which is ScyllaDB's, are Cassandra's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventCategory {
    /// Work of the index service that an operator starts or stops by HTTP.
    Admin,
    /// Logins, and refusals for want of a right.
    Auth,
    /// Statements about roles, permissions and identities.
    Dcl,
    /// Changes of the schema, and TRUNCATE.
    Ddl,
    /// INSERT, UPDATE, DELETE and batches.
    Dml,
    /// Texts that are no statement, or none that is supported.
    Error,
    /// USE and DESCRIBE.
    Other,
    /// Statements that are prepared. Their executions are in their own categories.
    Prepare,
    /// SELECT, and searches by HTTP.
    Query,
}

impl EventCategory {
    /// Every category, in the order of their names.
    pub const EVERY: [EventCategory; 9] = [
        EventCategory::Admin,
        EventCategory::Auth,
        EventCategory::Dcl,
        EventCategory::Ddl,
        EventCategory::Dml,
        EventCategory::Error,
        EventCategory::Other,
        EventCategory::Prepare,
        EventCategory::Query,
    ];

    /// The name in settings and in the log.
    pub fn name(self) -> &'static str {
        match self {
            EventCategory::Admin => "ADMIN",
            EventCategory::Auth => "AUTH",
            EventCategory::Dcl => "DCL",
            EventCategory::Ddl => "DDL",
            EventCategory::Dml => "DML",
            EventCategory::Error => "ERROR",
            EventCategory::Other => "OTHER",
            EventCategory::Prepare => "PREPARE",
            EventCategory::Query => "QUERY",
        }
    }

    /// The category of this name, in capitals or not.
    pub fn of_name(name: &str) -> Option<EventCategory> {
        let mut every = EventCategory::EVERY.into_iter();
        every.find(|category| category.name().eq_ignore_ascii_case(name))
    }
}

/// The choice of what is logged.
#[derive(Debug)]
pub(crate) struct EventFilter {
    categories: BTreeSet<EventCategory>,
    /// Empty for all but [`OF_DRIVERS`].
    keyspaces: BTreeSet<String>,
    roles_left_out: BTreeSet<String>,
}

impl EventFilter {
    pub fn new(options: AuditOptions) -> EventFilter {
        EventFilter {
            categories: options.categories.into_iter().collect(),
            keyspaces: options.keyspaces.into_iter().collect(),
            roles_left_out: options.roles_left_out.into_iter().collect(),
        }
    }

    /// Whether events of a category are logged at all.
    pub fn has(&self, category: EventCategory) -> bool {
        self.categories.contains(&category)
    }

    /// Whether an event that succeeds or fails by itself is logged: one of a category, of a role,
    /// about the data in a keyspace if it is about any. For refused logins and refusals for want of
    /// a right, only the category counts.
    pub fn keeps(
        &self,
        category: EventCategory,
        role: Option<&str>,
        keyspace: Option<&str>,
    ) -> bool {
        self.has(category)
            && role.is_none_or(|role| !self.roles_left_out.contains(role))
            && keyspace.is_none_or(|keyspace| match self.keyspaces.is_empty() {
                true => !OF_DRIVERS.contains(&keyspace),
                false => self.keyspaces.contains(keyspace),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(keyspaces: &[&str], roles_left_out: &[&str]) -> EventFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        EventFilter::new(AuditOptions {
            file: "audit.log".into(),
            categories: vec![EventCategory::Dml, EventCategory::Query],
            keyspaces: owned(keyspaces),
            roles_left_out: owned(roles_left_out),
        })
    }

    #[test]
    fn categories_keyspaces_and_roles_are_chosen() {
        let all = filter(&[], &[]);
        assert!(all.keeps(EventCategory::Dml, None, Some("shop")));
        assert!(all.keeps(EventCategory::Query, Some("app"), None));
        assert!(all.keeps(EventCategory::Query, None, Some("system_auth")));
        assert!(!all.keeps(EventCategory::Query, None, Some("system")));
        assert!(!all.keeps(EventCategory::Ddl, None, Some("shop")));
        let some = filter(&["shop", "system"], &["ingest"]);
        assert!(some.keeps(EventCategory::Query, Some("app"), Some("system")));
        assert!(!some.keeps(EventCategory::Query, Some("app"), Some("other")));
        assert!(!some.keeps(EventCategory::Query, Some("ingest"), Some("shop")));
    }

    #[test]
    fn a_category_has_its_name() {
        for category in EventCategory::EVERY {
            assert_eq!(EventCategory::of_name(category.name()), Some(category));
        }
        assert_eq!(EventCategory::of_name("dml"), Some(EventCategory::Dml));
        assert_eq!(EventCategory::of_name("ALL"), None);
        assert!(EventCategory::EVERY.is_sorted_by_key(|category| category.name()));
    }
}
