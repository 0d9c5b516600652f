// Copyright (c) 2024-present, fjall-rs
// This source code is licensed under both the Apache 2.0 and MIT License
// (found in the LICENSE-* files in the repository)

use crate::{
    db::Keyspaces,
    file::{KEYSPACES_FOLDER, LSM_CURRENT_VERSION_MARKER},
    journal::{
        batch_reader::{Batch, JournalBatchReader},
        manager::EvictionWatermark,
        reader::JournalReader,
    },
    keyspace::{
        apply_to_base_config, options::CreateOptions as KeyspaceCreateOptions, InternalKeyspaceId,
    },
    meta_keyspace::MetaKeyspace,
    Database, Keyspace,
};
use lsm_tree::{AbstractTree, InternalValue, Memtable, SeqNo, ValueType};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// Recovers keyspaces
pub fn recover_keyspaces(db: &Database, meta_keyspace: &MetaKeyspace) -> crate::Result<()> {
    let keyspaces_folder = db.config.path.join(KEYSPACES_FOLDER);

    log::trace!("Recovering keyspaces in {}", keyspaces_folder.display());

    #[expect(clippy::expect_used)]
    let mut keyspaces_lock = db.supervisor.keyspaces.write().expect("lock is poisoned");

    let mut highest_keyspace_id = 1;

    for dirent in std::fs::read_dir(&keyspaces_folder)? {
        let dirent = dirent?;
        let keyspace_path = dirent.path();

        if dirent.file_type()?.is_file() {
            log::warn!(
                "Found stray file {} in keyspaces folder",
                keyspace_path.display(),
            );
            continue;
        }

        // ANNULUS 10: a folder whose name is no number is none of a keyspace
        let name = dirent.file_name();
        let Some(keyspace_id) = name
            .to_str()
            .and_then(|name| name.parse::<InternalKeyspaceId>().ok())
        else {
            log::warn!(
                "Found stray folder {} in keyspaces folder",
                keyspace_path.display(),
            );
            continue;
        };

        // NOTE: Is meta keyspace
        if keyspace_id == 0 {
            continue;
        }

        highest_keyspace_id = highest_keyspace_id.max(keyspace_id);

        let Some(keyspace_name) = meta_keyspace.resolve_id(keyspace_id)? else {
            log::debug!("Deleting unreferenced keyspace id={keyspace_id}");
            std::fs::remove_dir_all(keyspace_path)?;
            continue;
        };

        log::trace!("Recovering keyspace with id={keyspace_id}");

        // NOTE: Check for marker, maybe the keyspace is not fully initialized
        if !keyspace_path
            .join(LSM_CURRENT_VERSION_MARKER)
            .try_exists()?
        {
            log::debug!("Deleting uninitialized keyspace {keyspace_name:?}");
            std::fs::remove_dir_all(keyspace_path)?;
            continue;
        }

        let path = keyspaces_folder.join(keyspace_id.to_string());

        let mut recovered_config = KeyspaceCreateOptions::from_kvs(keyspace_id, &db.meta_keyspace)?;

        // Install compaction filter factory if needed
        if let Some(f) = db
            .config
            .compaction_filter_factory_assigner
            .as_ref()
            .and_then(|f| f(&keyspace_name))
        {
            recovered_config = recovered_config.with_compaction_filter_factory(f);
        }

        let base_config = lsm_tree::Config::new(
            path,
            db.supervisor.seqno.clone(),
            db.supervisor.snapshot_tracker.get_ref(),
        )
        .use_descriptor_table(db.config.descriptor_table.clone())
        .use_cache(db.config.cache.clone());

        let base_config = apply_to_base_config(base_config, &recovered_config);

        let tree = base_config.open()?;

        let keyspace = Keyspace::from_database(
            keyspace_id,
            db,
            tree,
            keyspace_name.clone(),
            recovered_config,
        );

        // Add keyspace to dictionary
        keyspaces_lock.insert(keyspace_name.clone(), keyspace.clone());

        log::trace!("Recovered keyspace {keyspace_name:?}");
    }

    db.keyspace_id_counter.set(highest_keyspace_id + 1);

    log::trace!(
        "Set keyspace id counter to {}",
        db.keyspace_id_counter.get(),
    );

    Ok(())
}

/// ANNULUS 6: the place of a keyspace's items, looked up once for each journal and not for each item
struct Target {
    keyspace: Keyspace,
    memtable: Arc<Memtable>,
    persisted_seqno: Option<SeqNo>,

    /// The highest seqno that the journal has of the keyspace
    lsn: SeqNo,

    /// Items that are not in the memtable yet
    pending: Vec<InternalValue>,
}

