//! The first superuser of `annulus serve`, and `annulus role`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use credentials::files;
use node::security::access::first_superuser;
use storage::{Storage, StorageError, StorageOptions};
use store::Secret;

use crate::exit::ProcessFailure;
use crate::output;

#[derive(Args, Debug)]
pub struct RoleArguments {
    #[command(subcommand)]
    action: OfflineRoleCommand,
}

#[derive(Debug, Subcommand)]
enum OfflineRoleCommand {
    /// Let the owner of a stopped server's directory in again: make a role a superuser with a new
    /// password
    ///
    /// Other roles stay as they are. A role that is not there is not made: where no superuser can
    /// log in, `annulus serve --login` makes one at its start.
    Reset(ResetArguments),
}

#[derive(Args, Debug)]
struct ResetArguments {
    /// The data directory of the stopped server
    #[arg(long, default_value = "annulus-data", value_name = "DIR")]
    data_dir: PathBuf,

    /// The role
    #[arg(default_value = first_superuser::NAME, value_name = "ROLE")]
    role: String,

    /// File with the new password; without it one is made and printed
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Runs `annulus role`.
pub fn run(arguments: RoleArguments) -> anyhow::Result<()> {
    let OfflineRoleCommand::Reset(arguments) = arguments.action;
    let given = arguments.password_file.as_deref();
    let warn = |text: &str| output::complain(format_args!("annulus: {text}"));
    let given = given.map(|path| private_password(path, warn));
    let given = given.transpose()?;
    if !arguments.data_dir.is_dir() {
        return Err(ProcessFailure::Configuration(format!(
            "{} is no directory: name the data directory of the stopped server with --data-dir",
            arguments.data_dir.display()
        ))
        .into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(reset(&arguments.data_dir, &arguments.role, given))
}

async fn reset(directory: &Path, role: &str, given: Option<Secret<String>>) -> anyhow::Result<()> {
    let path = directory.to_owned();
    let options = StorageOptions {
        // Whatever bound the server has, the tables in memory are within it.
        resident_bytes: u64::MAX,
        ..StorageOptions::default()
    };
    let opened = tokio::task::spawn_blocking(move || Storage::open(&path, options));
    let storage = opened.await?.map_err(|error| match error {
        StorageError::Locked(text) => StorageError::Locked(format!(
            "{text}: stop its server first; while it runs, a superuser changes passwords with ALTER ROLE"
        )),
        other => other,
    })?;
    if let Err(error) = check_role(&storage, role) {
        storage.close().await?;
        return Err(error.into());
    }
    let is_made = given.is_none();
    let password = given.unwrap_or_else(first_superuser::random_password);
    let set = first_superuser::set(&storage, role, password.clone()).await;
    storage.close().await?;
    set?;
    match is_made {
        true => output::print(format_args!(
            "{role} is a superuser; its password, shown this once: {}\n",
            password.expose()
        )),
        false => output::print(format_args!(
            "{role} is a superuser with the password of the file\n"
        )),
    }
}

/// The most roles that an error names.
const NAMED_ROLES_MAX: usize = 10;

/// Refuses a name that no role has, as it may be a mistake.
fn check_role(storage: &Storage, role: &str) -> Result<(), ProcessFailure> {
    let catalog = storage.catalog();
    if catalog.roles.contains_key(role) {
        return Ok(());
    }
    if catalog.roles.is_empty() {
        return Err(ProcessFailure::Configuration(format!(
            "there is no role {role}, nor any other: start the server with --login, and it makes \
             the first superuser"
        )));
    }
    let known = catalog.roles.keys().take(NAMED_ROLES_MAX);
    let known: Vec<&str> = known.map(String::as_str).collect();
    let more = match catalog.roles.len() - known.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(ProcessFailure::Configuration(format!(
        "there is no role {role}: name one of {}{more}",
        known.join(", ")
    )))
}

/// The first superuser of a server that needs logins and has none.
pub enum FirstSuperuser {
    /// The role of a file, with its password.
    OfFile {
        path: PathBuf,
        role: String,
        password: Secret<String>,
    },
    /// One with a password that is made and printed.
    Made,
}

impl FirstSuperuser {
    /// The superuser to make: that of the file, if there is one. `None` if a superuser can log in.
    ///
    /// # Errors
    /// If the file can't be used.
    pub fn missing(storage: &Storage, file: Option<&Path>) -> Result<Option<Self>, ProcessFailure> {
        if first_superuser::is_there(&storage.catalog()) {
            return Ok(None);
        }
        let Some(path) = file else {
            return Ok(Some(FirstSuperuser::Made));
        };
        let (role, password) = in_file(path)?;
        Ok(Some(FirstSuperuser::OfFile {
            path: path.to_owned(),
            role,
            password,
        }))
    }

    /// Makes the superuser. A made password is shown once, so the server must listen by now: of a
    /// start that fails later the password would be lost.
    ///
    /// # Errors
    /// If the storage can't be written.
    pub async fn make(self, storage: &Storage) -> anyhow::Result<()> {
        match self {
            FirstSuperuser::OfFile {
                path,
                role,
                password,
            } => {
                first_superuser::set(storage, &role, password).await?;
                tracing::info!(role, file = %path.display(), "made the first superuser");
            }
            FirstSuperuser::Made => {
                let password = first_superuser::random_password();
                first_superuser::set(storage, first_superuser::NAME, password.clone()).await?;
                println!(
                    "annulus made the first superuser, {}; its password, shown this once: {}",
                    first_superuser::NAME,
                    password.expose()
                );
            }
        }
        Ok(())
    }
}

/// Reads a file with a superuser's password. Other users of the machine lose their rights to it,
/// of which `warn` gets a sentence.
fn private_password(
    path: &Path,
    warn: impl FnOnce(&str),
) -> Result<Secret<String>, ProcessFailure> {
    if files::take_from_others(path)? {
        warn(&format!(
            "every user of this machine could read or write {}; now its owner and group can. If others use the \
             machine, change the password",
            path.display()
        ));
    }
    Ok(files::password(path)?)
}

/// Reads a role from the first line of a file, and its password from the second.
fn in_file(path: &Path) -> Result<(String, Secret<String>), ProcessFailure> {
    let text = private_password(path, |text| tracing::warn!("{text}"))?;
    let wrong = |why: &str| ProcessFailure::Configuration(format!("{}: {why}", path.display()));
    let lines: Vec<&str> = text.expose().lines().collect();
    let [role, password] = lines[..] else {
        return Err(wrong(
            "the file of the first superuser has two lines: its name, and its password",
        ));
    };
    if role.is_empty() || password.is_empty() {
        return Err(wrong("neither the name nor the password may be empty"));
    }
    if (role, password) == ("cassandra", "cassandra") {
        return Err(wrong(
            "everybody tries cassandra/cassandra first: choose another password",
        ));
    }
    Ok((role.to_owned(), Secret::new(password.to_owned())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_file_has_a_name_and_a_password_that_not_everybody_knows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("superuser");
        std::fs::write(&path, "").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        with_mode(0o600);
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            in_file(&path)
        };
        let (role, password) = read("ada\nlove lace\n").unwrap();
        assert_eq!(
            (role.as_str(), password.expose().as_str()),
            ("ada", "love lace")
        );
        for text in [
            "",
            "ada",
            "ada\n",
            "ada\n\n",
            "\nsecret",
            "a\nb\nc",
            "cassandra\ncassandra",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
        with_mode(0o644);
        read("ada\nlove lace\n").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "others may not read it any more");
    }
}
