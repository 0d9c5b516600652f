//! A snapshot read whole, and held against its checksums.

use std::path::Path;

use super::fault::Fault;
use super::frames::FrameReader;
use super::manifest::Manifest;

/// A generation may be replaced while it is read so often before what is wrong with it counts.
const LOOKS: usize = 3;

/// Reads what stands in the directory of an index, without opening it; the files read. `pass` hears of the bytes read, and says
/// whether to go on.
///
/// # Errors
/// The first file that is not as it was written.
pub fn check_place(place: &Path, pass: &mut dyn FnMut(u64) -> bool) -> Result<u64, Fault> {
    let mut look = 0;
    loop {
        look += 1;
        let Some(manifest) = Manifest::read(place)? else {
            // Nothing stands: it is being made, or deleted.
            return Ok(0);
        };
        match check_generation(place, manifest.generation, pass) {
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
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, Fault> {
    let directory = place.join(format!("generation-{generation}"));
    let mut wanted = true;
    let files = ann::check_snapshot(&directory, &mut |bytes| {
        wanted = pass(bytes);
        wanted
    })?;
    let mut rows = FrameReader::open(&directory.join("rows"))?;
    while wanted && let Some((_, payload)) = rows.next()? {
        wanted = pass(payload.len() as u64);
    }
    Ok(files + 1)
}
