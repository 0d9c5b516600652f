//! The disk of a directory: its room, its kind, and the time that it takes to sync.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{DoctorFinding, bytes_text};

/// Free bytes below which writes may fail soon.
const FREE_MIN: u64 = 1 << 30;

/// Free bytes that are enough, whatever the size of the disk.
const FREE_ENOUGH: u64 = 50 << 30;

/// The longest time of all syncs together, and the most of them.
const SYNCS_WITHIN: Duration = Duration::from_millis(500);
const SYNCS_MAX: usize = 50;

/// The bytes that each sync follows.
const SYNC_BYTES: usize = 4 << 10;

/// A sync that each write waits for without harm.
const SYNC_GOOD: Duration = Duration::from_millis(10);

/// A disk that syncs in less has not written. No disk of today takes so little.
const SYNC_MIN: Duration = Duration::from_micros(5);

/// The findings about a directory, which need not exist yet.
pub fn findings(subject: &'static str, directory: &Path) -> Vec<DoctorFinding> {
    let Some(existing) = existing(directory) else {
        let found = format!("{}: no directory above it exists", directory.display());
        return vec![DoctorFinding::wrong(
            subject,
            found,
            "name another directory",
        )];
    };
    vec![
        space(subject, directory, &existing),
        sync(subject, &existing),
    ]
}

/// The directory, or the nearest above it that exists.
fn existing(directory: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(directory).ok()?;
    let mut above = absolute.ancestors();
    above.find(|path| path.is_dir()).map(Path::to_owned)
}

fn space(subject: &'static str, directory: &Path, existing: &Path) -> DoctorFinding {
    let shown = match directory.is_dir() {
        true => directory.display().to_string(),
        false => format!("{} (made at the first start)", directory.display()),
    };
    let volume = match rustix::fs::statvfs(existing) {
        Ok(volume) => volume,
        Err(error) => {
            let found = format!("{shown}: {error}");
            return DoctorFinding::wrong(subject, found, "name another directory");
        }
    };
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    let whole = volume.f_blocks.saturating_mul(volume.f_frsize);
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let kind = kind_of_volume(&mounts, existing);
    judge_space(subject, &shown, (free, whole), kind.as_deref())
}

fn judge_space(
    subject: &'static str,
    shown: &str,
    (free, whole): (u64, u64),
    kind: Option<&str>,
) -> DoctorFinding {
    let on = kind.map_or_else(String::new, |kind| format!(" on {kind}"));
    let found = format!(
        "{shown}: {} of {} free{on}",
        bytes_text(free),
        bytes_text(whole)
    );
    let is_little = free < FREE_ENOUGH && free < whole / 10;
    match kind {
        _ if free < FREE_MIN => {
            let remedy = "make room: writes are refused when the disk is full (docs/disk.md)";
            DoctorFinding::wrong(subject, found, remedy)
        }
        Some("tmpfs" | "ramfs") => {
            let remedy =
                "name a directory on a disk: this one is in memory, and empty after a restart";
            DoctorFinding::advice(subject, found, remedy)
        }
        Some("overlay") => {
            let remedy = "mount a volume: a container's own layer ends with it";
            DoctorFinding::advice(subject, found, remedy)
        }
        Some(kind) if kind.starts_with("nfs") || ["cifs", "smb3", "9p"].contains(&kind) => {
            let remedy = "take a disk of this machine: locks and syncs are another's here";
            DoctorFinding::advice(subject, found, remedy)
        }
        _ if is_little => {
            let remedy = "make room: files that are merged are there twice for a while";
            DoctorFinding::advice(subject, found, remedy)
        }
        _ => DoctorFinding::good(subject, found),
    }
}

/// The kind of the file system of a path, by the lines of /proc/mounts. Of several mounts at one
/// place the last is seen.
fn kind_of_volume(mounts: &str, path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        let place = place.replace("\\040", " ");
        real.starts_with(&place).then_some((place, kind))
    });
    let nearest = mounts.max_by_key(|(place, _)| place.len());
    nearest.map(|(_, kind)| kind.to_owned())
}

