//! Logins, roles and rights: the roles of clients ([`access`]), the statements that change roles
//! ([`roles`]), the audit log ([`audit`]), and logins by CQL and by HTTP, which that log records.

pub mod access;
pub mod audit;
pub(crate) mod audited_login;
mod http_logins;
pub mod roles;

pub use http_logins::HttpLogins;
