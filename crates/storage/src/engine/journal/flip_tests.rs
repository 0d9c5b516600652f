//! Tests that flip every bit of a small journal, and a bit of every byte of the manifests. Each
//! flip must be noticed, unless it changes nothing that the engine reads.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::batch::ParseOutcome;
use super::*;
use crate::engine::{
    Engine, EngineOptions, LockedDirectory, SpaceId, SpaceOptions, SyncTarget, manifest,
};

const BATCHES: u64 = 6;

fn engine(path: &Path) -> Engine {
    let (directory, _) = LockedDirectory::open(path).unwrap();
    let options = EngineOptions {
        cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        write_buffer_bytes: 4 << 20,
        resident_bytes: 0,
    };
    let engine = Engine::open(directory, options, Arc::new(|_, _| None)).unwrap();
    let plain = SpaceOptions {
        separate_values: false,
        resident: false,
    };
    engine.create_space(SpaceId::META, plain).unwrap();
    engine.mark_made().unwrap();
    engine
}

fn batch(number: u64, value: &[u8]) -> crate::engine::EntryBatch {
    let key = |part: u64| Bytes::from([number.to_be_bytes(), part.to_be_bytes()].concat());
    vec![
        (SpaceId::META, key(1), Some(Bytes::copy_from_slice(value))),
        (SpaceId::META, key(2), Some(Bytes::from_static(b"second"))),
        (SpaceId::META, key(3), None),
    ]
}

/// The journals that a kill leaves, with the zeros at their ends cut off.
fn killed(path: &Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    for journal in survey::journals(&path.join("db")).unwrap() {
        let content = survey::content_from(&journal, 0).unwrap();
        fs::write(image.path().join(journal.file_name().unwrap()), content).unwrap();
    }
    image
}

fn filled(sync: SyncTarget, value: &[u8]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for number in 0..BATCHES {
        engine.commit(batch(number, value), sync, 7).unwrap();
    }
    killed(directory.path())
}

fn journal_of(image: &Path) -> PathBuf {
    survey::journals(image).unwrap().pop().unwrap()
}

type Items = Vec<(u64, Vec<u8>, Option<Vec<u8>>)>;

fn batches_in(image: &Path) -> Vec<Items> {
    let mut batches = survey::open(&journal_of(image)).unwrap();
    let mut all = Vec::new();
    loop {
        let mut items = Vec::new();
        let mut visit = |item: EntryChange<'_>| {
            items.push((
                item.space,
                item.key.to_vec(),
                item.value.map(<[u8]>::to_vec),
            ));
        };
        match batches.next(&mut visit).unwrap() {
            ParseOutcome::Whole(_) => all.push(items),
            _ => return all,
        }
    }
}

#[test]
fn a_flipped_bit_of_a_synced_journal_is_noticed() {
    let image = filled(SyncTarget::Disk, b"a value of some length");
    let path = journal_of(image.path());
    let written = fs::read(&path).unwrap();
    let items = batches_in(image.path());
    assert_eq!(items.len() as u64, BATCHES);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let (mut noticed, mut harmless) = (0, 0);
    for (offset, byte) in written.iter().enumerate() {
        for bit in 0..8 {
            file.write_all_at(&[byte ^ (1 << bit)], offset as u64)
                .unwrap();
            let survey = survey(image.path()).unwrap();
            if survey.damage.is_some() {
                noticed += 1;
            } else {
                assert!(survey.torn.is_none(), "byte {offset}, bit {bit}: cut off");
                assert_eq!(batches_in(image.path()), items, "byte {offset}, bit {bit}");
                harmless += 1;
            }
        }
        file.write_all_at(&[*byte], offset as u64).unwrap();
    }
    // The lower bits of the last sequence number may rise, as no batch follows it.
    assert!(harmless <= 20 && noticed > 0, "{harmless} of {noticed}");
    assert!(survey(image.path()).unwrap().damage.is_none());
}

