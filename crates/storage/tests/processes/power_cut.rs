//! Tests power cuts. A cut leaves everything that was synced, and any part of the rest. The storage
//! opens with everything that was acknowledged.
//!
//! The shim knows what was synced. A copy of the files that is cut back to that is the content of
//! the disk after a cut.

use std::path::{Path, PathBuf};
use std::time::Duration;

use storage::Durability;

use crate::disk::{self, Shadow};
use crate::support::eventually;
use crate::workload::{self, Findings};

#[test]
#[ignore = "run by the tests below as a process of its own"]
fn writers() {
    let path = |name| PathBuf::from(std::env::var_os(name).expect("set by the tests below"));
    let durability = match std::env::var_os("WORK_BUFFERED") {
        Some(_) => BUFFERED,
        None => Durability::Synced,
    };
    workload::work(
        &path("WORK_DIRECTORY"),
        &path("WORK_ACKNOWLEDGED"),
        durability,
    );
}

const BUFFERED: Durability = Durability::Buffered {
    sync_interval: Duration::from_secs(3600),
};

/// A generator of random bits, which are the same in every run.
struct Coin(u64);

impl Coin {
    fn toss(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & 1 == 1
    }
}

struct Bench {
    home: tempfile::TempDir,
    library: PathBuf,
    /// The content of the disk after the last power cut.
    image: PathBuf,
    acknowledged: PathBuf,
    durability: Durability,
}

impl Bench {
    fn new(durability: Durability) -> Bench {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("image-0");
        workload::prepare(&image, durability);
        Bench {
            library: disk::compile_shim(home.path()),
            acknowledged: home.path().join("acknowledged"),
            image,
            durability,
            home,
        }
    }

    /// Lets the writers work on the image for a while, cuts the power and returns what the check
    /// finds.
    fn round(&mut self, round: u64, keep_page: &mut dyn FnMut() -> bool) -> Findings {
        let shadow_path = self.home.path().join(format!("shadow-{round}"));
        let shadow = Shadow::begin(&shadow_path, &self.image);
        let before = size(&self.acknowledged);
        let mut environment: Vec<(&str, &Path)> = vec![
            ("LD_PRELOAD", &self.library),
            ("DISK_ROOT", &self.image),
            ("DISK_SHADOW", &shadow_path),
            ("WORK_DIRECTORY", &self.image),
            ("WORK_ACKNOWLEDGED", &self.acknowledged),
        ];
        if self.durability == BUFFERED {
            environment.push(("WORK_BUFFERED", Path::new("1")));
        }
        let mut child = disk::spawn_test("power_cut::writers", &environment);
        eventually("the writers work", || {
            size(&self.acknowledged) >= before + 2_000
        });
        // The power is cut sooner or later, and at no round number of milliseconds.
        child.kill_after(Duration::from_micros(round * 53_927));

        let image = self.home.path().join(format!("image-{}", round + 1));
        shadow.cut(&self.image, &image, keep_page);
        self.image = image;
        workload::check(&self.image, &self.acknowledged)
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

#[test]
fn acknowledged_writes_were_synced() {
    let mut bench = Bench::new(Durability::Synced);
    let mut coin = Coin(0x9e37_79b9_7f4a_7c15);
    for round in 0..6 {
        // In even rounds nothing that was not synced survives, in odd ones any page of it.
        let mut keep_page = || round % 2 == 1 && coin.toss();
        let findings = bench.round(round, &mut keep_page);

        assert_eq!(
            (findings.lost, findings.schema_lost),
            (0, 0),
            "round {round}: {findings:?}"
        );
        assert_eq!(findings.torn, [] as [String; 0], "round {round}");
        assert!(findings.kept > 0);
    }
}

/// Runs the test without syncs, where it has to find losses. So the test above would notice a
/// missing sync.
#[test]
fn without_a_sync_acknowledged_writes_are_lost() {
    let findings = Bench::new(BUFFERED).round(0, &mut || false);
    assert!(findings.lost > 0, "{findings:?}");
    assert_eq!(findings.torn, [] as [String; 0], "but never by halves");
}
