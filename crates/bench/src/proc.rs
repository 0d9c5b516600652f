//! Reads times of processors and processes from `/proc` (proc(5)).

use std::time::{Duration, Instant};

use anyhow::Context;

/// The unit in which `/proc` counts processor time: 100 ticks a second on every architecture of
/// Linux today (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// The processor time that all threads of a process have taken, in user and in system mode.
pub fn process_cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path)
        .with_context(|| format!("{path}: is it a process on this machine?"))?;
    ticks(&stat)
        .map(|ticks| Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
        .with_context(|| format!("{path}: {stat:?} is not understood"))
}

/// The sum of user and system time, which are the 14th and the 15th field. The second field is a
/// name in brackets that may have any character.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The time since the start of this machine in which its processors had work but a hypervisor ran
/// others.
pub struct StolenTime {
    at: Instant,
    ticks: u64,
    processors: usize,
}

impl StolenTime {
    /// The stolen time until now; `None` if the system does not tell.
    pub fn now() -> Option<StolenTime> {
        let (ticks, processors) = stolen(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(StolenTime {
            at: Instant::now(),
            ticks,
            processors,
        })
    }

    /// The share of all processor time that was stolen since an earlier moment.
    pub fn share_since(&self, before: &StolenTime) -> f64 {
        let stolen = self.ticks.saturating_sub(before.ticks) as f64 / TICKS_PER_SECOND;
        let all = (self.at - before.at).as_secs_f64() * self.processors as f64;
        if all > 0.0 { stolen / all } else { 0.0 }
    }
}

/// The eighth number of the line for all processors, and the number of processors.
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
        let moment = |seconds, ticks| StolenTime {
            at: at + Duration::from_secs(seconds),
            ticks,
            processors: 2,
        };
        // Half a second was stolen of two processors' five.
        assert_eq!(moment(5, 130).share_since(&moment(0, 80)), 0.05);
        assert_eq!(moment(0, 80).share_since(&moment(0, 80)), 0.0);
    }
}
