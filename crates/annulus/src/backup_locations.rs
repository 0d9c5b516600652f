//! The setting with the locations that requests for backups may name.

use backup::LocationText;

use crate::exit::ProcessFailure;

/// The locations of these texts.
///
/// # Errors
/// If one is none.
pub fn locations(texts: Vec<String>) -> Result<Vec<LocationText>, ProcessFailure> {
    let parsed = texts.into_iter().map(|text| {
        let parsed = text.parse::<LocationText>();
        parsed.map_err(|error| ProcessFailure::Configuration(format!("backup-locations: {error}")))
    });
    parsed.collect()
}

/// The locations as they are shown.
pub fn shown_locations(locations: &[LocationText]) -> String {
    match locations.is_empty() {
        true => "any location".to_owned(),
        false => {
            let texts: Vec<String> = locations.iter().map(LocationText::to_string).collect();
            texts.join(",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_of_requests_are_read_at_the_start() {
        let read = |texts: &[&str]| locations(texts.iter().map(ToString::to_string).collect());
        assert!(read(&[]).unwrap().is_empty());
        assert_eq!(shown_locations(&[]), "any location");
        let both = read(&["s3:backups/shop", "file:/b"]).unwrap();
        assert_eq!(shown_locations(&both), "s3:backups/shop,file:///b");
        let error = read(&["backups"]).unwrap_err().to_string();
        assert!(
            error.contains("backup-locations") && error.contains("s3:"),
            "{error}"
        );
    }
}
