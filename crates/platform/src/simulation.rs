//! A simulated machine: one thread does everything itself, and a seed decides.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::files::FileStep;

/// The most time that work which blocks takes.
const WORK_MICROS_MAX: u64 = 40_000;
/// One piece of work in this many takes a while; others take no time.
const SLOW_ONE_IN: u64 = 4;

thread_local! {
    static OF_THREAD: RefCell<Option<Simulation>> = const { RefCell::new(None) };
}

/// The decisions for a thread that simulates. Clones are the same simulation.
#[derive(Clone, Debug)]
pub struct Simulation(Rc<RefCell<SimulatedFileSystem>>);

/// Lets the thread simulate until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct SimulatedThreadGuard(());

impl Drop for SimulatedThreadGuard {
    fn drop(&mut self) {
        OF_THREAD.set(None);
    }
}

#[derive(Debug)]
struct SimulatedFileSystem {
    random: u64,
    /// Number of further steps of files until one fails.
    fails_in: Option<u64>,
    /// Whether all steps that write fail.
    is_full: bool,
    /// Files that were written to since they were synced, and their lengths when they were.
    unsynced: BTreeMap<PathBuf, u64>,
    /// Names that were made, in directories that were not synced since.
    made: BTreeSet<PathBuf>,
    /// The files that were replaced, in directories that were not synced since, with their bytes
    /// before.
    replaced: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Simulation {
    /// Makes a simulation that decides by a seed.
    pub fn new(seed: u64) -> Simulation {
        Simulation(Rc::new(RefCell::new(SimulatedFileSystem {
            random: seed,
            fails_in: None,
            is_full: false,
            unsynced: BTreeMap::new(),
            made: BTreeSet::new(),
            replaced: BTreeMap::new(),
        })))
    }

    /// Lets this thread simulate from now on.
    pub fn enter(&self) -> SimulatedThreadGuard {
        OF_THREAD.set(Some(self.clone()));
        SimulatedThreadGuard(())
    }

    /// The simulation of this thread.
    pub fn of_thread() -> Option<Simulation> {
        OF_THREAD.with_borrow(Clone::clone)
    }

    /// A number below `end`.
    pub fn below(&self, end: u64) -> u64 {
        self.0.borrow_mut().below(end)
    }

    /// Lets one step of files fail, after this many more.
    pub fn fail_after(&self, steps: u64) {
        self.0.borrow_mut().fails_in = Some(steps);
    }

    /// Sets whether nothing more can be written to files.
    pub fn set_full(&self, is_full: bool) {
        self.0.borrow_mut().is_full = is_full;
    }

    /// The time that a piece of work which blocks takes; often none.
    pub fn work_takes(&self) -> Duration {
        Duration::from_micros(match self.below(SLOW_ONE_IN) {
            0 => self.below(WORK_MICROS_MAX),
            _ => 0,
        })
    }

    pub(crate) fn step(&self, step: FileStep, path: &Path) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        state.may_fail(step)?;
        match step {
            FileStep::Make => {
                state.made.insert(path.to_owned());
            }
            FileStep::Write => {
                if !state.unsynced.contains_key(path) {
                    let length = fs::metadata(path).map_or(0, |meta| meta.len());
                    state.unsynced.insert(path.to_owned(), length);
                }
            }
            FileStep::Replace => {
                let before = fs::read(path).ok();
                state.replaced.entry(path.to_owned()).or_insert(before);
            }
            FileStep::Read => {}
        }
        Ok(())
    }

    pub(crate) fn sync(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        state.may_fail(FileStep::Write)?;
        state.unsynced.remove(path);
        let is_within = |made: &Path| made.parent() == Some(path);
        state.made.retain(|made| !is_within(made));
        state.replaced.retain(|replaced, _| !is_within(replaced));
        Ok(())
    }

    /// Simulates a power failure: what was not synced is lost, torn, or there all the same. Returns
    /// the number of files that suffered.
    pub fn crash(&self) -> usize {
        let state = &mut *self.0.borrow_mut();
        let mut lost = 0;
        for (path, before) in std::mem::take(&mut state.replaced) {
            if state.below(2) == 0 {
                lost += 1;
                // An error leaves the file as it is, which may happen too.
                let _ = match before {
                    Some(bytes) => fs::write(&path, bytes),
                    None => fs::remove_file(&path),
                };
            }
        }
        for path in std::mem::take(&mut state.made) {
            if state.below(2) == 0 {
                lost += usize::from(fs::remove_file(&path).is_ok());
            }
        }
        for (path, synced) in std::mem::take(&mut state.unsynced) {
            let Ok(file) = OpenOptions::new().write(true).open(&path) else {
                continue;
            };
            let length = file.metadata().map_or(0, |meta| meta.len());
            let kept = synced + state.below(length.saturating_sub(synced) + 1);
            if kept < length {
                lost += usize::from(file.set_len(kept).is_ok());
            }
        }
        state.fails_in = None;
        lost
    }
}

impl SimulatedFileSystem {
    /// A number below `end`, by SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    fn may_fail(&mut self, step: FileStep) -> io::Result<()> {
        if let Some(steps) = &mut self.fails_in {
            if *steps == 0 {
                self.fails_in = None;
                return Err(io::Error::other("a simulated fault"));
            }
            *steps -= 1;
        }
        match self.is_full && step != FileStep::Read {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;
    use crate::files;

    fn write(path: &Path, text: &str) -> io::Result<File> {
        files::step(FileStep::Make, path)?;
        let mut file = File::create(path)?;
        files::step(FileStep::Write, path)?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    }

    #[test]
    fn synced_files_survive_a_crash_and_others_may_not() {
        let directory = tempfile::tempdir().unwrap();
        let simulation = Simulation::new(7);
        let entered = simulation.enter();
        let (kept, lost) = (directory.path().join("kept"), directory.path().join("lost"));
        let file = write(&kept, "kept").unwrap();
        files::sync(&file, &kept).unwrap();
        let folder = File::open(directory.path()).unwrap();
        files::sync(&folder, directory.path()).unwrap();
        let mut suffered = 0;
        for _ in 0..20 {
            write(&lost, "lost").unwrap();
            suffered += simulation.crash();
            assert_eq!(fs::read(&kept).unwrap(), b"kept");
            if let Ok(bytes) = fs::read(&lost) {
                assert!(b"lost".starts_with(&bytes));
            }
        }
        assert!((5..20 * 2).contains(&suffered), "{suffered}");
        drop(entered);
        assert!(Simulation::of_thread().is_none());
    }

    #[test]
    fn a_step_fails_when_it_is_to_and_a_full_disk_until_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let simulation = Simulation::new(7);
        let _entered = simulation.enter();
        simulation.fail_after(1);
        assert!(write(&path, "torn").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert!(write(&path, "whole").is_ok());
        simulation.set_full(true);
        assert!(write(&path, "no room").is_err());
        assert!(files::step(FileStep::Read, &path).is_ok());
        simulation.set_full(false);
        assert!(write(&path, "room").is_ok());
    }
}
