//! Reads of a file past the page cache.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use super::scattered;
use crate::load::{AnsweredRequest, RepeatedRequest, RequestFailure};

/// The bytes of a read, and what its place and its buffer are aligned to.
const BLOCK: usize = 4096;

/// A file of random bytes on the disk that is measured. It goes with this value.
pub struct RandomFile {
    file: NamedTempFile,
    blocks: u64,
}

impl RandomFile {
    /// Writes a file of so many times 4 KiB into `directory`.
    pub fn make(directory: &Path, blocks: u64) -> anyhow::Result<RandomFile> {
        let named = || directory.display().to_string();
        let mut file = NamedTempFile::new_in(directory).with_context(named)?;
        let mut random = StdRng::seed_from_u64(1);
        let mut block = vec![0; BLOCK];
        for _ in 0..blocks {
            random.fill_bytes(&mut block);
            file.write_all(&block).with_context(named)?;
        }
        file.as_file().sync_all().with_context(named)?;
        Ok(RandomFile { file, blocks })
    }

    /// Makes workers that read blocks from all over the file.
    pub fn readers(&self, count: usize) -> anyhow::Result<Vec<DiskReader>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(self.file.path())
            .context("the file system does not read past the page cache (O_DIRECT)")?;
        let file = Arc::new(file);
        let reader = |_| DiskReader {
            file: Arc::clone(&file),
            blocks: self.blocks,
        };
        Ok((0..count).map(reader).collect())
    }
}

/// A worker that reads a block after the other.
pub struct DiskReader {
    file: Arc<File>,
    blocks: u64,
}

impl RepeatedRequest for DiskReader {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let file = Arc::clone(&self.file);
        let place = scattered(number, self.blocks) * BLOCK as u64;
        let read = tokio::task::spawn_blocking(move || {
            let mut buffer = vec![0_u8; 2 * BLOCK];
            let from = buffer.as_ptr().align_offset(BLOCK);
            file.read_exact_at(&mut buffer[from..from + BLOCK], place)
                .map(|()| AnsweredRequest::now())
        });
        match read.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(RequestFailure(format!("disk: {error}"))),
            Err(error) => Err(RequestFailure(format!("disk: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn blocks_are_read_from_all_over_the_file() {
        const BLOCKS: u64 = 16;
        // In the folder of the test's program, as not every file system of temporary files takes
        // such reads.
        let program = std::env::current_exe().unwrap();
        let directory = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let disk = RandomFile::make(directory.path(), BLOCKS).unwrap();
        let mut readers = disk.readers(1).unwrap();
        for number in [0, 1, BLOCKS - 1, BLOCKS, u64::MAX] {
            readers[0].perform(number).await.unwrap();
        }
    }
}
