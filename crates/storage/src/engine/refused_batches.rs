//! Cuts off refused batches, which must not take effect later.
//!
//! fjall keeps the part of a batch that it could not write, and writes it when it closes the
//! journal, as there may be room by then. But that batch was refused to its writer, and readers of
//! a log may have passed its time. So a note is written before fjall closes the journal: the number
//! of the last batch that was acknowledged. The next opening of the directory cuts off all batches
//! after it, even if the process was killed in between.
//!
//! ```text
//! DIR/acknowledged   the number of a batch, as text and a newline
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::directory::sync_folder;
use super::journal;

const NOTE: &str = "acknowledged";
const DRAFT: &str = "acknowledged.new";

/// Writes the note that all batches after this number were refused.
pub(super) fn note(directory: &Path, acknowledged: u64) -> io::Result<()> {
    let draft = directory.join(DRAFT);
    let mut file = File::create(&draft)?;
    writeln!(file, "{acknowledged}")?;
    file.sync_all()?;
    fs::rename(draft, directory.join(NOTE))?;
    sync_folder(directory)
}

/// Cuts off the refused batches if there is a note, and removes it.
pub(super) fn settle(directory: &Path, database: &Path) -> io::Result<()> {
    let path = directory.join(NOTE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    // A note that can't be read was never whole, so fjall had not closed the journal yet.
    if let Ok(acknowledged) = text.trim_end().parse() {
        journal::cut_refused(database, acknowledged)?;
    }
    fs::remove_file(path)?;
    sync_folder(directory)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use bytes::Bytes;

    use super::super::{
        DiskEngine, EngineOptions, LockedDirectory, SpaceId, SpaceOptions, SyncTarget,
    };
    use super::*;

    fn open(path: &Path) -> DiskEngine {
        let options = EngineOptions {
            cache_bytes: 1 << 20,
            memtable_bytes: 1 << 20,
            write_buffer_bytes: 4 << 20,
            resident_bytes: 0,
        };
        let (directory, is_new) = LockedDirectory::open(path).unwrap();
        if is_new {
            directory.mark_made().unwrap();
        }
        DiskEngine::open(directory, options, Arc::new(|_, _| None)).unwrap()
    }

    fn put(engine: &DiskEngine, key: &'static str) {
        let key = Bytes::from_static(key.as_bytes());
        let batch = vec![(SpaceId::META, key, Some(Bytes::from_static(b"value")))];
        engine.commit(batch, SyncTarget::Disk, 0).unwrap();
    }

    fn get(engine: &DiskEngine, key: &str) -> bool {
        engine.get(SpaceId::META, key.as_bytes()).unwrap().is_some()
    }

    #[test]
    fn a_batch_that_the_engine_wrote_as_it_let_go_does_not_come_to_life() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let options = SpaceOptions {
            separate_values: false,
            resident: false,
        };
        engine.create_space(SpaceId::META, options).unwrap();
        put(&engine, "acknowledged");
        note(directory.path(), engine.written.load(Ordering::Acquire)).unwrap();
        // This batch is whole in the journal, and the process ends before it is cut off.
        put(&engine, "refused");
        drop(engine);

        let engine = open(directory.path());
        assert!(get(&engine, "acknowledged"));
        assert!(!get(&engine, "refused"));
        put(&engine, "next");
        drop(engine);
        let engine = open(directory.path());
        assert!(get(&engine, "next"), "it was said once");
    }
}
