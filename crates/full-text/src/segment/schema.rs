//! The field of a segment, and how tantivy is to keep it.

use tantivy::IndexSettings;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;

/// The one field.
pub(crate) const TEXT: Field = Field::from_field_id(0);

/// The name of the analyzer that gives terms which were made before.
pub(crate) const GIVEN_TERMS: &str = "given";

/// The schema of an index with or without positions. Nothing is stored.
pub(crate) fn schema(positions: bool) -> Schema {
    let record = match positions {
        true => IndexRecordOption::WithFreqsAndPositions,
        false => IndexRecordOption::WithFreqs,
    };
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(GIVEN_TERMS)
        .set_index_option(record)
        .set_fieldnorms(true);
    let mut schema = Schema::builder();
    schema.add_text_field(
        "text",
        TextOptions::default().set_indexing_options(indexing),
    );
    schema.build()
}

/// No compression and no thread for documents that are stored: there are none.
pub(crate) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}