#[test]
fn a_write_that_was_cut_off_is_no_damage() {
    let image = filled(SyncTarget::Disk, &[0xab; 10_000]);
    let path = journal_of(image.path());
    let written = fs::read(&path).unwrap();
    let last = written.len() * (BATCHES as usize - 1) / BATCHES as usize;
    let is_torn = |content: &[u8], what: &str| {
        fs::write(&path, content).unwrap();
        let survey = survey(image.path()).unwrap();
        assert!(survey.damage.is_none(), "{what}: {:?}", survey.damage);
        assert_eq!(survey.last_number, BATCHES - 1, "{what}");
    };
    for end in (last + 64..written.len())
        .step_by(97)
        .chain([written.len() - 1])
    {
        // A kill leaves this in a journal that was made longer before.
        let mut cut = written.clone();
        cut[end..].fill(0);
        is_torn(&cut, &format!("cut at {end}"));
        is_torn(&written[..end], &format!("short at {end}"));
    }
    for unit in [512, 4096] {
        for start in (0..written.len())
            .step_by(unit)
            .filter(|start| *start >= last + 64)
        {
            let mut lost = written.clone();
            let end = (start + unit).min(lost.len());
            lost[start..end].fill(0);
            is_torn(&lost, &format!("lost {start} to {end}"));
        }
    }
}

#[test]
fn unsynced_batches_behind_a_lost_page_are_no_damage_and_synced_ones_are() {
    for is_synced in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(directory.path());
        for number in 0..BATCHES {
            let written = engine.commit(batch(number, &[0xab; 5_000]), SyncTarget::Kernel, 7);
            written.unwrap();
            if is_synced && number == BATCHES - 2 {
                engine.sync().unwrap();
            }
        }
        let image = killed(directory.path());
        let file = fs::OpenOptions::new()
            .write(true)
            .open(journal_of(image.path()));
        file.unwrap().write_all_at(&[0; 4096], 8192).unwrap();
        let survey = survey(image.path()).unwrap();
        assert_eq!(survey.damage.is_some(), is_synced);
        assert_eq!(survey.torn.is_some(), !is_synced);
        if let Some(damage) = survey.damage {
            // The page is part of two of the batches.
            assert_eq!(damage.batches_after, BATCHES - 3);
        }
    }
}

#[test]
fn a_missing_or_older_batch_is_noticed() {
    let image = filled(SyncTarget::Disk, b"value");
    let path = journal_of(image.path());
    let written = fs::read(&path).unwrap();
    let bounds: Vec<usize> = {
        let mut batches = survey::open(&path).unwrap();
        let mut bounds = vec![0];
        while let ParseOutcome::Whole(batch) = batches.next(&mut |_| {}).unwrap() {
            bounds.push(batch.end as usize);
        }
        bounds
    };
    let cause = |content: Vec<u8>| {
        fs::write(&path, content).unwrap();
        survey(image.path())
            .unwrap()
            .damage
            .map(|damage| damage.cause)
    };
    let without_one = [&written[..bounds[2]], &written[bounds[3]..]].concat();
    assert_eq!(cause(without_one), Some(CorruptionCause::Missing));
    let twice = [&written[..bounds[3]], &written[bounds[2]..]].concat();
    assert_eq!(cause(twice), Some(CorruptionCause::Sequence));
    assert_eq!(cause(written), None);
}

#[test]
fn a_flipped_bit_of_a_manifest_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    engine
        .commit(batch(0, b"value"), SyncTarget::Disk, 7)
        .unwrap();
    engine.close();
    let database = directory.path().join("db");
    let mut flipped = 0;
    for folder in manifest::spaces(&database).unwrap() {
        let current = fs::read(folder.join("current")).unwrap();
        let number = u64::from_le_bytes(current[..8].try_into().unwrap());
        let manifest = folder.join(format!("v{number}"));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            // Manifests of former states are not read.
            if path.is_dir() || !(path.ends_with("current") || path == manifest) {
                continue;
            }
            let written = fs::read(&path).unwrap();
            for offset in 0..written.len() {
                let mut changed = written.clone();
                changed[offset] ^= 1 << (offset % 8);
                fs::write(&path, changed).unwrap();
                let verified = manifest::verify(&database);
                if path.ends_with("current") && offset < 8 && !folder.ends_with("0") {
                    // It names a manifest that does not exist, which the engine refuses.
                    continue;
                }
                assert!(verified.is_err(), "{}, byte {offset}", path.display());
                flipped += 1;
            }
            fs::write(&path, written).unwrap();
        }
    }
    assert!(flipped > 100);
    assert!(manifest::verify(&database).is_ok());
}
