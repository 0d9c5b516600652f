//! The guardrails of SELECT: of the query before it runs, and of what was read for a page.

use cql::error::{CqlError, ErrorKind};
use storage::read::ClusteringSlice;

use super::access::PartitionAccess;
use super::failed::{READ_SIZE, TOO_MANY_TOMBSTONES, read_failure};
use super::partitions::WantedPartitions;
use super::plan::ResolvedSelect;
use crate::guardrails::{
    Guardrail, Guardrails, ThresholdViolation, ValueLocation, ViolationMessage, warn,
};
use crate::statement::ExecutionParameters;

/// The most characters of a query's text in a message.
const TEXT_CHARS_MAX: usize = 512;

/// The guardrails of one execution of a SELECT.
pub(super) struct ReadGuardrails<'a> {
    pub guardrails: &'a Guardrails,
    pub plan: &'a ResolvedSelect,
    pub parameters: &'a ExecutionParameters,
}

/// The figures of what was read for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageReadStats {
    pub rows: u64,
    pub tombstones: u64,
    /// The token of the last partition.
    pub token: i64,
}

impl ReadGuardrails<'_> {
    /// Looks at the size of the page, and at the keys that `IN` makes.
    ///
    /// # Errors
    /// If one of them is above a threshold for refusals.
    pub(super) fn check_question(
        &self,
        partitions: &WantedPartitions,
        slices: &[ClusteringSlice],
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        if self.plan.selected.is_system {
            return Ok(());
        }
        let name = &self.plan.selected.table.name;
        let page = self.parameters.page_size.unwrap_or(0);
        let of_page = |violation: ThresholdViolation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "Aborting query for table {name}, page size {page} exceeds fail threshold of {threshold}."
                ),
                false => format!(
                    "Query for table {name} with page size {page} exceeds warning threshold of {threshold}."
                ),
            }
        };
        self.check(Guardrail::PageSize, page, of_page, warnings)?;
        if let WantedPartitions::Keys(keys) = partitions
            && keys.len() > 1
        {
            let count = keys.len();
            let of_keys = |violation: ThresholdViolation| {
                let threshold = violation.threshold;
                match violation.is_failure {
                    true => format!(
                        "Aborting query with partition keys in IN clause on table {name}, number of partition keys \
                         {count} exceeds fail threshold of {threshold}."
                    ),
                    false => format!(
                        "Query with partition keys in IN clause on table {name}, with number of partition keys \
                         {count} exceeds warning threshold of {threshold}."
                    ),
                }
            };
            self.check(Guardrail::PartitionKeysInSelect, count, of_keys, warnings)?;
            self.check_product("partition key", count, warnings)?;
        }
        match slices.len() {
            0 | 1 => Ok(()),
            count => self.check_product("clustering key", count, warnings),
        }
    }

    fn check_product(
        &self,
        which: &str,
        count: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let of_product = |violation: ThresholdViolation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "Aborting query because the cartesian product of the IN restrictions on {which} produces {count} \
                     values, this exceeds fail threshold of {threshold}."
                ),
                false => format!(
                    "The cartesian product of the IN restrictions on {which} produces {count} values, this exceeds \
                     warning threshold of {threshold}."
                ),
            }
        };
        let guardrail = Guardrail::InSelectCartesianProduct;
        self.check(guardrail, count, of_product, warnings)
    }

    /// The number of tombstones at which a read is broken off.
    pub(super) fn tombstones_max(&self) -> u64 {
        let table = &self.plan.selected.table;
        // A reader of a change log goes over what has expired. A row of aggregates is made of more
        // than a page.
        if table.log_of.is_some() || self.plan.is_one_group() {
            return u64::MAX;
        }
        let limits = self.guardrails.limits(Guardrail::Tombstones);
        limits.fail.unwrap_or(u64::MAX)
    }

    /// Looks at the tombstones that were passed and at the bytes of the page.
    ///
    /// # Errors
    /// If the page is above the threshold for refusals.
    pub(super) fn check_read(
        &self,
        read: PageReadStats,
        bytes: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        if self.plan.selected.is_system {
            return Ok(());
        }
        let of_tombstones = |_: ThresholdViolation| {
            format!(
                "Read {} live rows and {} tombstone cells for query {}; token {} (see tombstone_warn_threshold)",
                read.rows,
                read.tombstones,
                self.text(),
                read.token
            )
        };
        let limits = self.guardrails.limits(Guardrail::Tombstones);
        // What may pass more than the threshold for failures, such as a reader of a change log,
        // only gets a warning.
        let counted = read.tombstones.min(limits.fail.unwrap_or(u64::MAX));
        let judged = self.judge(Guardrail::Tombstones, counted, of_tombstones);
        if let Some(ViolationMessage::Warned(warning)) = judged {
            warn(warnings, warning);
        }
        let table = &self.plan.selected.table;
        let of_bytes = |violation: ThresholdViolation| {
            format!(
                "Read on table {}.{} has exceeded the size {} threshold of {} bytes",
                table.keyspace,
                table.name,
                violation.word(),
                grouped(violation.threshold)
            )
        };
        match self.judge(Guardrail::ReadSize, bytes as u64, of_bytes) {
            None => Ok(()),
            Some(ViolationMessage::Warned(warning)) => {
                warn(warnings, warning);
                Ok(())
            }
            Some(ViolationMessage::Refused(error)) => {
                Err(read_failure(self.parameters, READ_SIZE, error))
            }
        }
    }

    /// The error of a read, which is noted if the read was broken off because of tombstones.
    pub(super) fn noted(&self, error: CqlError) -> CqlError {
        if !matches!(error.kind, ErrorKind::ReadFailure { .. }) {
            return error;
        }
        let limits = self.guardrails.limits(Guardrail::Tombstones);
        let above = limits.fail.map_or(u64::MAX, |fail| fail.saturating_add(1));
        let message = |_: ThresholdViolation| {
            format!(
                "Scanned over {above} tombstones for query {}; query aborted (see tombstone_failure_threshold)",
                self.text()
            )
        };
        self.judge(Guardrail::Tombstones, above, message);
        read_failure(self.parameters, TOO_MANY_TOMBSTONES, error.message)
    }

    fn check(
        &self,
        guardrail: Guardrail,
        value: usize,
        message: impl FnOnce(ThresholdViolation) -> String,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let guardrails = self.guardrails;
        guardrails.check(guardrail, value as u64, self.place(), message, warnings)
    }

    fn judge(
        &self,
        guardrail: Guardrail,
        value: u64,
        message: impl FnOnce(ThresholdViolation) -> String,
    ) -> Option<ViolationMessage> {
        self.guardrails
            .judge(guardrail, value, self.place(), message)
    }

    fn place(&self) -> ValueLocation<'_> {
        ValueLocation {
            keyspace: &self.plan.selected.table.keyspace,
            table: &self.plan.selected.table.name,
            ..ValueLocation::default()
        }
    }

    /// The query as text, or its beginning.
    fn text(&self) -> String {
        let plan = self.plan;
        let table = &plan.selected.table;
        let columns = plan.projection.columns.iter();
        let columns: Vec<&str> = columns.map(|column| &*column.name).collect();
        let (PartitionAccess::Keys(keys) | PartitionAccess::Tokens(keys)) = &plan.access.partitions;
        let clustering = &plan.access.clustering;
        let relations = keys
            .iter()
            .chain(&clustering.values)
            .chain(&clustering.bounds);
        let relations = relations.chain(&plan.access.filters);
        let relations: Vec<&str> = relations.map(|relation| &*relation.text).collect();
        let mut text = format!(
            "SELECT {} FROM {}.{}",
            columns.join(", "),
            table.keyspace,
            table.name
        );
        if !relations.is_empty() {
            text.push_str(" WHERE ");
            text.push_str(&relations.join(" AND "));
        }
        text.chars().take(TEXT_CHARS_MAX).collect()
    }
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_stand_in_groups() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), shown);
        }
    }
}
