//! The first superuser of `annulus serve`, and `annulus role`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use credentials::files;
use node::access::first_superuser;
use storage::{Storage, StorageError, StorageOptions};
use store::Secret;

use crate::exit::Failure;

#[derive(Args, Debug)]
pub struct RoleArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let the owner of a stopped server's directory in again: make a role a superuser with a new
    /// password
    ///
    /// The role is made if it is not there. Other roles stay as they are.
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
    let Action::Reset(arguments) = arguments.action;
    let given = arguments.password_file.as_deref();
    let given = given.map(files::password).transpose()?;
    if !arguments.data_dir.is_dir() {
        return Err(Failure::Configuration(format!(
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
    let is_made = given.is_none();
    let password = given.unwrap_or_else(first_superuser::random_password);
    let set = first_superuser::set(&storage, role, password.clone()).await;
    storage.close().await?;
    set?;
    match is_made {
        true => println!(
            "{role} is a superuser; its password, shown this once: {}",
            password.expose()
        ),
        false => println!("{role} is a superuser with the password of the file"),
    }
    Ok(())
}

/// Makes the first superuser of a server that asks for logins and has none: that of the file, or
/// one with a password that is printed.
///
/// # Errors
/// If the file can't be used or the storage can't be written.
pub async fn make_first(storage: &Storage, file: Option<&Path>) -> anyhow::Result<()> {
    if first_superuser::is_there(&storage.catalog()) {
        return Ok(());
    }
    if let Some(path) = file {
        let (role, password) = in_file(path)?;
        first_superuser::set(storage, &role, password).await?;
        tracing::info!(role, file = %path.display(), "made the first superuser");
        return Ok(());
    }
    let password = first_superuser::random_password();
    first_superuser::set(storage, first_superuser::NAME, password.clone()).await?;
    println!(
        "annulus made the first superuser, {}; its password, shown this once: {}",
        first_superuser::NAME,
        password.expose()
    );
    Ok(())
}

/// Reads a role from the first line of a file, and its password from the second.
fn in_file(path: &Path) -> Result<(String, Secret<String>), Failure> {
    let text = files::password(path)?;
    let wrong = |why: &str| Failure::Configuration(format!("{}: {why}", path.display()));
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
    use super::*;

    #[test]
    fn the_file_has_a_name_and_a_password_that_not_everybody_knows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("superuser");
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
    }
}
