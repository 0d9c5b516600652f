//! Logins and rights for the HTTP API of the index service in the same process: HTTP Basic (RFC
//! 7617) with the name and the password of a role, or the certificate of a client whose identity is
//! a role's. A request with both is the one of the password.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use http_server::{
    AuthorizationRefusal, Authorizer, ClientLogin, LoginKind, RequestOrigin, RequestedOperation,
};
use schema::{Catalog, Permission, Resource, Table};
use storage::Storage;

use super::access::login::{RoleCredentials, role_of_identity};
use super::access::{AuthService, RoleRights};
use super::audit::{AuditLog, EventCategory, LoggedEvent};
use super::audited_login::{LoginAttempt, log_in};
use crate::statement::LoggedInRole;

/// Lets in requests that bear the login of a role with the rights to them.
///
/// Searches need SELECT on the table of the index, repairs ALTER, and settings SELECT on the system
/// table that shows them. Work of the whole service needs a superuser.
pub struct HttpLogins {
    storage: Storage,
    access: Arc<AuthService>,
    audit: Option<Arc<AuditLog>>,
}

impl HttpLogins {
    /// The logins of this storage's roles. Requests that are let in or refused are noted in the
    /// audit log. Where `access` needs no logins, all are let in.
    pub fn new(
        storage: Storage,
        access: Arc<AuthService>,
        audit: Option<Arc<AuditLog>>,
    ) -> HttpLogins {
        HttpLogins {
            storage,
            access,
            audit,
        }
    }

    async fn check(
        &self,
        origin: RequestOrigin<'_>,
        operation: RequestedOperation<'_>,
    ) -> Result<(), AuthorizationRefusal> {
        let mut logged_in = None;
        let admitted = match self.access.requires_login() {
            true => self.check_login(origin, operation, &mut logged_in).await,
            false => Ok(()),
        };
        if let Some(log) = &self.audit {
            let refused = admitted.as_ref().err();
            self.log_request(
                log,
                (origin.client, logged_in.as_deref()),
                operation,
                refused,
            )
            .await?;
        }
        admitted
    }

    /// Checks the login and the rights of a request. `logged_in` becomes the role.
    async fn check_login(
        &self,
        origin: RequestOrigin<'_>,
        operation: RequestedOperation<'_>,
        logged_in: &mut Option<String>,
    ) -> Result<(), AuthorizationRefusal> {
        let role = self.log_in(origin).await?;
        *logged_in = Some(role.to_string());
        let catalog = self.storage.catalog();
        let rights = self.access.rights(&catalog, &role).map_err(refusal)?;
        may(&rights, &catalog, operation)
    }

    /// The role of a request whose statements are checked for its rights one by one; `None` where
    /// no login is needed.
    ///
    /// # Errors
    /// If there is no login, or a wrong one, or it can't be checked now.
    pub(crate) async fn role_of(
        &self,
        origin: RequestOrigin<'_>,
    ) -> Result<Option<LoggedInRole>, AuthorizationRefusal> {
        match self.access.requires_login() {
            true => self.log_in(origin).await.map(Some),
            false => Ok(None),
        }
    }

    /// The role of a request, if it bears a right login.
    async fn login_of(
        &self,
        origin: RequestOrigin<'_>,
    ) -> Result<ClientLogin, AuthorizationRefusal> {
        if !self.access.requires_login() {
            return Ok(ClientLogin::NOT_NEEDED);
        }
        let missing = ClientLogin::missing(LoginKind::Password);
        let role = match self.log_in(origin).await {
            Ok(role) => role,
            Err(busy @ AuthorizationRefusal::Busy(_)) => return Err(busy),
            Err(_) => return Ok(missing),
        };
        let rights = self.access.rights(&self.storage.catalog(), &role);
        Ok(match rights {
            Ok(rights) => ClientLogin {
                is_logged_in: true,
                role: Some(role.to_string()),
                is_superuser: Some(rights.is_superuser()),
                ..missing
            },
            // The role is not there any more.
            Err(_) => missing,
        })
    }

