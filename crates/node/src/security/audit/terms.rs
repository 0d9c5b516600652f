//! The terms of a statement about roles, which a line of the audit log shows next to its text: a
//! long comment may leave no room for them in the part of the text that is shown.

use std::collections::BTreeSet;

use cql::ast::{PermissionNames, ResourceName, RoleAttributes, RoleStatement, TableName};
use serde::Serialize;

use super::names::cut;

/// The terms of a statement about roles, each as far as the statement has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RoleStatementTerms {
    /// The role that is made, changed, granted or listed, or that gets or loses permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The role that becomes a member of `target`, or is one no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The identity in a client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The permissions, each once, with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// The thing that they are about, in the words of a statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superuser: Option<bool>,
}

impl RoleStatementTerms {
    /// The terms of a statement that is read with a keyspace in use.
    pub fn of(statement: &RoleStatement, in_use: Option<&str>) -> RoleStatementTerms {
        let about = |role: &String| RoleStatementTerms {
            target: Some(cut(role).to_owned()),
            ..RoleStatementTerms::default()
        };
        match statement {
            RoleStatement::Create {
                role, attributes, ..
            }
            | RoleStatement::Alter {
                role, attributes, ..
            } => about(role).with(attributes),
            RoleStatement::Drop { role, .. } => about(role),
            RoleStatement::GrantRole { role, member }
            | RoleStatement::RevokeRole { role, member } => RoleStatementTerms {
                member: Some(cut(member).to_owned()),
                ..about(role)
            },
            RoleStatement::Grant {
                permissions,
                resource,
                role,
            }
            | RoleStatement::Revoke {
                permissions,
                resource,
                role,
            } => RoleStatementTerms {
                permissions: Some(names(permissions)),
                resource: Some(resource_text(resource, in_use)),
                ..about(role)
            },
            RoleStatement::ListPermissions {
                permissions,
                resource,
                of,
                ..
            } => RoleStatementTerms {
                permissions: Some(names(permissions)),
                resource: resource
                    .as_ref()
                    .map(|resource| resource_text(resource, in_use)),
                ..of.as_ref().map(about).unwrap_or_default()
            },
            RoleStatement::ListRoles { of, .. } => of.as_ref().map(about).unwrap_or_default(),
            RoleStatement::ListUsers => RoleStatementTerms::default(),
            RoleStatement::AddIdentity { identity, role, .. } => RoleStatementTerms {
                identity: Some(cut(identity).to_owned()),
                ..about(role)
            },
            RoleStatement::DropIdentity { identity, .. } => RoleStatementTerms {
                identity: Some(cut(identity).to_owned()),
                ..RoleStatementTerms::default()
            },
        }
    }

    fn with(self, attributes: &RoleAttributes) -> RoleStatementTerms {
        RoleStatementTerms {
            login: attributes.login,
            superuser: attributes.superuser,
            ..self
        }
    }
}

fn names(permissions: &PermissionNames) -> String {
    match permissions {
        PermissionNames::All => "ALL".to_owned(),
        PermissionNames::Some(names) => {
            let once: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            once.into_iter().collect::<Vec<_>>().join(", ")
        }
    }
}

fn resource_text(resource: &ResourceName, in_use: Option<&str>) -> String {
    let named = |kind: &str, name: &str| format!("{kind} {}", cut(name));
    let qualified = |kind: &str, name: &TableName| match name.keyspace.as_deref().or(in_use) {
        Some(keyspace) => format!("{kind} {}.{}", cut(keyspace), cut(&name.name)),
        None => format!("{kind} {}", cut(&name.name)),
    };
    match resource {
        ResourceName::AllKeyspaces => "ALL KEYSPACES".to_owned(),
        ResourceName::Keyspace(name) => named("KEYSPACE", name),
        ResourceName::AllTables(name) => named("ALL TABLES IN KEYSPACE", name),
        ResourceName::Table(name) => qualified("TABLE", name),
        ResourceName::AllRoles => "ALL ROLES".to_owned(),
        ResourceName::Role(name) => named("ROLE", name),
        ResourceName::AllFunctions => "ALL FUNCTIONS".to_owned(),
        ResourceName::FunctionsOf(name) => named("ALL FUNCTIONS IN KEYSPACE", name),
        ResourceName::Function(name) => qualified("FUNCTION", name),
        ResourceName::Managed => "ALL MBEANS".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_terms_are_told_whatever_the_text_looks_like() {
        for (text, expected) in [
            (
                "CREATE ROLE r WITH PASSWORD = 'secret' AND SUPERUSER = true",
                json!({"target": "r", "superuser": true}),
            ),
            (
                "ALTER USER r WITH PASSWORD 'secret'",
                json!({"target": "r"}),
            ),
            (
                "GRANT MODIFY, SELECT, MODIFY ON t TO r",
                json!({"target": "r", "permissions": "MODIFY, SELECT", "resource": "TABLE used.t"}),
            ),
            (
                "REVOKE ALL ON ALL TABLES IN KEYSPACE s FROM r",
                json!({"target": "r", "permissions": "ALL", "resource": "ALL TABLES IN KEYSPACE s"}),
            ),
            ("GRANT r TO m", json!({"target": "r", "member": "m"})),
            (
                "ADD IDENTITY 'i' TO ROLE r",
                json!({"target": "r", "identity": "i"}),
            ),
            ("DROP IDENTITY 'i'", json!({"identity": "i"})),
            ("LIST ROLES OF r", json!({"target": "r"})),
            ("LIST USERS", json!({})),
        ] {
            let Statement::Role(statement) = parse_statement(text).unwrap().statement else {
                panic!("{text}");
            };
            let terms = RoleStatementTerms::of(&statement, Some("used"));
            assert_eq!(serde_json::to_value(terms).unwrap(), expected, "{text}");
        }
    }
}
