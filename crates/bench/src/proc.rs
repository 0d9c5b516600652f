//! What the system tells of processors and processes (proc(5)).

use std::time::{Duration, Instant};

use anyhow::Context;

/// In which `/proc` counts processor time: 100 a second on every architecture of Linux that there is today (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a process has taken, of all its threads, in itself and in the system.
pub fn process_cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path)
        .with_context(|| format!("{path}: is it a process on this machine?"))?;
    ticks(&stat)
        .map(|ticks| Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
        .with_context(|| format!("{path}: {stat:?} is not understood"))
}

/// User and system time: the 14th and 15th field. The second is a name in brackets that may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Time that the processors of this machine had something to do and were not there, since it started: a hypervisor gave them
/// to others.
pub struct Stolen {
    at: Instant,
    ticks: u64,
    processors: usize,
}

impl Stolen {
    /// Until now; none where the system does not say.
    pub fn now() -> Option<Stolen> {
        let (ticks, processors) = stolen(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Stolen {
            at: Instant::now(),
            ticks,
            processors,
        })
    }

    /// The share of the processors' time since an earlier moment.
    pub fn share_since(&self, before: &Stolen) -> f64 {
        let stolen = self.ticks.saturating_sub(before.ticks) as f64 / TICKS_PER_SECOND;
        let all = (self.at - before.at).as_secs_f64() * self.processors as f64;
        if all > 0.0 { stolen / all } else { 0.0 }
    }
}

/// The eighth number of all processors together, and how many there are.
fn stolen(stat: &str) -> Option<(u64, usize)> {
    let mut lines = stat.lines().take_while(|line| line.starts_with("cpu"));
    let all = lines.next()?.strip_prefix("cpu ")?;
    let ticks = all.split_ascii_whitespace().nth(7)?.parse().ok()?;
    Some((ticks, lines.count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_stands_behind_a_name_with_brackets() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 100 23 0 0 20 0 4 0";
        assert_eq!(ticks(stat), Some(123));
        assert_eq!(ticks("7 (a) S 1 2"), None);
        let own = process_cpu_time(std::process::id());
        assert!(own.is_ok(), "{own:?}");
    }

    #[test]
    fn stolen_time_is_that_of_all_processors() {
        let stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 1 1 1 1 1 1 30 1 1\ncpu1 1 1 1 1 1 1 1 50 1 1\nintr 5 6\n";
        assert_eq!(stolen(stat), Some((80, 2)));
        assert_eq!(stolen("cpu  1 2 3\ncpu0 1 2 3\n"), None);
        let at = Instant::now();
        let moment = |seconds, ticks| Stolen {
            at: at + Duration::from_secs(seconds),
            ticks,
            processors: 2,
        };
        // Half a second of two times five.
        assert_eq!(moment(5, 130).share_since(&moment(0, 80)), 0.05);
        assert_eq!(moment(0, 80).share_since(&moment(0, 80)), 0.0);
    }
}
