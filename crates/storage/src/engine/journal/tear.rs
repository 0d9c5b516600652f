//! Decides whether a batch was cut off while it was written, or was written whole and changed
//! afterwards.
//!
//! A killed process leaves the beginning of a batch, and zeros after it. A power cut leaves zeros
//! where a page or a sector was not written. A batch that ends with the trailer and has no such gap
//! was written whole.

use super::batch::TRAILER;

/// The unit that a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;
/// The unit that the kernel writes, perhaps before the later part of it was filled.
const PAGE_BYTES: u64 = 4096;

/// Whether `content` may be the rest of a write that was cut off. It begins at `offset` of the
/// file, where there is no whole batch, and ends at the last byte that is not zero.
pub(super) fn may_be_torn(content: &[u8], offset: u64, wrong_trailer: bool) -> bool {
    let ends_whole = content.ends_with(TRAILER) || wrong_trailer;
    !ends_whole || lacks_a_sector(content, offset) || lacks_the_end_of_a_page(content, offset)
}

fn lacks_a_sector(content: &[u8], offset: u64) -> bool {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(content.len() as u64) as usize;
    let (first, rest) = content.split_at(first);
    std::iter::once(first)
        .chain(rest.chunks(SECTOR_BYTES as usize))
        .any(|piece| piece.iter().all(|byte| *byte == 0))
}

fn lacks_the_end_of_a_page(content: &[u8], offset: u64) -> bool {
    let first = (PAGE_BYTES - offset % PAGE_BYTES) as usize;
    (first..content.len())
        .step_by(PAGE_BYTES as usize)
        .any(|boundary| content[boundary - 1] == 0)
}
