//! Roles, permissions and identities: `CREATE ROLE`, `GRANT`, `LIST` and their like.

use std::ops::Range;

use crate::secret::Secret;

/// A statement about roles. Users are roles that log in, so `CREATE USER` is here, too.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleStatement {
    /// `CREATE ROLE` or `CREATE USER`.
    Create {
        /// The new role.
        role: String,
        /// Whether `IF NOT EXISTS` is written.
        if_not_exists: bool,
        /// Its attributes.
        attributes: RoleAttributes,
    },
    /// `ALTER ROLE` or `ALTER USER`.
    Alter {
        /// The role.
        role: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
        /// The attributes that change.
        attributes: RoleAttributes,
    },
    /// `DROP ROLE` or `DROP USER`.
    Drop {
        /// The role.
        role: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
    /// `GRANT role TO member`.
    GrantRole {
        /// The role that is granted.
        role: String,
        /// The role that becomes its member.
        member: String,
    },
    /// `REVOKE role FROM member`.
    RevokeRole {
        /// The role that was granted.
        role: String,
        /// The role that is its member no more.
        member: String,
    },
    /// `GRANT permission, .. ON resource TO role`.
    Grant {
        /// The permissions.
        permissions: PermissionNames,
        /// The thing that they are about.
        resource: ResourceName,
        /// The role that gets them.
        role: String,
    },
    /// `REVOKE permission, .. ON resource FROM role`.
    Revoke {
        /// The permissions.
        permissions: PermissionNames,
        /// The thing that they are about.
        resource: ResourceName,
        /// The role that loses them.
        role: String,
    },
    /// `LIST ROLES [OF role] [NORECURSIVE]`.
    ListRoles {
        /// The role whose roles are listed; all roles if `None`.
        of: Option<String>,
        /// Whether roles of roles are listed.
        recursive: bool,
    },
    /// `LIST USERS`.
    ListUsers,
    /// `LIST permission, .. [ON resource] [OF role] [NORECURSIVE]`.
    ListPermissions {
        /// The permissions.
        permissions: PermissionNames,
        /// The thing that they are about; everything if `None`.
        resource: Option<ResourceName>,
        /// The role that has them; all roles if `None`.
        of: Option<String>,
        /// Whether the parents of the resource, and roles of the role, are listed.
        recursive: bool,
    },
    /// `ADD IDENTITY 'identity' TO ROLE role`.
    AddIdentity {
        /// The identity in a client's certificate.
        identity: String,
        /// The role that logs in by it.
        role: String,
        /// Whether `IF NOT EXISTS` is written.
        if_not_exists: bool,
    },
    /// `DROP IDENTITY 'identity'`.
    DropIdentity {
        /// The identity in a client's certificate.
        identity: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
}

impl RoleStatement {
    /// The parts of the statement's text that hold secrets, as offsets in bytes, in their order.
    pub fn secrets(&self) -> &[Range<usize>] {
        match self {
            RoleStatement::Create { attributes, .. } | RoleStatement::Alter { attributes, .. } => {
                &attributes.secrets
            }
            _ => &[],
        }
    }
}

/// The attributes of a role, as far as a statement gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleAttributes {
    /// The password, or its hash.
    pub password: Option<RolePassword>,
    /// Whether the role logs in.
    pub login: Option<bool>,
    /// Whether the role may do everything.
    pub superuser: Option<bool>,
    /// An attribute that is written and not supported, by its words.
    pub unsupported: Option<&'static str>,
    /// The parts of the statement's text that hold secrets, as offsets in bytes, in their order.
    pub secrets: Vec<Range<usize>>,
}

/// A password as a statement gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum RolePassword {
    /// The password itself.
    Plain(Secret<String>),
    /// Its hash, as bcrypt writes it.
    Hashed(Secret<String>),
}

/// The permissions in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionNames {
    /// `ALL [PERMISSIONS]`.
    All,
    /// These permissions, in capitals.
    Some(Vec<String>),
}

/// A thing that permissions are about, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceName {
    /// `ALL KEYSPACES`.
    AllKeyspaces,
    /// `KEYSPACE keyspace`.
    Keyspace(String),
    /// `ALL TABLES IN KEYSPACE keyspace`.
    AllTables(String),
    /// `[TABLE] table`.
    Table(super::TableName),
    /// `ALL ROLES`.
    AllRoles,
    /// `ROLE role`.
    Role(String),
    /// `ALL FUNCTIONS`.
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE keyspace`.
    FunctionsOf(String),
    /// A function, which no user can make here, by its name.
    Function(super::TableName),
    /// A thing of Cassandra's management by JMX, which isn't there.
    Managed,
}