    /// Checks the login of a request.
    async fn log_in(
        &self,
        origin: RequestOrigin<'_>,
    ) -> Result<LoggedInRole, AuthorizationRefusal> {
        let no_login = || {
            let text = "log in as a role of the database: HTTP Basic, its name and its password, \
                        or a client certificate of its identity";
            AuthorizationRefusal::Login(text.to_owned())
        };
        // A request without a name is not logged: there is no guess, and anybody may send a lot of
        // them.
        match origin.authorization {
            Some(authorization) => {
                let credentials = basic(authorization).ok_or_else(no_login)?;
                let attempt = LoginAttempt {
                    address: origin.client,
                    source: origin.client.to_string(),
                    credentials: Ok(credentials),
                    is_always_logged: false,
                };
                let logins = &self.access.logins;
                let role = log_in(&self.storage, logins, self.audit.as_ref(), attempt).await;
                role.map_err(refusal)
            }
            None => {
                let catalog = self.storage.catalog();
                let identity = origin.identity;
                let role = identity.and_then(|identity| role_of_identity(&catalog, identity));
                role.ok_or_else(no_login)
            }
        }
    }

    /// Logs that a request was let in or refused. Those that only see states are not logged if they
    /// are let in, and no request is logged as a login: each bears one.
    async fn log_request(
        &self,
        log: &AuditLog,
        (client, role): (IpAddr, Option<&str>),
        operation: RequestedOperation<'_>,
        refused: Option<&AuthorizationRefusal>,
    ) -> Result<(), AuthorizationRefusal> {
        let (category, kind, keyspace, index) = match operation {
            RequestedOperation::Search { keyspace, index }
            | RequestedOperation::SampleRows { keyspace, index } => {
                (EventCategory::Query, "SEARCH", keyspace, index)
            }
            RequestedOperation::Change { keyspace, index } => {
                (EventCategory::Admin, "REPAIR", keyspace, index)
            }
            RequestedOperation::Operate => (EventCategory::Admin, "OPERATE", "", ""),
            RequestedOperation::See
            | RequestedOperation::SeeState
            | RequestedOperation::SeeSettings => (EventCategory::Other, "SEE", "", ""),
        };
        let [keyspace, index] = [keyspace, index].map(|name| (!name.is_empty()).then_some(name));
        let source = client.to_string();
        let filter = log.filter();
        let (entry, error) = match refused {
            Some(AuthorizationRefusal::Right(_)) if filter.has(EventCategory::Auth) => {
                let entry = LoggedEvent::new(EventCategory::Auth, "UNAUTHORIZED_ATTEMPT");
                (entry, Some(&ErrorKind::Unauthorized))
            }
            // The attempt to log in is logged where it is checked.
            Some(_) => return Ok(()),
            None if matches!(
                operation,
                RequestedOperation::See
                    | RequestedOperation::SeeState
                    | RequestedOperation::SeeSettings
            ) =>
            {
                return Ok(());
            }
            None if !filter.keeps(category, role, keyspace) => return Ok(()),
            None => (LoggedEvent::new(category, kind), None),
        };
        log.check().map_err(refusal)?;
        let catalog = self.storage.catalog();
        let table = keyspace.zip(index);
        let table = table.and_then(|(keyspace, index)| table_of(&catalog, keyspace, index));
        let mut line = Vec::new();
        LoggedEvent {
            role,
            source: &source,
            keyspace,
            table: table.map(|table| table.name.as_str()),
            index,
            error: error.map(ErrorKind::name),
            ..entry
        }
        .put(&mut line);
        log.write_http(line).await.map_err(refusal)
    }
}

fn may(
    rights: &RoleRights,
    catalog: &Catalog,
    operation: RequestedOperation<'_>,
) -> Result<(), AuthorizationRefusal> {
    let (permission, keyspace, index) = match operation {
        RequestedOperation::See | RequestedOperation::SeeState => return Ok(()),
        RequestedOperation::SeeSettings if may_see_settings(rights) => return Ok(()),
        RequestedOperation::SeeSettings => {
            return Err(AuthorizationRefusal::Right(format!(
                "the settings need SELECT on system_views.settings, which the role {} has not",
                rights.role()
            )));
        }
        RequestedOperation::Operate if rights.is_superuser() => return Ok(()),
        RequestedOperation::Operate => {
            return Err(AuthorizationRefusal::Right(
                "only superusers may do this".to_owned(),
            ));
        }
        RequestedOperation::Search { keyspace, index }
        | RequestedOperation::SampleRows { keyspace, index } => {
            (Permission::Select, keyspace, index)
        }
        RequestedOperation::Change { keyspace, index } => (Permission::Alter, keyspace, index),
    };
    match table_of(catalog, keyspace, index) {
        Some(table) => rights
            .need_on_table(permission, table, catalog)
            .map_err(refusal),
        // The handler says that there is no such index. The index service may still have one that
        // was just dropped, whose table is not known any more.
        None if rights.is_superuser() => Ok(()),
        None => Err(AuthorizationRefusal::Right(format!(
            "there is no index {keyspace}.{index}, or the role {} may not use it",
            rights.role()
        ))),
    }
}

