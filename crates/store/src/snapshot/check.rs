//! Reads a whole snapshot and compares it with its checksums.

use std::path::Path;

use super::fault::PersistenceError;
use super::frames::FrameReader;
use super::manifest::Manifest;
use crate::identity::StructureClass;
use crate::indexes::check_files;

/// The number of tries. The faults of a generation don't count if it was replaced meanwhile, except
/// at the last try.
const LOOKS: usize = 3;

/// Reads the current snapshot in the directory of an index, without opening it. Returns the number
/// of files read. `pass` gets the number of bytes read and says whether to go on.
///
/// The first file that differs from what was written.
pub(crate) fn check_place(
    place: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, PersistenceError> {
    let mut look = 0;
    loop {
        look += 1;
        let Some(manifest) = Manifest::read(place)? else {
            // There is no snapshot: it is being made, or deleted.
            return Ok(0);
        };
        match check_generation(place, manifest.generation, manifest.class(), pass) {
            Ok(files) => return Ok(1 + files),
            Err(fault) => {
                let stands = Manifest::read(place)?.map(|manifest| manifest.generation);
                if stands == Some(manifest.generation) || look == LOOKS {
                    return Err(fault);
                }
            }
        }
    }
}

fn check_generation(
    place: &Path,
    generation: u64,
    class: StructureClass,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, PersistenceError> {
    let directory = place.join(format!("generation-{generation}"));
    let mut wanted = true;
    let files = check_files(class, &directory, &mut |bytes| {
        wanted = pass(bytes);
        wanted
    })?;
    let mut rows = FrameReader::open(&directory.join("rows"))?;
    while wanted && let Some((_, payload)) = rows.next()? {
        wanted = pass(payload.len() as u64);
    }
    Ok(files + 1)
}
