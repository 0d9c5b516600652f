//! Gives the program the commit that it is built from, and that commit's day.
//!
//! Every build of a commit gets the same. ANNULUS_COMMIT and SOURCE_DATE_EPOCH go before git.
//! Without git, and for sources inside another repository, what is not given is "unknown".

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SECONDS_OF_DAY: i64 = 24 * 60 * 60;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for variable in ["ANNULUS_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let git = GitTree::at(&tree);
    if let Some(path) = git.as_ref().and_then(GitTree::changes_with_head) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let of_git = |arguments: &[&str]| git.as_ref().and_then(|git| git.line(arguments));
    let commit = given("ANNULUS_COMMIT").or_else(|| of_git(&["rev-parse", "--short=12", "HEAD"]));
    let seconds =
        given("SOURCE_DATE_EPOCH").or_else(|| of_git(&["log", "-1", "--format=%ct", "HEAD"]));
    let seconds: Option<i64> = seconds.and_then(|seconds| seconds.parse().ok());
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    let date = seconds.map_or_else(
        || "date unknown".to_owned(),
        |seconds| day(seconds.div_euclid(SECONDS_OF_DAY)),
    );
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=ANNULUS_BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=ANNULUS_VERSION={version} (commit {commit}, {date})");
    println!(
        "cargo:rustc-env=ANNULUS_BUILD_SECONDS={}",
        seconds.unwrap_or(0)
    );
}

/// A variable that is set and not empty.
fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

/// A working tree of git whose root is that of these sources.
struct GitTree<'a> {
    root: &'a Path,
}

impl<'a> GitTree<'a> {
    fn at(root: &'a Path) -> Option<GitTree<'a>> {
        let tree = GitTree { root };
        let top = tree.line(&["rev-parse", "--show-toplevel"])?;
        let is_root = Path::new(&top).canonicalize().ok()? == root.canonicalize().ok()?;
        is_root.then_some(tree)
    }

    /// The one line that git prints; `None` if it fails or is not there.
    fn line(&self, arguments: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        let output = git
            .args(arguments)
            .current_dir(self.root)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// A file that changes whenever HEAD names another commit.
    fn changes_with_head(&self) -> Option<PathBuf> {
        let paths = ["logs/HEAD", "HEAD"].into_iter();
        let mut paths = paths
            .filter_map(|name| self.line(&["rev-parse", "--git-path", name]))
            .map(|path| self.root.join(path));
        paths.find(|path| path.exists())
    }
}

/// A day as `YYYY-MM-DD`, by the number of days since 1 January 1970.
fn day(days: i64) -> String {
    // Years begin in March, so that a leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}