impl Target {
    fn look_up(keyspace: &Keyspace, lsn: SeqNo) -> Self {
        Self {
            keyspace: keyspace.clone(),
            memtable: keyspace.tree.active_memtable(),
            persisted_seqno: keyspace.tree.get_highest_persisted_seqno(),
            lsn,
            pending: Vec::new(),
        }
    }
}

/// The most items, and the most bytes of keys and values, that wait to be inserted
const PENDING_ITEMS_MAX: usize = 1 << 16;
const PENDING_BYTES_MAX: usize = 4 << 20;

/// ANNULUS 6: the replay of one journal into the active memtables
pub(crate) struct Replay<'a> {
    db: &'a Database,
    keyspaces: &'a Keyspaces,

    /// `None` for keyspaces that were deleted
    targets: BTreeMap<InternalKeyspaceId, Option<Target>>,

    /// Of all targets together
    pending_items: usize,
    pending_bytes: usize,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(db: &'a Database, keyspaces: &'a Keyspaces) -> Self {
        Self {
            db,
            keyspaces,
            targets: BTreeMap::new(),
            pending_items: 0,
            pending_bytes: 0,
        }
    }

    /// Replays all batches of a journal. Returns the bytes of its whole batches.
    pub(crate) fn run(&mut self, mut reader: JournalBatchReader) -> crate::Result<u64> {
        let mut position = 0;

        while let Some(batch) = reader.next() {
            self.apply(batch?)?;

            // ANNULUS 7: whoever waits is told how far it is
            if let Some(on_replay) = &self.db.config.on_replay {
                on_replay(reader.position() - position);
            }
            position = reader.position();
        }

        self.insert_pending();

        Ok(position)
    }

    fn target(
        &mut self,
        id: InternalKeyspaceId,
        seqno: SeqNo,
    ) -> crate::Result<Option<&mut Target>> {
        use std::collections::btree_map::Entry;

        let target = match self.targets.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let name = self.db.meta_keyspace.resolve_id(id)?;
                let keyspace = name.and_then(|name| self.keyspaces.get(&name));
                unknown.insert(keyspace.map(|keyspace| Target::look_up(keyspace, seqno)))
            }
        };

        Ok(target.as_mut())
    }

    fn apply(&mut self, batch: Batch) -> crate::Result<()> {
        let seqno = batch.seqno;

        for item in batch.items {
            let Some(target) = self.target(item.keyspace_id, seqno)? else {
                continue;
            };

            target.lsn = target.lsn.max(seqno);

            // NOTE: Skip items that were already flushed, otherwise the next flush
            // writes them again into a table that overlaps the existing one
            if target
                .persisted_seqno
                .is_some_and(|persisted| seqno <= persisted)
            {
                continue;
            }

            let value = match item.value_type {
                ValueType::Value => InternalValue::from_components(
                    item.key,
                    item.value,
                    seqno,
                    ValueType::Value,
                ),
                ValueType::Tombstone => InternalValue::new_tombstone(item.key, seqno),
                ValueType::WeakTombstone => InternalValue::new_weak_tombstone(item.key, seqno),
                ValueType::Indirection => {
                    unreachable!()
                }
            };

            let bytes = value.key.user_key.len() + value.value.len();
            target.pending.push(value);
            self.pending_items += 1;
            self.pending_bytes += bytes;

            if self.pending_items >= PENDING_ITEMS_MAX || self.pending_bytes >= PENDING_BYTES_MAX {
                self.insert_pending();
            }
        }

        if !batch.cleared_keyspaces.is_empty() {
            self.insert_pending();
        }

        for keyspace_id in batch.cleared_keyspaces {
            let Some(target) = self.target(keyspace_id, seqno)? else {
                continue;
            };

            target.keyspace.tree.clear().inspect_err(|e| {
                log::error!("Keyspace clear failed during recovery: {e}");
            })?;

            *target = Target::look_up(&target.keyspace, target.lsn.max(seqno));
        }

        Ok(())
    }

    /// Inserts what waits, in the order of the keys: then a search for the place of a key passes entries
    /// that the last one has just brought into the processor's cache
    fn insert_pending(&mut self) {
        for target in self.targets.values_mut().flatten() {
            target.pending.sort_unstable_by(|a, b| a.key.cmp(&b.key));

            for value in target.pending.drain(..) {
                target.memtable.insert(value);
            }
        }

        self.pending_items = 0;
        self.pending_bytes = 0;
    }

    /// The highest id of a keyspace in the journal
    pub(crate) fn highest_keyspace_id(&self) -> InternalKeyspaceId {
        self.targets.keys().next_back().copied().unwrap_or_default()
    }

    /// The highest seqno that the journal has of each keyspace
    fn watermarks(self) -> Vec<EvictionWatermark> {
        self.targets
            .into_values()
            .flatten()
            .map(|target| EvictionWatermark {
                keyspace: target.keyspace,
                lsn: target.lsn,
            })
            .collect()
    }
}

