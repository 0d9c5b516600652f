//! Statements about roles, users, permissions and identities.
//!
//! Their errors quote no string, as it could be a password.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::{SyntaxToken, TokenKind};
use super::names::unquoted;
use crate::ast::{
    PermissionNames, ResourceName, RoleAttributes, RolePassword, RoleStatement, Statement,
};
use crate::secret::Secret;

/// The permissions that there are, in capitals. The first three words are Cassandra's own; the last
/// two are ScyllaDB's for index services.
const PERMISSIONS: [&str; 12] = [
    "CREATE",
    "ALTER",
    "DROP",
    "SELECT",
    "MODIFY",
    "AUTHORIZE",
    "DESCRIBE",
    "EXECUTE",
    "UNMASK",
    "SELECT_MASKED",
    "VECTOR_SEARCH_INDEXING",
    "TEXT_SEARCH_INDEXING",
];

impl TokenCursor<'_> {
    /// Whether a statement of this module begins here.
    pub(super) fn at_role_statement(&self) -> bool {
        let first = self.current();
        if ["GRANT", "REVOKE", "LIST"]
            .iter()
            .any(|word| is_word(&first, word))
        {
            return true;
        }
        let Some(second) = self.second() else {
            return false;
        };
        let about = |words: &[&str]| words.iter().any(|word| is_word(&second, word));
        if is_word(&first, "ADD") {
            return about(&["IDENTITY"]);
        }
        let changes = ["CREATE", "ALTER", "DROP"];
        changes.iter().any(|word| is_word(&first, word)) && about(&["ROLE", "USER"])
            || is_word(&first, "DROP") && about(&["IDENTITY"])
    }

    pub(super) fn role_statement(&mut self) -> Parse<Statement> {
        self.hide_strings();
        let statement = if self.eat_word("GRANT")? {
            self.grant()?
        } else if self.eat_word("REVOKE")? {
            self.revoke()?
        } else if self.eat_word("LIST")? {
            self.list()?
        } else if self.eat_word("ADD")? {
            self.add_identity()?
        } else if self.eat_word("CREATE")? {
            self.create_role()?
        } else if self.eat_word("ALTER")? {
            self.alter_role()?
        } else {
            self.expect_word("DROP")?;
            self.drop_role()?
        };
        Ok(Statement::Role(Box::new(statement)))
    }

    fn create_role(&mut self) -> Parse<RoleStatement> {
        let is_user = self.eat_word("USER")?;
        if !is_user {
            self.expect_word("ROLE")?;
        }
        let if_not_exists = self.if_not_exists()?;
        let role = self.role_or_user(is_user)?;
        let attributes = match is_user {
            true => RoleAttributes {
                login: Some(true),
                ..self.user_attributes()?
            },
            false => self.role_attributes()?,
        };
        Ok(RoleStatement::Create {
            role,
            if_not_exists,
            attributes,
        })
    }

    fn alter_role(&mut self) -> Parse<RoleStatement> {
        let is_user = self.eat_word("USER")?;
        if !is_user {
            self.expect_word("ROLE")?;
        }
        let if_exists = self.if_exists()?;
        let role = self.role_or_user(is_user)?;
        let attributes = match is_user {
            true => self.user_attributes()?,
            false => self.role_attributes()?,
        };
        Ok(RoleStatement::Alter {
            role,
            if_exists,
            attributes,
        })
    }

    fn drop_role(&mut self) -> Parse<RoleStatement> {
        if self.eat_word("IDENTITY")? {
            return Ok(RoleStatement::DropIdentity {
                if_exists: self.if_exists()?,
                identity: self.string("an identity in quotes")?,
            });
        }
        let is_user = self.eat_word("USER")?;
        if !is_user {
            self.expect_word("ROLE")?;
        }
        Ok(RoleStatement::Drop {
            if_exists: self.if_exists()?,
            role: self.role_or_user(is_user)?,
        })
    }

    fn add_identity(&mut self) -> Parse<RoleStatement> {
        self.expect_word("IDENTITY")?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.string("an identity in quotes")?;
        self.expect_words(&["TO", "ROLE"])?;
        Ok(RoleStatement::AddIdentity {
            identity,
            role: self.role_name()?,
            if_not_exists,
        })
    }

    fn grant(&mut self) -> Parse<RoleStatement> {
        if self.at_granted_role() {
            let role = self.role_name()?;
            self.expect_word("TO")?;
            let member = self.role_name()?;
            return Ok(RoleStatement::GrantRole { role, member });
        }
        let permissions = self.permissions()?;
        self.expect_word("ON")?;
        let resource = self.resource()?;
        self.expect_word("TO")?;
        Ok(RoleStatement::Grant {
            permissions,
            resource,
            role: self.role_name()?,
        })
    }

    fn revoke(&mut self) -> Parse<RoleStatement> {
        if self.at_granted_role() {
            let role = self.role_name()?;
            self.expect_word("FROM")?;
            let member = self.role_name()?;
            return Ok(RoleStatement::RevokeRole { role, member });
        }
        let permissions = self.permissions()?;
        self.expect_word("ON")?;
        let resource = self.resource()?;
        self.expect_word("FROM")?;
        Ok(RoleStatement::Revoke {
            permissions,
            resource,
            role: self.role_name()?,
        })
    }

    /// Whether a role comes after `GRANT` or `REVOKE`, and no permission. A role may have the name
    /// of a permission: `GRANT select TO bob`.
    fn at_granted_role(&self) -> bool {
        let token = self.current();
        let is_permission = is_word(&token, "ALL") || is_permission(token.text);
        let ends = |token| is_word(&token, "TO") || is_word(&token, "FROM");
        token.kind != TokenKind::Word || !is_permission || self.second().is_some_and(ends)
    }

    fn list(&mut self) -> Parse<RoleStatement> {
        if self.eat_word("USERS")? {
            return Ok(RoleStatement::ListUsers);
        }
        if self.eat_word("ROLES")? {
            return Ok(RoleStatement::ListRoles {
                of: self.of_role()?,
                recursive: !self.eat_word("NORECURSIVE")?,
            });
        }
        let permissions = self.permissions()?;
        let resource = match self.eat_word("ON")? {
            true => Some(self.resource()?),
            false => None,
        };
        Ok(RoleStatement::ListPermissions {
            permissions,
            resource,
            of: self.of_role()?,
            recursive: !self.eat_word("NORECURSIVE")?,
        })
    }

    fn of_role(&mut self) -> Parse<Option<String>> {
        match self.eat_word("OF")? {
            true => self.role_name().map(Some),
            false => Ok(None),
        }
    }

    /// Parses `ALL [PERMISSIONS]`, or permissions with commas between them, each with `PERMISSION`
    /// after it or not, or `PERMISSIONS` after all.
    fn permissions(&mut self) -> Parse<PermissionNames> {
        let names = match self.eat_word("ALL")? {
            true => PermissionNames::All,
            false => PermissionNames::Some(self.separated(|cursor| {
                let token = cursor.current();
                if token.kind != TokenKind::Word || !is_permission(token.text) {
                    return Err(cursor.expected("a permission"));
                }
                cursor.take()?;
                cursor.eat_word("PERMISSION")?;
                Ok(token.text.to_ascii_uppercase())
            })?),
        };
        if !self.eat_word("PERMISSIONS")? {
            self.eat_word("PERMISSION")?;
        }
        Ok(names)
    }

    fn resource(&mut self) -> Parse<ResourceName> {
        // The words that name a kind may also be names of keyspaces and tables.
        let ends_resource = |token: &SyntaxToken<'_>| {
            let words = ["TO", "FROM", "OF", "NORECURSIVE"];
            token.kind == TokenKind::End
                || is_symbol(token, ";")
                || words.iter().any(|word| is_word(token, word))
        };
        let is_name = |token: &SyntaxToken<'_>| is_symbol(token, ".") || ends_resource(token);
        let is_kind = !self.second().is_some_and(|next| is_name(&next));
        if is_kind && self.eat_word("ALL")? {
            return self.all_of_a_kind();
        }
        if is_kind && self.eat_word("KEYSPACE")? {
            return self.name("a keyspace name").map(ResourceName::Keyspace);
        }
        if is_kind && self.eat_word("ROLE")? {
            return self.role_name().map(ResourceName::Role);
        }
        if is_kind && self.eat_word("FUNCTION")? {
            let name = self.qualified_name("a function name")?;
            self.expect_symbol("(")?;
            self.separated_until(")", Self::data_type)?;
            return Ok(ResourceName::Function(name));
        }
        for word in ["MBEAN", "MBEANS"] {
            if is_kind && self.eat_word(word)? {
                self.string("a name in quotes")?;
                return Ok(ResourceName::Managed);
            }
        }
        if is_kind {
            self.eat_word("TABLE")?;
        }
        self.table_name().map(ResourceName::Table)
    }

    fn all_of_a_kind(&mut self) -> Parse<ResourceName> {
        if self.eat_word("KEYSPACES")? {
            Ok(ResourceName::AllKeyspaces)
        } else if self.eat_word("TABLES")? {
            self.expect_words(&["IN", "KEYSPACE"])?;
            self.name("a keyspace name").map(ResourceName::AllTables)
        } else if self.eat_word("ROLES")? {
            Ok(ResourceName::AllRoles)
        } else if self.eat_word("FUNCTIONS")? {
            match self.eat_word("IN")? {
                false => Ok(ResourceName::AllFunctions),
                true => {
                    self.expect_word("KEYSPACE")?;
                    self.name("a keyspace name").map(ResourceName::FunctionsOf)
                }
            }
        } else {
            self.expect_word("MBEANS")?;
            Ok(ResourceName::Managed)
        }
    }

    /// Parses `[WITH attribute AND ..]`.
    fn role_attributes(&mut self) -> Parse<RoleAttributes> {
        let mut attributes = RoleAttributes::default();
        if !self.eat_word("WITH")? {
            return Ok(attributes);
        }
        loop {
            self.role_attribute(&mut attributes)?;
            if !self.eat_word("AND")? {
                return Ok(attributes);
            }
        }
    }

    fn role_attribute(&mut self, attributes: &mut RoleAttributes) -> Parse<()> {
        let start = self.current();
        let is_hash = self.eat_word("HASHED")? || self.eat_word("SALTED")?;
        if is_hash {
            if !self.eat_word("PASSWORD")? {
                self.expect_word("HASH")?;
            }
            self.expect_symbol("=")?;
            return self.password(attributes, RolePassword::Hashed);
        }
        if self.eat_word("PASSWORD")? {
            self.expect_symbol("=")?;
            return self.password(attributes, RolePassword::Plain);
        }
        for (word, superuser) in [("LOGIN", false), ("SUPERUSER", true)] {
            if self.eat_word(word)? {
                self.expect_symbol("=")?;
                let value = self.boolean()?;
                let attribute = match superuser {
                    true => &mut attributes.superuser,
                    false => &mut attributes.login,
                };
                if attribute.replace(value).is_some() {
                    return Err(
                        self.error_at(&start, format!("Multiple definition for property '{word}'"))
                    );
                }
                return Ok(());
            }
        }
        if self.eat_word("OPTIONS")? {
            self.expect_symbol("=")?;
            let start = self.current().start;
            self.option_map()?;
            // Plugins of Cassandra take passwords of other systems here.
            attributes.secrets.push(start..self.end_of_taken());
            attributes.unsupported = Some("OPTIONS");
            return Ok(());
        }
        self.expect_word("ACCESS")?;
        self.access(attributes)
    }

    /// Parses what follows `ACCESS`: to data centers, or from ranges of addresses.
    fn access(&mut self, attributes: &mut RoleAttributes) -> Parse<()> {
        let (words, things) = match self.eat_word("TO")? {
            true => ("ACCESS TO DATACENTERS", "DATACENTERS"),
            false => {
                self.expect_word("FROM")?;
                ("ACCESS FROM CIDRS", "CIDRS")
            }
        };
        if self.eat_word("ALL")? {
            return self.expect_word(things);
        }
        self.expect_word(things)?;
        self.expect_symbol("{")?;
        self.separated_until("}", |cursor| cursor.string("a name in quotes"))?;
        attributes.unsupported = Some(words);
        Ok(())
    }

    /// Parses `[WITH [HASHED] PASSWORD 'password'] [SUPERUSER | NOSUPERUSER]`.
    fn user_attributes(&mut self) -> Parse<RoleAttributes> {
        let mut attributes = RoleAttributes::default();
        if self.eat_word("WITH")? {
            let is_hash = self.eat_word("HASHED")?;
            self.expect_word("PASSWORD")?;
            let form = match is_hash {
                true => RolePassword::Hashed,
                false => RolePassword::Plain,
            };
            self.password(&mut attributes, form)?;
        }
        if self.eat_word("SUPERUSER")? {
            attributes.superuser = Some(true);
        } else if self.eat_word("NOSUPERUSER")? {
            attributes.superuser = Some(false);
        }
        Ok(attributes)
    }

    fn password(
        &mut self,
        attributes: &mut RoleAttributes,
        form: impl Fn(Secret<String>) -> RolePassword,
    ) -> Parse<()> {
        let start = self.current();
        let password = form(Secret::new(self.string("a password in quotes")?));
        attributes.secrets.push(start.start..self.end_of_taken());
        match attributes.password.replace(password) {
            None => Ok(()),
            Some(_) => Err(self.error_at(
                &start,
                "Options 'password' and 'hashed password' are mutually exclusive, and each is given once",
            )),
        }
    }

    /// A name of a role: unquoted in lower case, in double or single quotes as written.
    fn role_name(&mut self) -> Parse<String> {
        match self.current().kind {
            TokenKind::String | TokenKind::DollarString => self.string("a role"),
            _ => self.name("a role"),
        }
    }

    /// A role, or a user, whose name keeps its case also without quotes.
    fn role_or_user(&mut self, is_user: bool) -> Parse<String> {
        if !is_user {
            return self.role_name();
        }
        let token = self.current();
        match token.kind {
            TokenKind::String | TokenKind::DollarString => self.string("a user name"),
            TokenKind::QuotedName => Err(self.error_here(
                "double quotes can't stand around user names: use single quotes, or CREATE ROLE",
            )),
            _ => {
                self.name("a user name")?;
                Ok(token.text.to_owned())
            }
        }
    }

    fn string(&mut self, what: &'static str) -> Parse<String> {
        let token = self.current();
        match token.kind {
            TokenKind::String | TokenKind::DollarString => {
                self.take()?;
                Ok(unquoted(&token))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn boolean(&mut self) -> Parse<bool> {
        if self.eat_word("TRUE")? {
            return Ok(true);
        }
        match self.eat_word("FALSE")? {
            true => Ok(false),
            false => Err(self.unexpected()),
        }
    }
}

fn is_permission(word: &str) -> bool {
    let mut permissions = PERMISSIONS.iter();
    permissions.any(|permission| permission.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse_statement;

    fn parsed(text: &str) -> RoleStatement {
        match parse_statement(text).unwrap().statement {
            Statement::Role(statement) => *statement,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn roles_have_attributes_and_names_in_three_spellings() {
        let statement = parsed(
            "CREATE ROLE IF NOT EXISTS \"A b\" WITH LOGIN = true AND SUPERUSER = FALSE AND PASSWORD = 'it''s' \
             AND ACCESS TO ALL DATACENTERS;",
        );
        let secret = 87..94;
        let expected = RoleStatement::Create {
            role: "A b".to_owned(),
            if_not_exists: true,
            attributes: RoleAttributes {
                password: Some(RolePassword::Plain(Secret::new("it's".to_owned()))),
                login: Some(true),
                superuser: Some(false),
                unsupported: None,
                secrets: vec![secret],
            },
        };
        assert_eq!(statement, expected);
        let name = |text: &str| match parsed(text) {
            RoleStatement::Drop { role, .. } => role,
            other => panic!("{other:?}"),
        };
        assert_eq!(name("DROP ROLE Mixed"), "mixed");
        assert_eq!(name("DROP ROLE 'Mixed'"), "Mixed");
        assert_eq!(name("DROP USER Mixed"), "Mixed");
    }

    #[test]
    fn a_role_may_have_the_name_of_a_permission() {
        let granted = RoleStatement::GrantRole {
            role: "select".to_owned(),
            member: "bob".to_owned(),
        };
        assert_eq!(parsed("GRANT 'select' TO bob"), granted);
        let permissions = parsed("GRANT select, modify PERMISSIONS ON role.t TO role");
        let RoleStatement::Grant {
            permissions,
            resource,
            role,
        } = permissions
        else {
            panic!("{permissions:?}");
        };
        let names = ["SELECT", "MODIFY"].map(str::to_owned).to_vec();
        assert_eq!(permissions, PermissionNames::Some(names));
        assert!(
            matches!(resource, ResourceName::Table(name) if name.keyspace.as_deref() == Some("role"))
        );
        assert_eq!(role, "role");
    }

    #[test]
    fn no_error_and_no_debug_text_quotes_a_password() {
        for text in [
            "CREATE ROLE r WITH PASSWORD = 7 'hunter2'",
            "CREATE ROLE r PASSWORD 'hunter2'",
            "CREATE ROLE r WITH PASSWORD 'hunter2'",
            "CREATE ROLE r WITH LOGIN = 'hunter2'",
            "CREATE ROLE r WITH PASSWORD = $$hunter2$$ 'hunter2'",
            "ALTER USER r WITH PASSWORD 'hunter2' 'hunter2'",
            "CREATE ROLE r WITH PASSWORD = \"hunter2\"",
            "CREATE ROLE r WITH PASSWORD = hunter2",
            "CREATE ROLE r WITH PASSWORD = 'hunter2",
            "CREATE ROLE r WITH PASSWORD = $$hunter2",
            "CREATE ROLE r WITH PASSWORD = \"hunter2",
            "CRETE ROLE r WITH PASSWORD = 'hunter2'",
            "UPDATE role SET password 'hunter2'",
            "UPDATE role SET password = hunter2",
            "SELECT role WITH PASSWORD = 'hunter2'",
            "INSERT INTO role (password) 'hunter2'",
            "CREATE TABLE role (password select)",
        ] {
            let error = parse_statement(text).unwrap_err().to_string();
            assert!(
                !error.contains("hunter2") && !error.contains("'select'"),
                "{error}"
            );
        }
        for text in [
            "/* ä */ CREATE ROLE password WITH PASSWORD = 'se''c' AND LOGIN = true",
            "ALTER ROLE r WITH OPTIONS = {'key': $$sec$$} /* */ AND HASHED PASSWORD='sec';",
            "ALTER USER r WITH PASSWORD $$sec$$",
        ] {
            let statement = parsed(text);
            let secrets = statement.secrets().iter();
            let shown = secrets.map(|secret| text[secret.clone()].to_owned());
            let shown = shown.collect::<Vec<_>>().join(" and ");
            let expected = ["'se''c'", "{'key': $$sec$$} /* */ and 'sec'", "$$sec$$"];
            assert!(expected.contains(&shown.as_str()), "{shown}");
        }
        let statement = parsed("CREATE ROLE r WITH HASHED PASSWORD = 'hunter2'");
        assert!(!format!("{statement:?}").contains("hunter2"));
    }
}
