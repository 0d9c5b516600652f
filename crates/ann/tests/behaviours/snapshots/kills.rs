//! A process that is killed while it saves leaves the last good snapshot.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ann::{NeighbourIndex, NeighbourIndexOptions, SnapshotError};

use super::{answers, assert_alike, open_verified};
use crate::data::Rng;
use crate::oracle::build;

/// The variable with the directory that the child saves to; unset in the parent.
const DIRECTORY: &str = "ANN_TEST_SAVES_INTO";
const DIMENSIONS: usize = 256;
const VECTORS: u32 = 1_200;
const KILLS: u64 = 12;

fn options() -> NeighbourIndexOptions {
    NeighbourIndexOptions {
        max_connections: 4,
        build_beam_width: 8,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    }
}

/// The vector of an id in a generation: all ids below the generation's number have been replaced.
fn vector(id: u32, generation: u32) -> Vec<f32> {
    let version = u64::from(id < generation);
    Rng(u64::from(id) << 8 | version).vector(DIMENSIONS)
}

/// Runs as the child: changes one vector, saves, publishes, again and again.
#[test]
fn saves_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let vectors: Vec<_> = (0..VECTORS).map(|id| vector(id, 0)).collect();
    let index = build(options(), &vectors);
    for generation in 1..VECTORS {
        let id = generation - 1;
        index.replace(id, &vector(id, generation)).expect("held");
        let unfinished = directory.join("unfinished");
        fs::create_dir(&unfinished).expect("a directory");
        index.save(&unfinished).expect("save");
        let finished = directory.join(generation.to_string());
        fs::rename(&unfinished, &finished).expect("rename");
        let _ = fs::remove_dir_all(directory.join((generation.saturating_sub(2)).to_string()));
    }
}

/// The latest generation that was published.
fn latest(directory: &Path) -> Option<u32> {
    let entries = fs::read_dir(directory).expect("the directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).max()
}

#[test]
fn the_last_snapshot_survives_a_kill_at_any_time() {
    for kill in 0..KILLS {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "snapshots::kills::saves_until_it_is_killed"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the child");
        // `test-support` would bring a runtime, of which the engine knows nothing.
        let started = Instant::now();
        while latest(directory.path()).is_none() && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The kill comes at any time of a save, of the renaming, or between them.
        std::thread::sleep(Duration::from_micros(1_700 * kill));
        child.kill().expect("the child runs");
        child.wait().expect("the child");

        let generation = latest(directory.path()).expect("one was published");
        let path = directory.path().join(generation.to_string());
        let index = NeighbourIndex::open(&path, options()).expect("a sound snapshot");
        let sound = open_verified(&path, &index);
        assert_eq!(sound.len(), VECTORS as usize);
        for id in (0..VECTORS).step_by(7).chain([generation - 1, generation]) {
            let nearest = sound.search(&vector(id, generation), 1).expect("search");
            assert_eq!(nearest[0].id, id);
            assert!(nearest[0].distance < 1e-6, "{id} is of another generation");
        }
        // An unfinished snapshot is refused, unless it was finished and only not renamed yet.
        match NeighbourIndex::open(&directory.path().join("unfinished"), options()) {
            Ok(next) => assert_eq!(answers(&next).len(), answers(&sound).len()),
            Err(error) => assert!(
                matches!(
                    error,
                    SnapshotError::NotASnapshot { .. } | SnapshotError::Io { .. }
                ),
                "{error}"
            ),
        }
    }
}

/// Checks the states of a directory after each write of a save, in their order, and those that a
/// crash of the machine may leave, where some of it was not on the disk yet.
#[test]
fn an_unfinished_snapshot_is_refused() {
    let vectors: Vec<_> = (0..700).map(|id| vector(id, 0)).collect();
    let index = build(options(), &vectors);
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    let path = |name: &str| directory.path().join(name);
    let graph = fs::read(path("graph")).expect("read");
    let segment = fs::read(path("vectors-00000")).expect("read");
    let refused = |why: &str| {
        let result = NeighbourIndex::open(directory.path(), options());
        assert!(result.is_err(), "{why}");
    };
    fs::remove_file(path("graph")).expect("remove");
    fs::remove_file(path("vectors-00000")).expect("remove");
    refused("nothing");
    // The file has everything behind the header, as far as it was written. The header comes last.
    let mut headless = graph.clone();
    headless[..4_096].fill(0);
    for end in (4_096..graph.len()).step_by(30_011).chain([graph.len()]) {
        fs::write(path("graph"), &headless[..end]).expect("write");
        refused("without vectors or a header");
    }
    for end in [0, 4_096, segment.len() / 2, segment.len()] {
        fs::write(path("vectors-00000"), &segment[..end]).expect("write");
        refused("without a header");
    }
    // The header is written in parts, as by a disk.
    for end in (0..4_096).step_by(512) {
        headless[..end].copy_from_slice(&graph[..end]);
        fs::write(path("graph"), &headless).expect("write");
        refused("with a part of a header");
    }
    fs::write(path("graph"), &graph).expect("write");
    fs::write(path("vectors-00000"), &segment).expect("write");
    assert_alike(&open_verified(directory.path(), &index), &index);
}
