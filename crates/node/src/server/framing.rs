//! The form of a connection's frames, which STARTUP chooses.

use cql::error::CqlError;
use cql::wire::{Compression, ProtocolVersion, SegmentForm, Startup};

/// The form of a connection's frames after the answer to STARTUP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    /// The version of every frame.
    pub version: ProtocolVersion,
    /// The compression of each frame by itself.
    pub frames: Option<Compression>,
    /// The form of the segments that hold the frames, if any do.
    pub segments: Option<SegmentForm>,
}

impl Framing {
    /// The form that a STARTUP of a version chooses.
    ///
    /// # Errors
    /// If it chooses an unknown compression, or one that the version does not have.
    pub fn chosen(version: ProtocolVersion, startup: &Startup) -> Result<Framing, CqlError> {
        let compression = startup.compression(version)?;
        Ok(match version {
            ProtocolVersion::V4 => Framing {
                version,
                frames: compression,
                segments: None,
            },
            ProtocolVersion::V5 => Framing {
                version,
                frames: None,
                segments: Some(SegmentForm::of(compression)),
            },
        })
    }

    /// The form of frames before there is agreement on one: those of a version, as they are.
    pub fn plain(version: ProtocolVersion) -> Framing {
        Framing {
            version,
            frames: None,
            segments: None,
        }
    }
}
