//! The memory figures of Linux. Other systems give none.

use std::fs;
use std::path::{Path, PathBuf};

/// The memory that is left to the rest of the machine or container, at least.
const RESERVE_BYTES_MIN: u64 = 200_000_000;

/// The bytes of this process that the system can't take back, except by swapping.
pub(super) fn used_bytes(root: &Path) -> Option<u64> {
    field_bytes(&root.join("proc/self/status"), "RssAnon:")
}

/// The memory of the machine or the control group, less a hundredth of it or 200 MB, whichever is
/// more, but never less than half of it.
pub(super) fn default_limit_bytes(root: &Path) -> Option<u64> {
    let total = total_bytes(root)?;
    let reserve = (total / 100).max(RESERVE_BYTES_MIN).min(total / 2);
    Some(total - reserve)
}

/// Half of the memory of the machine or the control group, for a process that shares it with
/// others.
pub(super) fn half_bytes(root: &Path) -> Option<u64> {
    total_bytes(root).map(|total| total / 2)
}

/// The memory of the machine or the control group.
fn total_bytes(root: &Path) -> Option<u64> {
    let machine = field_bytes(&root.join("proc/meminfo"), "MemTotal:")?;
    Some(group_limits_bytes(root).fold(machine, u64::min))
}

/// The bytes of a field such as `MemTotal:   24046 kB`.
fn field_bytes(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The limits of the control groups that the process is in, of both versions: those of its own
/// group and of all groups above.
fn group_limits_bytes(root: &Path) -> impl Iterator<Item = u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut files: Vec<PathBuf> = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        let groups = group.ancestors();
        files.extend(groups.map(|group| root.join(mount).join(group).join(file)));
    }
    // A group without a limit has the word `max`, or a number beyond the memory of any machine.
    files.into_iter().filter_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        text.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:  31250000 kB\n");

    #[test]
    fn a_machine_keeps_a_hundredth_or_200_mb() {
        let large = root(&[MACHINE]);
        let limit = default_limit_bytes(large.path());
        assert_eq!(limit, Some(32_000_000_000 / 100 * 99));
        assert_eq!(half_bytes(large.path()), Some(16_000_000_000));
        let small = root(&[("proc/meminfo", "MemTotal: 1000000 kB")]);
        let limit = default_limit_bytes(small.path());
        assert_eq!(limit, Some(1_024_000_000 - 200_000_000));
        let tiny = root(&[("proc/meminfo", "MemTotal: 100000 kB")]);
        assert_eq!(default_limit_bytes(tiny.path()), Some(51_200_000));
        assert_eq!(default_limit_bytes(root(&[]).path()), None);
    }

    #[test]
    fn a_control_group_and_those_above_it_count() {
        for (files, limit) in [
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "0::/a/b\n"),
                    ("sys/fs/cgroup/a/memory.max", "4000000000\n"),
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ][..],
                3_800_000_000,
            ),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "0::/\n"),
                    ("sys/fs/cgroup/memory.max", "2000000000\n"),
                ],
                1_800_000_000,
            ),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "5:cpu:/x\n9:memory:/x\n"),
                    (
                        "sys/fs/cgroup/memory/memory.limit_in_bytes",
                        "9223372036854771712\n",
                    ),
                    (
                        "sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                        "1000000000\n",
                    ),
                ],
                800_000_000,
            ),
        ] {
            assert_eq!(default_limit_bytes(root(files).path()), Some(limit));
        }
    }

    #[test]
    fn used_bytes_are_those_that_can_not_be_taken_back() {
        let status = "VmRSS:\t  90 kB\nRssAnon:\t   40 kB\nRssFile:\t 50 kB\n";
        let root = root(&[("proc/self/status", status)]);
        assert_eq!(used_bytes(root.path()), Some(40 * 1024));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_system_tells() {
        let used = used_bytes(Path::new("/")).unwrap();
        let limit = default_limit_bytes(Path::new("/")).unwrap();
        assert!(used > 0 && used < limit, "{used} of {limit}");
    }
}
