//! Runs a test as a process of its own, on a disk that can lose power or run full. See
//! `tests/shim/disk.c`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::time::UNIX_EPOCH;

use test_support::Running;

use crate::support::STARTING;

/// Starts a process while no storage is being opened. See [`STARTING`].
fn start(command: &mut Command) -> io::Result<Child> {
    let _held = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Compiles the shim.
pub fn compile_shim(into: &Path) -> PathBuf {
    let library = into.join("disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/disk.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .args(["-ldl", "-lpthread"]);
    let status = start(&mut compiler)
        .expect("this test needs a C compiler as `cc`: install gcc or clang")
        .wait()
        .expect("it ends");
    assert!(status.success(), "the shim compiles");
    library
}

/// Runs one ignored test of this binary as a process of its own. The name has its module before it.
pub fn spawn_test(name: &str, environment: &[(&str, &Path)]) -> Running {
    let program = std::env::current_exe().expect("a test knows its program");
    let mut test = Command::new(program);
    test.args([
        name,
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ])
    .envs(environment.iter().copied())
    .stdout(Stdio::null());
    Running(start(&mut test).expect("the process starts"))
}

/// The shadow that the shim keeps of a directory: the content that is on the disk for sure.
pub struct Shadow(PathBuf);

fn key_of(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let born = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!(
        "{}-{}-{}",
        metadata.ino(),
        born.as_secs(),
        born.subsec_nanos()
    ))
}

impl Shadow {
    /// Begins a shadow with all of `root` on the disk.
    pub fn begin(shadow: &Path, root: &Path) -> Shadow {
        fs::create_dir_all(shadow).expect("a directory");
        let shadow = Shadow(shadow.to_path_buf());
        shadow.keep(root);
        shadow
    }

    fn keep(&self, path: &Path) {
        let key = key_of(path).expect("the file system knows times of birth");
        if !path.is_dir() {
            fs::copy(path, self.0.join(format!("{key}.data"))).expect("a copy");
            return;
        }
        let mut names = String::new();
        for entry in fs::read_dir(path).expect("a directory") {
            let entry = entry.expect("an entry");
            let key = key_of(&entry.path()).expect("a key");
            names += &format!(
                "{key} {}\n",
                entry.file_name().to_str().expect("plain names")
            );
            self.keep(&entry.path());
        }
        fs::write(self.0.join(format!("{key}.dir")), names).expect("written");
    }

    /// Makes a copy of `root` as after a power cut. It has the content that is on the disk for
    /// sure, and of the pages that were written but not synced those for which `keep_page` returns
    /// `true`.
    pub fn cut(&self, root: &Path, image: &Path, keep_page: &mut dyn FnMut() -> bool) {
        let lost_and_found = keys_below(root);
        let key = key_of(root).expect("the root is there");
        self.rebuild(&key, image, &lost_and_found, keep_page);
    }

    fn rebuild(
        &self,
        key: &str,
        image: &Path,
        real: &HashMap<String, PathBuf>,
        keep_page: &mut dyn FnMut() -> bool,
    ) {
        fs::create_dir_all(image).expect("a directory");
        for (name, key) in self.names(key) {
            let target = image.join(&name);
            let data = self.0.join(format!("{key}.data"));
            let is_directory = real.get(&key).map_or_else(
                || self.0.join(format!("{key}.dir")).exists(),
                |path| path.is_dir(),
            );
            if is_directory {
                self.rebuild(&key, &target, real, keep_page);
            } else if data.exists() {
                copy_sparse(&data, &target);
                if let Some(real) = real.get(&key) {
                    tear(real, &target, keep_page);
                }
            } else {
                // The name was synced, but never the file.
                fs::write(&target, []).expect("an empty file");
            }
        }
    }

    fn names(&self, key: &str) -> BTreeMap<String, String> {
        let mut names = BTreeMap::new();
        for kind in ["dir", "link"] {
            let text = fs::read_to_string(self.0.join(format!("{key}.{kind}"))).unwrap_or_default();
            // A last line without its end was being written at the kill, and does not count.
            let lines = text
                .split_inclusive('\n')
                .filter_map(|line| line.strip_suffix('\n'));
            for (key, name) in lines.filter_map(|line| line.split_once(' ')) {
                names.insert(name.to_owned(), key.to_owned());
            }
        }
        names
    }
}

fn keys_below(root: &Path) -> HashMap<String, PathBuf> {
    let mut keys = HashMap::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if let Some(key) = key_of(&path) {
                keys.insert(key, path.clone());
            }
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    keys
}

fn copy_sparse(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("--sparse=always").args([from, to]);
    let status = start(&mut copy).expect("cp runs").wait().expect("it ends");
    assert!(status.success(), "the copy succeeds");
}

/// Copies pages that were written but not synced, as they may be on the disk nevertheless.
fn tear(real: &Path, image: &Path, keep_page: &mut dyn FnMut() -> bool) {
    const PAGE: usize = 4096;
    let written = fs::read(real).expect("it can be read");
    let synced = fs::read(image).expect("it can be read");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(image)
        .expect("it opens");
    for (number, (new, old)) in written.chunks(PAGE).zip(synced.chunks(PAGE)).enumerate() {
        let length = new.len().min(old.len());
        if new[..length] != old[..length] && keep_page() {
            file.write_all_at(&new[..length], (number * PAGE) as u64)
                .expect("it is written");
        }
    }
}