/// ANNULUS 7: seals the active journal and all memtables, so that the workers write out what was
/// replayed and the next start has nothing to replay. If there is no room for another journal, all
/// stays as it is.
pub(crate) fn seal_replayed(db: &Database, keyspaces: &Keyspaces) -> crate::Result<()> {
    let mut writer = db.supervisor.journal.get_writer()?;
    let active = writer.path.clone();

    #[expect(clippy::expect_used)]
    let mut journal_manager = db
        .supervisor
        .journal_manager
        .write()
        .expect("lock is poisoned");

    let watermarks = db.supervisor.build_seqno_map(keyspaces);

    if let Err(e) = journal_manager.rotate_journal(&mut writer, watermarks) {
        if writer.path != active {
            return Err(e);
        }

        log::warn!("The replayed journal is not sealed: {e}");
        return Ok(());
    }

    for keyspace in keyspaces.values() {
        if let Some(sealed) = keyspace.tree.rotate_memtable() {
            // ANNULUS 5
            db.supervisor.write_buffers.seal(keyspace.id, &sealed);
        }
    }

    Ok(())
}

pub fn recover_sealed_memtables(
    db: &Database,
    sealed_journal_paths: &[PathBuf],
) -> crate::Result<()> {
    let mut highest_encountered_keyspace_id = 0;

    #[expect(clippy::expect_used)]
    let mut journal_manager_lock = db
        .supervisor
        .journal_manager
        .write()
        .expect("lock is poisoned");

    #[expect(clippy::expect_used)]
    let keyspaces_lock = db.supervisor.keyspaces.read().expect("lock is poisoned");

    for journal_path in sealed_journal_paths {
        log::debug!("Recovering sealed journal: {}", journal_path.display());

        let journal_size = journal_path.metadata()?.len();

        log::debug!("Replaying sealed journal at {}", journal_path.display());

        let raw_reader = JournalReader::new(journal_path)?;
        let reader = JournalBatchReader::new(raw_reader);

        let mut replay = Replay::new(db, &keyspaces_lock);
        replay.run(reader)?;

        highest_encountered_keyspace_id =
            highest_encountered_keyspace_id.max(replay.highest_keyspace_id());

        let watermarks = replay.watermarks();

        log::debug!("Sealing recovered memtables");
        let mut recovered_count = 0;

        for wm in &watermarks {
            let tree = &wm.keyspace.tree;

            let keyspace_lsn = tree.get_highest_persisted_seqno();

            // IMPORTANT: Apply the sealed memtable only if it contains data newer than the
            // keyspace's persisted LSN.
            let should_skip_sealed_memtable =
                keyspace_lsn.is_some_and(|keyspace_lsn| keyspace_lsn >= wm.lsn);

            if should_skip_sealed_memtable {
                log::trace!(
                    "Keyspace {:?} has higher seqno ({keyspace_lsn:?}), skipping",
                    wm.keyspace.name,
                );

                tree.clear_active_memtable();
            } else if let Some(sealed_memtable) = tree.rotate_memtable() {
                log::trace!("Sealed active memtable of keyspace {:?}", wm.keyspace.name);

                assert_eq!(
                    Some(wm.lsn),
                    sealed_memtable.get_highest_seqno(),
                    "memtable lsn does not match what was recovered - this is a bug",
                );

                // Maybe the memtable has a higher seqno, so try to set to maximum
                let maybe_next_seqno = tree.get_highest_seqno().map(|x| x + 1).unwrap_or_default();
                db.supervisor.seqno.fetch_max(maybe_next_seqno);

                log::debug!("Database seqno is now {}", db.supervisor.seqno.get());

                // IMPORTANT: Add sealed memtable size to current write buffer size
                db.supervisor
                    .write_buffer_size
                    .allocate(sealed_memtable.size());

                // ANNULUS 5
                db.supervisor
                    .write_buffers
                    .add_sealed(wm.keyspace.id, &sealed_memtable);

                // TODO: unit test write buffer size after recovery

                recovered_count += 1;
            }
        }

        log::debug!("Recovered {recovered_count} sealed memtables");

        // IMPORTANT: Add sealed journal to journal manager
        journal_manager_lock.enqueue(crate::journal::manager::Item {
            watermarks,
            path: journal_path.clone(),
            size_in_bytes: journal_size,
        });

        log::debug!("Requeued sealed journal at {}", journal_path.display());
    }

    db.keyspace_id_counter
        .fetch_max(highest_encountered_keyspace_id + 1);

    log::trace!(
        "Set keyspace id counter to {}",
        db.keyspace_id_counter.get(),
    );

    Ok(())
}
