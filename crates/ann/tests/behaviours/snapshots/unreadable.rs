//! A file of vectors that is cut short while it is mapped gives an error that names it, in its own
//! index alone.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ann::{IndexError, NeighbourIndex, SearchOptions, VectorsState};

use super::damage::{DIMENSIONS, saved};
use super::{answers, assert_alike, open_verified};
use crate::data::Rng;

/// The variable that is set in the child that reads a file of its own.
const CHILD: &str = "ANN_TEST_READS_BEYOND_A_FILE";

fn cut(directory: &Path) {
    let path = directory.join("vectors-00000");
    let file = File::options().write(true).open(path);
    let file = file.expect("the file");
    file.set_len(0).expect("it is cut short");
}

fn query() -> Vec<f32> {
    Rng(77).vector(DIMENSIONS)
}

/// A call that reads vectors, with its name. Each of them may be the first.
type Reader = (&'static str, fn(&NeighbourIndex) -> Result<(), String>);

const READERS: [Reader; 5] = [
    ("a walk", |index| refused(index.search(&query(), 10))),
    ("a scan", |index| {
        refused(index.explain(&query(), &SearchOptions::new(usize::MAX)))
    }),
    ("a batch", |index| {
        refused(index.search_batch(&[&query()], &SearchOptions::new(1)))
    }),
    ("a save", |index| {
        let directory = tempfile::tempdir().expect("a directory");
        let saved = index.save(directory.path());
        NeighbourIndex::open(directory.path(), *index.options()).expect_err("it has no header");
        saved.map(drop).map_err(|error| error.to_string())
    }),
    ("changes", |index| {
        for id in 0..400 {
            // The index is to be built anew in any case.
            let _ = index.replace(id, &Rng(u64::from(id)).vector(DIMENSIONS));
        }
        refused(index.search(&query(), 10))
    }),
];

fn refused<T>(answer: Result<T, IndexError>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(error @ IndexError::Unreadable(_)) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn readers_of_a_truncated_file_report_it() {
    let (index, directory) = saved();
    let sound = open_verified(directory.path(), &index);
    for (name, read) in READERS {
        let other = tempfile::tempdir().expect("a directory");
        // The other snapshot has files of its own: they are copied, as the next save would link
        // them.
        for file in ["graph", "vectors-00000"] {
            let from = directory.path().join(file);
            std::fs::copy(from, other.path().join(file)).expect("copy");
        }
        let opened = open_verified(other.path(), &index);
        assert_alike(&opened, &sound);
        cut(other.path());
        let path = other.path().join("vectors-00000");
        let path = path.to_str().expect("a name");
        let error = read(&opened).expect_err(name);
        assert!(error.contains(path), "{name}: {error}");
        // It stays unreadable, for everybody.
        let VectorsState::Damaged(error) = opened.vectors_state() else {
            panic!("{name}: {}", opened.vectors_state());
        };
        assert!(error.to_string().contains(path), "{name}: {error}");
        for (again, read) in READERS {
            read(&opened).expect_err(again);
        }
        let state = opened.verify_vectors(|| true);
        assert!(matches!(state, VectorsState::Damaged(_)), "{name}: {state}");
    }
    assert_alike(&sound, &index);
    assert!(matches!(sound.vectors_state(), VectorsState::Verified));
}

#[test]
fn concurrent_readers_all_report_the_fault() {
    let (index, directory) = saved();
    let opened = open_verified(directory.path(), &index);
    cut(directory.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    opened.search(&query(), 50).expect_err("refused");
                }
            });
        }
    });
    assert!(!answers(&index).is_empty());
}

/// Runs as the child: an index maps a file, and a file of somebody else is read beyond its end.
#[test]
fn reads_beyond_a_file_of_its_own() {
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (index, directory) = saved();
    let _opened = open_verified(directory.path(), &index);
    let file = tempfile::tempfile().expect("a file");
    let (null, flags) = (std::ptr::null_mut(), MapFlags::SHARED);
    // SAFETY: the system chooses the address. The test is about the read that fails.
    unsafe {
        let start = mmap(null, 4096, ProtFlags::READ, flags, &file, 0).expect("a mapping");
        start.cast::<u8>().read_volatile();
    }
}

#[test]
fn a_fault_that_is_not_ours_ends_the_process_as_before() {
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "snapshots::unreadable::reads_beyond_a_file_of_its_own",
        ])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the child");
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}
