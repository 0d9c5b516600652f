//! The entries of secondary indexes.
//!
//! The entries of a record depend only on its values ([`crate::entries`]). So what a write does to
//! them follows from the record before it and after it, both of which the overlay has. A value that
//! expires takes its entry along, as the entry knows the time. Rows below a deletion of their range
//! or partition keep theirs until they are swept, in the same batch as the row.

use crate::StorageError;
use crate::commit::overlay::WriteOverlay;
use crate::entries::{changed_terms, terms};
use crate::key::term::{entry_key, entry_value};
use crate::layout::ResolvedSchema;

impl WriteOverlay<'_> {
    /// Adds and removes the entries of all records that the write has changed so far.
    pub(in crate::commit) fn derive_entries(
        &mut self,
        schema: &ResolvedSchema,
    ) -> Result<(), StorageError> {
        let (mut entries, mut times) = (Vec::new(), Vec::new());
        for (space, key, record) in self.write.changed_records() {
            let Ok(table) = schema.table(space.table()) else {
                continue;
            };
            if table.indexes.is_empty() {
                continue;
            }
            let Some(parts) = table.keys.split(key) else {
                continue;
            };
            let old = self.before(space, key)?;
            let expiry = table.expiry().map(|times| times.space);
            let untimed = table.expiry().map(|times| times.terms.term([&[][..]]));
            let untimed = untimed.transpose()?;
            for index in &table.indexes {
                // A time is noted whether it changed or not.
                if expiry == Some(index.space) {
                    for term in terms(table, index, parts, record)?.into_keys() {
                        // An empty value has no time, and sorts before all of them.
                        if untimed.as_ref() != Some(&term) {
                            times.push((index.space, entry_key(&term, key)?));
                        }
                    }
                }
                let changed = changed_terms(table, index, parts, &old, record)?;
                for (term, expires_at_s) in changed.put {
                    let value = entry_value(&term, expires_at_s);
                    entries.push((index.space, entry_key(&term, key)?, Some(value)));
                }
                for term in changed.gone {
                    entries.push((index.space, entry_key(&term, key)?, None));
                }
            }
        }
        for (space, key, value) in entries {
            self.write.put_entry(space, key, value);
        }
        for (space, key) in times {
            self.write.note_time(space, key);
        }
        Ok(())
    }
}
