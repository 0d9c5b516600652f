//! The tables of `system_auth`: roles, their members and their permissions, as Cassandra has them.
//!
//! Reading them needs a permission on them or on the keyspace, which superusers have. One on all
//! keyspaces is not enough, as in Cassandra.

use std::collections::BTreeSet;

use schema::Permission;
use value::Value;

use super::VirtualTableInputs;
use super::definition::VirtualTable;
use super::record::{NamedValues, record, text};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_auth.roles (
            role text PRIMARY KEY,
            can_login boolean,
            is_superuser boolean,
            member_of set<text>,
            salted_hash text)",
        records: roles,
    },
    VirtualTable {
        cql: "CREATE TABLE system_auth.role_members (
            role text,
            member text,
            PRIMARY KEY (role, member))",
        records: role_members,
    },
    VirtualTable {
        cql: "CREATE TABLE system_auth.role_permissions (
            role text,
            resource text,
            permissions set<text>,
            PRIMARY KEY (role, resource))",
        records: role_permissions,
    },
    VirtualTable {
        cql: "CREATE TABLE system_auth.resource_role_permissons_index (
            resource text,
            role text,
            PRIMARY KEY (resource, role))",
        records: resource_role_permissions,
    },
    VirtualTable {
        cql: "CREATE TABLE system_auth.identity_to_role (
            identity text PRIMARY KEY,
            role text)",
        records: identity_to_role,
    },
];

fn roles(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let roles = source.catalog.roles.iter();
    let records = roles.map(|(name, role)| {
        let member_of = role.member_of.iter().map(text).collect::<Vec<_>>();
        let hash = role.salted_hash.as_ref();
        record([
            ("role", text(name)),
            ("can_login", Value::Boolean(role.can_login)),
            ("is_superuser", Value::Boolean(role.is_superuser)),
        ])
        .with(
            "member_of",
            (!member_of.is_empty()).then_some(Value::Set(member_of)),
        )
        .with("salted_hash", hash.map(|hash| text(hash.expose())))
    });
    records.collect()
}

fn role_members(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let roles = source.catalog.roles.iter();
    let members = roles.flat_map(|(member, of)| {
        let roles = of.member_of.iter();
        roles.map(move |role| record([("role", text(role)), ("member", text(member))]))
    });
    members.collect()
}

fn role_permissions(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let roles = source.catalog.roles.iter();
    let grants = roles.flat_map(|(name, role)| {
        role.grants.iter().map(move |(resource, granted)| {
            // A set is in the order of its elements, and permissions are in one of their own.
            let names: BTreeSet<&str> = granted.iter().map(Permission::name).collect();
            let names = names.into_iter().map(text).collect();
            record([
                ("role", text(name)),
                ("resource", text(resource.path())),
                ("permissions", Value::Set(names)),
            ])
        })
    });
    grants.collect()
}

fn resource_role_permissions(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let roles = source.catalog.roles.iter();
    let grants = roles.flat_map(|(name, role)| {
        let resources = role.grants.keys();
        resources.map(move |resource| {
            record([("resource", text(resource.path())), ("role", text(name))])
        })
    });
    grants.collect()
}

fn identity_to_role(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let roles = source.catalog.roles.iter();
    let identities = roles.flat_map(|(name, role)| {
        let identities = role.identities.iter();
        identities.map(move |identity| record([("identity", text(identity)), ("role", text(name))]))
    });
    identities.collect()
}
