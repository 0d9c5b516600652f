//! Limits of files, memory, processor and clock.

use std::fs;

use clock::{Clock, SystemClock};
use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};

use super::{DoctorFinding, bytes_text};

/// Open files that are enough for all connections of the default settings.
const FILES_ENOUGH: u64 = 65_536;

/// Open files below which a server refuses clients early.
const FILES_MIN: u64 = 4_096;

/// Memory with which a server does more than start.
const MEMORY_ENOUGH: u64 = 1 << 30;

/// The limit of open files. A server raises its own up to the hard one.
pub fn open_files() -> DoctorFinding {
    const SUBJECT: &str = "open files";
    const REMEDY: &str =
        "raise it: LimitNOFILE=65536 in the unit, or `ulimit -Hn 65536` in the shell";
    match getrlimit(Resource::Nofile).maximum {
        None => DoctorFinding::good(SUBJECT, "no limit"),
        Some(limit @ FILES_ENOUGH..) => DoctorFinding::good(SUBJECT, limit.to_string()),
        Some(limit @ FILES_MIN..) => DoctorFinding::advice(
            SUBJECT,
            format!("{limit}, too few for as many connections as the settings allow"),
            REMEDY,
        ),
        Some(limit) => DoctorFinding::wrong(SUBJECT, format!("{limit}, too few"), REMEDY),
    }
}

/// The memory of the machine or the control group, next to the limit of the process.
pub fn memory(limit: Option<u64>, is_running: bool) -> DoctorFinding {
    let whole = store::half_of_machine_bytes().map(|half| half.saturating_mul(2));
    let information = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo_bytes(&information, "MemAvailable:");
    judge_memory(limit, whole, available.filter(|_| !is_running))
}

/// Judges a limit by all memory and by what is available now; without the latter a server runs,
/// and has a part of it already.
fn judge_memory(limit: Option<u64>, whole: Option<u64>, available: Option<u64>) -> DoctorFinding {
    const SUBJECT: &str = "memory";
    let (Some(limit), Some(whole)) = (limit, whole) else {
        return DoctorFinding::advice(
            SUBJECT,
            "the system does not say how much there is",
            "set --memory-limit",
        );
    };
    let found = format!("limit {} of {}", bytes_text(limit), bytes_text(whole));
    if limit > whole {
        let remedy = "lower --memory-limit: the kernel would end the process";
        return DoctorFinding::wrong(SUBJECT, found, remedy);
    }
    match available {
        _ if whole < MEMORY_ENOUGH => {
            let remedy = "give it more: 1 GiB for rows, and some for indexes (docs/sizing.md)";
            DoctorFinding::advice(SUBJECT, found, remedy)
        }
        Some(available) if available < limit => DoctorFinding::advice(
            SUBJECT,
            format!("{found}, of which {} are available", bytes_text(available)),
            "end other programs, or lower --memory-limit",
        ),
        _ => DoctorFinding::good(SUBJECT, found),
    }
}

/// A line of /proc/meminfo, in bytes.
fn meminfo_bytes(information: &str, name: &str) -> Option<u64> {
    let line = information
        .lines()
        .find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The cores, and the features that searches use.
pub fn processor() -> DoctorFinding {
    const SUBJECT: &str = "processor";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let found = |features: &str| {
        format!("{cores} cores, {features}  {model}")
            .trim_end()
            .to_owned()
    };
    match vector_units() {
        VectorUnits::Avx512 => DoctorFinding::good(SUBJECT, found("AVX-512")),
        VectorUnits::Avx2 => DoctorFinding::good(SUBJECT, found("AVX2")),
        VectorUnits::Neither => DoctorFinding::advice(
            SUBJECT,
            found("neither AVX2 with FMA and F16C nor AVX-512"),
            "take another machine where searches must be fast: they are slower here",
        ),
    }
}

/// The vector instructions of the processor, the widest that searches can use.
enum VectorUnits {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "not there"))]
    Avx512,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "not there"))]
    Avx2,
    Neither,
}