/// Whether a role may read the settings by CQL, too.
fn may_see_settings(rights: &RoleRights) -> bool {
    let table = Resource::Table("system_views".to_owned(), "settings".to_owned());
    rights.allow(Permission::Select, &table)
}

fn table_of<'a>(catalog: &'a Catalog, keyspace: &str, index: &str) -> Option<&'a Table> {
    let mut tables = catalog.keyspace(keyspace)?.tables.values();
    let has_index = |table: &&Arc<Table>| {
        table.indexes.contains_key(index) || table.secondary_indexes.contains_key(index)
    };
    let table = tables.find(has_index)?;
    Some(table)
}

/// Reads `Basic` and the base64 of `name:password`.
fn basic(authorization: &str) -> Option<RoleCredentials> {
    let (scheme, encoded) = authorization.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let text = Secret::new(String::from_utf8(decoded).ok()?);
    let (role, password) = text.expose().split_once(':')?;
    Some(RoleCredentials {
        role: role.to_owned(),
        password: Secret::new(password.to_owned()),
    })
}

fn refusal(error: CqlError) -> AuthorizationRefusal {
    match error.kind {
        ErrorKind::BadCredentials => AuthorizationRefusal::Login(error.message),
        ErrorKind::Unauthorized => AuthorizationRefusal::Right(error.message),
        _ => AuthorizationRefusal::Busy(error.message),
    }
}

impl Authorizer for HttpLogins {
    fn admit<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
        operation: RequestedOperation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), AuthorizationRefusal>> + Send + 'a>> {
        Box::pin(self.check(origin, operation))
    }

    fn identify<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ClientLogin, AuthorizationRefusal>> + Send + 'a>> {
        Box::pin(self.login_of(origin))
    }
}

impl std::fmt::Debug for HttpLogins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpLogins")
    }
}

#[cfg(test)]
mod tests {
    use schema::Role;

    use super::*;
    use crate::fixtures;

    #[test]
    fn an_index_that_the_catalog_does_not_know_is_a_superusers() {
        let mut catalog = fixtures::catalog();
        for (name, is_superuser) in [("chief", true), ("reader", false)] {
            let role = Role {
                can_login: true,
                is_superuser,
                ..Role::default()
            };
            catalog.roles.insert(name.to_owned(), Arc::new(role));
        }
        let (keyspace, index) = ("shop", "dropped");
        for (role, may_use) in [("chief", true), ("reader", false)] {
            let rights = RoleRights::of(&catalog, role).unwrap();
            for operation in [
                RequestedOperation::Search { keyspace, index },
                RequestedOperation::SampleRows { keyspace, index },
                RequestedOperation::Change { keyspace, index },
            ] {
                assert_eq!(may(&rights, &catalog, operation).is_ok(), may_use, "{role}");
            }
        }
    }

    #[test]
    fn settings_are_for_those_who_read_them_by_cql() {
        let mut catalog = fixtures::catalog();
        for (name, is_superuser) in [("chief", true), ("operator", false), ("reader", false)] {
            let role = Role {
                can_login: true,
                is_superuser,
                ..Role::default()
            };
            catalog.roles.insert(name.to_owned(), Arc::new(role));
        }
        let select = || [Permission::Select].into_iter().collect();
        let table = Resource::Table("system_views".to_owned(), "settings".to_owned());
        catalog.grant("operator", table, select());
        // A permission on all keyspaces does not hold for those of the system.
        catalog.grant("reader", Resource::AllKeyspaces, select());
        for (role, may_see) in [("chief", true), ("operator", true), ("reader", false)] {
            let rights = RoleRights::of(&catalog, role).unwrap();
            let admitted = may(&rights, &catalog, RequestedOperation::SeeSettings);
            assert_eq!(admitted.is_ok(), may_see, "{role}");
        }
    }

    #[test]
    fn a_basic_login_has_a_name_and_a_password_with_colons() {
        let encoded = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let read = basic(&encoded("ada:love:lace")).unwrap();
        assert_eq!(
            (read.role.as_str(), read.password.expose().as_str()),
            ("ada", "love:lace")
        );
        for wrong in ["", "Basic", "Basic !", "Bearer YWRhOng=", &encoded("ada")] {
            assert!(basic(wrong).is_none(), "{wrong}");
        }
    }
}