fn sync(subject: &'static str, directory: &Path) -> DoctorFinding {
    match time_syncs(directory) {
        Ok(times) => judge_syncs(subject, times),
        Err(error) => DoctorFinding::wrong(
            subject,
            format!("{} can't be written: {error}", directory.display()),
            "run this as the server's user, or let that user write there",
        ),
    }
}

/// Judges times of syncs by the middle one.
fn judge_syncs(subject: &'static str, mut times: Vec<Duration>) -> DoctorFinding {
    times.sort_unstable();
    let (Some(middle), Some(longest)) = (times.get(times.len() / 2), times.last()) else {
        return DoctorFinding::good(subject, "no sync was timed");
    };
    let found = format!(
        "a sync takes {middle:.1?}, the longest of {} {longest:.1?}",
        times.len()
    );
    match *middle {
        middle if middle > SYNC_GOOD => DoctorFinding::advice(
            subject,
            found,
            "each write waits for one: take a faster disk, or --durability buffered",
        ),
        middle if middle < SYNC_MIN => DoctorFinding::advice(
            subject,
            found,
            "no disk is so fast: what acknowledges it keeps it in memory, and a power cut loses it",
        ),
        _ => DoctorFinding::good(subject, found),
    }
}

/// Writes a little to a file and syncs it, again and again for a short while, and deletes it.
fn time_syncs(directory: &Path) -> io::Result<Vec<Duration>> {
    let path = directory.join(format!(".annulus-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let times = time_rounds(&mut file);
    fs::remove_file(&path)?;
    times
}

fn time_rounds(file: &mut File) -> io::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < SYNCS_MAX && began.elapsed() < SYNCS_WITHIN {
        let round = Instant::now();
        file.write_all(&[0; SYNC_BYTES])?;
        file.sync_data()?;
        times.push(round.elapsed());
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn room_and_kind_of_a_disk_are_judged() {
        let grade = |free, whole, kind| judge_space("data", "d", (free, whole), kind).grade;
        assert_eq!(grade(GIB / 2, 100 * GIB, Some("ext4")), FindingGrade::Wrong);
        assert_eq!(
            grade(5 * GIB, 100 * GIB, Some("ext4")),
            FindingGrade::Advice
        );
        assert_eq!(grade(20 * GIB, 100 * GIB, Some("ext4")), FindingGrade::Good);
        assert_eq!(grade(60 * GIB, 1000 * GIB, None), FindingGrade::Good);
        for kind in ["tmpfs", "overlay", "nfs4", "9p"] {
            assert_eq!(
                grade(90 * GIB, 100 * GIB, Some(kind)),
                FindingGrade::Advice,
                "{kind}"
            );
        }
    }

    #[test]
    fn the_nearest_mount_has_the_kind() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let mounts = format!(
            "a / ext4 rw 0 0\nb {} xfs rw 0 0\nc /elsewhere tmpfs rw 0 0\n",
            place.display()
        );
        let below = directory.path().join("below");
        fs::create_dir(&below).unwrap();
        assert_eq!(kind_of_volume(&mounts, &below).as_deref(), Some("xfs"));
        assert_eq!(
            kind_of_volume(&mounts, Path::new("/")).as_deref(),
            Some("ext4")
        );
    }

    #[test]
    fn a_sync_is_timed_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!time_syncs(directory.path()).unwrap().is_empty());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(time_syncs(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn the_middle_sync_is_judged() {
        let grade = |micros: [u64; 3]| {
            let times = micros.map(Duration::from_micros).to_vec();
            judge_syncs("data", times).grade
        };
        assert_eq!(grade([900, 700, 90_000]), FindingGrade::Good);
        assert_eq!(grade([20_000, 11_000, 10]), FindingGrade::Advice);
        assert_eq!(grade([1, 2, 3_000]), FindingGrade::Advice);
    }

    #[test]
    fn a_directory_that_is_missing_is_judged_by_one_above_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("a/b");
        assert_eq!(existing(&missing).as_deref(), Some(directory.path()));
        let found = &findings("data", &missing)[0].found;
        assert!(found.contains("made at the first start"), "{found}");
    }
}