/// As the kernels of `ann` choose.
#[cfg(target_arch = "x86_64")]
fn vector_units() -> VectorUnits {
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vpopcntdq");
    let narrow = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    match (wide, narrow) {
        (true, _) => VectorUnits::Avx512,
        (false, true) => VectorUnits::Avx2,
        (false, false) => VectorUnits::Neither,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_units() -> VectorUnits {
    VectorUnits::Neither
}

/// The clock: whether it is set by others, and no earlier than this program.
pub fn clock() -> DoctorFinding {
    let built = env!("ANNULUS_BUILD_SECONDS").parse().unwrap_or(0);
    judge_clock(SystemClock.now_micros(), built, is_synchronised())
}

fn judge_clock(now_micros: i64, built_seconds: i64, synchronised: Option<bool>) -> DoctorFinding {
    const SUBJECT: &str = "clock";
    const REMEDY: &str = "run NTP (chrony, systemd-timesyncd): rows go by their times";
    let now = Timestamp::from_second(clock::seconds(now_micros));
    let now = now.map_or_else(|_| "out of all bounds".to_owned(), |now| now.to_string());
    if clock::seconds(now_micros) < built_seconds {
        return DoctorFinding::wrong(
            SUBJECT,
            format!("{now}, before this program was made"),
            REMEDY,
        );
    }
    match synchronised {
        Some(true) => DoctorFinding::good(SUBJECT, format!("{now}, synchronised")),
        Some(false) => DoctorFinding::advice(SUBJECT, format!("{now}, not synchronised"), REMEDY),
        None => DoctorFinding::good(
            SUBJECT,
            format!("{now}; the kernel does not say who sets it"),
        ),
    }
}

/// Whether the kernel says that the clock is synchronised; `None` if it says nothing.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_synchronised() -> Option<bool> {
    // SAFETY: of this struct of numbers all bytes may be 0.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a whole struct that lives on, and without modes the call only reads.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    (answer >= 0).then_some(state.status & libc::STA_UNSYNC == 0)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn is_synchronised() -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    #[test]
    fn a_memory_limit_is_judged_by_what_there_is() {
        const GIB: u64 = 1 << 30;
        let grade = |limit, whole, available| judge_memory(limit, whole, available).grade;
        assert_eq!(
            grade(Some(GIB), Some(4 * GIB), Some(3 * GIB)),
            FindingGrade::Good
        );
        assert_eq!(
            grade(Some(GIB), Some(4 * GIB), Some(GIB / 2)),
            FindingGrade::Advice
        );
        assert_eq!(grade(Some(GIB), Some(4 * GIB), None), FindingGrade::Good);
        assert_eq!(
            grade(Some(5 * GIB), Some(4 * GIB), None),
            FindingGrade::Wrong
        );
        assert_eq!(
            grade(Some(GIB / 4), Some(GIB / 2), None),
            FindingGrade::Advice
        );
        assert_eq!(grade(None, Some(GIB), None), FindingGrade::Advice);
    }

    #[test]
    fn a_line_of_meminfo_is_read_in_bytes() {
        let text = "MemTotal:       2048 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable:"), Some(1 << 20));
        assert_eq!(meminfo_bytes("", "MemAvailable:"), None);
    }

    #[test]
    fn a_clock_before_the_build_is_wrong() {
        let grade = |seconds: i64, synchronised| {
            judge_clock(seconds * 1_000_000, 1_000, synchronised).grade
        };
        assert_eq!(grade(999, Some(true)), FindingGrade::Wrong);
        assert_eq!(grade(1_000, Some(true)), FindingGrade::Good);
        assert_eq!(grade(1_000, Some(false)), FindingGrade::Advice);
        assert_eq!(grade(1_000, None), FindingGrade::Good);
    }
}
