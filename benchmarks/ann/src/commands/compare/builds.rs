//! Measures builds of the indexes: their processor time, and the memory afterwards.

use std::path::Path;

use contender::{Built, Memory};

use crate::contenders::{BASELINE, Process, Rival};
use crate::statistics::{Spread, median};
use crate::sweep::Entrant;

/// The contender whose builds are timed as often as the baseline's, and with two threads.
const OWN: &str = "annulus";
/// The seconds below which a build is repeated.
const SECONDS_REPEATED_BELOW: f64 = 12.0;
/// The seconds below which the builds with one and two threads are repeated.
const SECONDS_THREADS_REPEATED_BELOW: f64 = 10.0;
/// The number of builds if they are repeated.
const REPEATS: usize = 3;

/// The builds of one contender.
pub struct BuiltBy {
    pub contender: String,
    /// The first build, in a fresh process.
    pub first: Built,
    /// The processor seconds of each build.
    seconds: Vec<f64>,
    /// The ratio of a build's processor time to the baseline's, build by build; `None` if there is
    /// no baseline.
    pub ratio: Option<Spread>,
}

/// The builds on one data set.
pub struct Builds {
    all: Vec<BuiltBy>,
    two_threads: Option<TwoThreads>,
}

/// The ratios of builds with two threads to builds with one.
struct TwoThreads {
    /// The speedup by the clock.
    faster: Spread,
    /// The ratio of processor time; above 1 for the time that the threads lose to each other.
    dearer: Spread,
}

impl Builds {
    /// Builds the index of every contender with one thread, one after the other.
    pub fn measure(data_set: &str, contenders: &mut [Entrant]) -> anyhow::Result<Builds> {
        let mut all: Vec<BuiltBy> = Vec::new();
        for contender in contenders.iter_mut() {
            all.push(BuiltBy::new(
                data_set,
                &contender.name,
                &mut contender.process,
            )?);
        }
        let quick = all
            .iter()
            .filter(|by| by.is_repeated())
            .all(|by| by.seconds[0] < SECONDS_REPEATED_BELOW);
        for _ in 1..if quick { REPEATS } else { 1 } {
            for (by, contender) in all.iter_mut().zip(contenders.iter_mut()) {
                if by.is_repeated() {
                    by.seconds
                        .push(contender.process.build(1)?.elapsed.cpu_seconds);
                }
            }
        }
        let mut builds = Builds {
            all,
            two_threads: None,
        };
        builds.compare();
        Ok(builds)
    }

    /// Builds the index of a contender that takes no further part.
    pub fn measure_alone(
        &mut self,
        data_set: &str,
        name: &str,
        folder: &Path,
    ) -> anyhow::Result<()> {
        let mut process = Process::start(&Rival::parse(name)?, folder, false)?;
        self.all.push(BuiltBy::new(data_set, name, &mut process)?);
        self.compare();
        Ok(())
    }

    /// Builds an index of Annulus with one and with two threads in turn.
    pub fn measure_threads(&mut self, folder: &Path) -> anyhow::Result<()> {
        let Some(own) = self.of(OWN) else {
            return Ok(());
        };
        let repeats = match own.seconds[0] < SECONDS_THREADS_REPEATED_BELOW {
            true => REPEATS,
            false => 1,
        };
        let mut process = Process::start(&Rival::parse(OWN)?, folder, false)?;
        let (mut faster, mut dearer) = (Vec::new(), Vec::new());
        for repeat in 0..repeats {
            eprintln!(
                "{OWN}: with one and two threads, {} of {repeats}",
                repeat + 1
            );
            let one = process.build(1)?.elapsed;
            let two = process.build(2)?.elapsed;
            faster.push(one.wall_seconds / two.wall_seconds);
            dearer.push(two.cpu_seconds / one.cpu_seconds);
        }
        let spreads = Spread::of(faster).zip(Spread::of(dearer));
        self.two_threads = spreads.map(|(faster, dearer)| TwoThreads { faster, dearer });
        Ok(())
    }

    /// The builds of a contender.
    pub fn of(&self, contender: &str) -> Option<&BuiltBy> {
        self.all.iter().find(|by| by.contender == contender)
    }

    /// Computes the ratios to the baseline. Repeated builds are compared one by one, and a single
    /// build with the baseline's first.
    fn compare(&mut self) {
        let Some(baseline) = self.of(BASELINE).map(|by| by.seconds.clone()) else {
            return;
        };
        for by in &mut self.all {
            let pairs = by.seconds.iter().zip(&baseline);
            by.ratio = Spread::of(pairs.map(|(own, base)| own / base).collect());
        }
    }

    /// Prints a table of all builds.
    pub fn print(&self, vectors: usize) {
        println!(
            "| contender | build, CPU s | times {BASELINE} | bytes a vector in RAM | times {BASELINE} | \
             as it says itself | mapped from a file | kernels |"
        );
        println!("| --- | --: | --: | --: | --: | --: | --: | --- |");
        let baseline = self.of(BASELINE).map(BuiltBy::bytes_in_ram);
        for by in &self.all {
            let each = |bytes: u64| bytes / vectors as u64;
            let ratio = by
                .ratio
                .map_or("-".into(), |ratio| format!("{:.3}", ratio.median));
            let bytes = baseline.map_or("-".into(), |baseline| {
                format!("{:.3}", by.bytes_in_ram() as f64 / baseline as f64)
            });
            let of_memory = |part: fn(Memory) -> u64| {
                let bytes = by.first.memory.map(|memory| each(part(memory)));
                bytes.map_or("-".into(), |bytes| bytes.to_string())
            };
            println!(
                "| {} | {:.1} | {ratio} | {} | {bytes} | {} | {} | {} |",
                by.contender,
                by.seconds(),
                each(by.bytes_in_ram()),
                of_memory(|memory| memory.anonymous),
                of_memory(|memory| memory.mapped),
                by.first.kernels,
            );
        }
        if let Some(TwoThreads { faster, dearer }) = &self.two_threads {
            println!(
                "\n{OWN} built with two threads: {:.2} times as fast as with one ({:.2} to {:.2}), with {:.2} times \
                 its processor time. On a machine that is busy otherwise only the latter says something.",
                faster.median, faster.min, faster.max, dearer.median
            );
        }
    }
}

impl BuiltBy {
    fn new(data_set: &str, name: &str, process: &mut Process) -> anyhow::Result<BuiltBy> {
        eprintln!("{data_set}: building {name}");
        let first = process.build(1)?;
        Ok(BuiltBy {
            contender: name.into(),
            seconds: vec![first.elapsed.cpu_seconds],
            first,
            ratio: None,
        })
    }

    fn is_repeated(&self) -> bool {
        [BASELINE, OWN].contains(&self.contender.as_str())
    }

    /// The processor seconds of the median build.
    pub fn seconds(&self) -> f64 {
        median(&mut self.seconds.clone()).unwrap_or(f64::NAN)
    }

    /// The bytes that must stay in RAM: by how much the process grew. For Annulus it is what the
    /// index says itself, if that is more, so that memory taken but not touched yet counts too.
    pub fn bytes_in_ram(&self) -> u64 {
        let grown = self.first.anonymous_grown;
        match self.first.memory {
            Some(memory) if self.contender.starts_with(OWN) => grown.max(memory.anonymous),
            _ => grown,
        }
    }
}
