//! The audit log of `annulus serve`: its settings and its file.

use std::path::PathBuf;
use std::sync::Arc;

use node::security::audit::{AuditLog, AuditOptions, EventCategory};

use crate::exit::ProcessFailure;

/// The categories that are logged unless others are chosen: those that are rare.
const CATEGORIES: [EventCategory; 4] = [
    EventCategory::Admin,
    EventCategory::Auth,
    EventCategory::Dcl,
    EventCategory::Ddl,
];

/// The settings that choose what is logged.
const CHOICES: [&str; 3] = ["audit-categories", "audit-keyspaces", "audit-exclude-roles"];

/// The options of the audit log; `None` for none. `chosen` are the names that categories, keyspaces
/// and roles are chosen by, each `None` if nothing is chosen.
///
/// # Errors
/// If a category is unknown, or a choice is made where there is no file.
pub fn options(
    file: Option<PathBuf>,
    chosen: [Option<Vec<String>>; 3],
) -> Result<Option<AuditOptions>, ProcessFailure> {
    let Some(file) = file else {
        let mut choices = CHOICES.iter().zip(&chosen);
        return match choices.find(|(_, chosen)| chosen.is_some()) {
            Some((name, _)) => Err(ProcessFailure::Configuration(format!(
                "{name} chooses what is logged, but audit-log is not set: name the file"
            ))),
            None => Ok(None),
        };
    };
    let [categories, keyspaces, roles_left_out] = chosen;
    Ok(Some(AuditOptions {
        file,
        categories: match categories {
            Some(names) => self::categories(&names)?,
            None => CATEGORIES.to_vec(),
        },
        keyspaces: keyspaces.unwrap_or_default(),
        roles_left_out: roles_left_out.unwrap_or_default(),
    }))
}

fn categories(names: &[String]) -> Result<Vec<EventCategory>, ProcessFailure> {
    if names.is_empty() {
        return Err(ProcessFailure::Configuration(
            "audit-categories names none, so nothing would be logged: leave out audit-log"
                .to_owned(),
        ));
    }
    let read = names.iter().map(|name| {
        EventCategory::of_name(name).ok_or_else(|| {
            let known = EventCategory::EVERY.map(EventCategory::name).join(", ");
            ProcessFailure::Configuration(format!(
                "audit-categories: there is no category '{name}', but {known}"
            ))
        })
    });
    read.collect()
}

/// The names of categories, as the setting has them.
pub fn category_names(options: &AuditOptions) -> String {
    let names = options.categories.iter().map(|category| category.name());
    names.collect::<Vec<_>>().join(",")
}

/// Opens the audit log.
///
/// # Errors
/// If the file can't be opened to be written.
pub fn open(options: AuditOptions) -> Result<Arc<AuditLog>, ProcessFailure> {
    let file = options.file.clone();
    let opened = AuditLog::open(options).map(Arc::new);
    opened.map_err(|error| {
        ProcessFailure::Configuration(format!("audit-log {}: {error}", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn choices_have_defaults_and_need_a_file() {
        let read = |file: Option<&str>, chosen| options(file.map(PathBuf::from), chosen);
        assert!(read(None, [None, None, None]).unwrap().is_none());
        let default = read(Some("a.log"), [None, None, None]).unwrap().unwrap();
        assert_eq!(category_names(&default), "ADMIN,AUTH,DCL,DDL");
        assert!(default.keyspaces.is_empty() && default.roles_left_out.is_empty());
        let choices = [
            chosen(&["query", "Dml"]),
            chosen(&["a", "b"]),
            chosen(&["ingest"]),
        ];
        let options = read(Some("a.log"), choices).unwrap().unwrap();
        assert_eq!(category_names(&options), "QUERY,DML");
        assert_eq!(options.keyspaces, ["a", "b"]);
        assert_eq!(options.roles_left_out, ["ingest"]);
        for (file, chosen, named) in [
            (None, [None, chosen(&["a"]), None], "audit-log is not set"),
            (Some("a"), [chosen(&["ALL"]), None, None], "QUERY"),
            (Some("a"), [chosen(&[]), None, None], "names none"),
        ] {
            let error = read(file, chosen).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
