//! Names of objects in a location.

use std::fmt::Write as _;

/// The object that names the owner of a location.
pub const MARKER: &str = "annulus-backup.json";

/// The folder of manifests.
pub const META: &str = "meta";

/// The folder of schemas.
pub const SCHEMA: &str = "schema";

/// The folder of chunks.
pub const DATA: &str = "data";

/// The object of a point's manifest.
pub fn manifest(point: impl std::fmt::Display) -> String {
    format!("{META}/{point}.json")
}

/// The name of the point whose manifest an object is.
pub fn point_of(object: &str) -> Option<&str> {
    let name = object.strip_prefix(META)?.strip_prefix('/')?;
    name.strip_suffix(".json")
}

/// The folder of a point's schemas.
pub fn schemas(point: impl std::fmt::Display) -> String {
    format!("{SCHEMA}/{point}")
}

/// The object of a keyspace's schema. Characters that stores treat each in their own way are
/// written as `=` and their bytes in hex.
pub fn schema(point: impl std::fmt::Display, keyspace: &str) -> String {
    let mut object = schemas(point) + "/";
    for byte in keyspace.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            object.push(char::from(byte));
        } else {
            write!(object, "={byte:02x}").unwrap_or_default();
        }
    }
    object + ".cql"
}

/// The object of a chunk, by the hex digits of its digest.
pub fn chunk(digest: &str) -> String {
    let shard = digest.get(..2).unwrap_or_default();
    format!("{DATA}/{shard}/{digest}")
}

/// The hex digits of the digest that a chunk's object is named by.
pub fn digest_of(object: &str) -> Option<&str> {
    let (_, digest) = object.rsplit_once('/')?;
    (chunk(digest) == object).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_read_back() {
        assert_eq!(point_of(&manifest("p")), Some("p"));
        assert_eq!(point_of("meta/x.txt"), None);
        assert_eq!(chunk("abcd"), "data/ab/abcd");
        assert_eq!(digest_of("data/ab/abcd"), Some("abcd"));
        assert_eq!(digest_of("data/ba/abcd"), None);
    }

    #[test]
    fn keyspaces_of_any_name_have_an_object() {
        assert_eq!(schema("p", "shop_1"), "schema/p/shop_1.cql");
        assert_eq!(schema("p", "a/../b"), "schema/p/a=2f=2e=2e=2fb.cql");
    }
}
