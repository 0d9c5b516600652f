//! Tests kills at any moment under concurrent writes and schema changes. The storage opens again
//! with everything that was acknowledged, and each change is there with its log row or not at all.

use std::path::PathBuf;
use std::time::Duration;

use storage::Durability;

use crate::disk;
use crate::support::eventually;
use crate::workload;

const ROUNDS: u64 = 8;

#[test]
#[ignore = "run by the test below as a process of its own"]
fn writers() {
    let path = |name| PathBuf::from(std::env::var_os(name).expect("set by the test below"));
    workload::work(
        &path("WORK_DIRECTORY"),
        &path("WORK_ACKNOWLEDGED"),
        Durability::Synced,
    );
}

#[test]
fn nothing_acknowledged_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let (directory, acknowledged) = (home.path().join("data"), home.path().join("acknowledged"));
    workload::prepare(&directory, Durability::Synced);
    let mut kept = 0;
    for round in 0..ROUNDS {
        let before = size(&acknowledged);
        let mut child = disk::spawn_test(
            "kill::writers",
            &[
                ("WORK_DIRECTORY", &directory),
                ("WORK_ACKNOWLEDGED", &acknowledged),
            ],
        );
        eventually("the writers began", || size(&acknowledged) > before);
        // The kill comes sooner or later, and at no round number of milliseconds.
        child.kill_after(Duration::from_micros(round * round * 7_919));
        let findings = workload::check(&directory, &acknowledged);
        assert_eq!(
            (findings.lost, findings.schema_lost),
            (0, 0),
            "round {round}: {findings:?}"
        );
        assert_eq!(findings.torn, [] as [String; 0]);
        assert!(findings.kept >= kept, "what was there stays there");
        kept = findings.kept;
    }
    assert!(kept > 100, "the writers wrote: {kept}");
}

fn size(path: &std::path::Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}
