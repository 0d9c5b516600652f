//! The native protocol v4: frames, requests, responses.
