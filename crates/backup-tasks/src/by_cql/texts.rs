//! The texts of the statements.

use cql::quote::Identifier;
use schema::{Column, ColumnId, Table};

use super::cells::{AssignedPart, StatementForm};

/// The name of a table with its keyspace, quoted where needed.
pub(super) fn table_name(table: &Table) -> String {
    format!(
        "{}.{}",
        Identifier(&table.keyspace),
        Identifier(&table.name)
    )
}

/// The key columns of a row, or of the static columns of a partition.
pub(super) fn key_columns(table: &Table, is_static: bool) -> Vec<&Column> {
    let mut columns = table.partition_key();
    if !is_static {
        columns.extend(table.clustering_key());
    }
    columns
}

/// The relations of WHERE that name a row.
fn relations(table: &Table, is_static: bool) -> String {
    let columns = key_columns(table, is_static).into_iter();
    let relations: Vec<String> = columns
        .map(|column| format!("{} = ?", Identifier(&column.name)))
        .collect();
    relations.join(" AND ")
}

fn column_name(table: &Table, id: ColumnId) -> String {
    let column = table.column_by_id(id);
    column.map_or_else(String::new, |column| Identifier(&column.name).to_string())
}

/// The text of a statement of cells. Its markers: of an INSERT the key and the parts, then the time
/// and the time to live; of an UPDATE the time, the time to live, the parts and the key.
pub(super) fn of_cells(table: &Table, form: &StatementForm) -> String {
    let name = table_name(table);
    if form.is_insert {
        let keys = key_columns(table, form.is_static).into_iter();
        let mut columns: Vec<String> = keys
            .map(|column| Identifier(&column.name).to_string())
            .collect();
        let parts = form.parts.iter().filter_map(|part| match part {
            AssignedPart::Value(id) => Some(column_name(table, *id)),
            AssignedPart::Elements(_) | AssignedPart::Field(..) => None,
        });
        columns.extend(parts);
        let markers = vec!["?"; columns.len()].join(", ");
        let columns = columns.join(", ");
        return format!(
            "INSERT INTO {name} ({columns}) VALUES ({markers}) USING TIMESTAMP ? AND TTL ?"
        );
    }
    let parts: Vec<String> = form
        .parts
        .iter()
        .map(|part| assignment(table, *part))
        .collect();
    format!(
        "UPDATE {name} USING TIMESTAMP ? AND TTL ? SET {} WHERE {}",
        parts.join(", "),
        relations(table, form.is_static)
    )
}

fn assignment(table: &Table, part: AssignedPart) -> String {
    match part {
        AssignedPart::Value(id) => format!("{} = ?", column_name(table, id)),
        AssignedPart::Elements(id) => {
            let column = column_name(table, id);
            format!("{column} = {column} + ?")
        }
        AssignedPart::Field(id, position) => {
            let definition = table
                .column_by_id(id)
                .and_then(|it| it.cql_type.user_type());
            let fields = definition.map(|it| it.field_names.as_slice());
            let field = fields.and_then(|names| names.get(position));
            let field = field.map_or("", String::as_str);
            format!("{}.{} = ?", column_name(table, id), Identifier(field))
        }
    }
}

/// Reads one column of a row. Its markers are the key.
pub(super) fn read_column(table: &Table, column: ColumnId, is_static: bool) -> String {
    format!(
        "SELECT {} FROM {} WHERE {}",
        column_name(table, column),
        table_name(table),
        relations(table, is_static)
    )
}

/// Appends to a list: the markers are the time, the time to live, the elements and the key.
pub(super) fn append(table: &Table, column: ColumnId, is_static: bool) -> String {
    let form = StatementForm {
        is_insert: false,
        is_static,
        parts: vec![AssignedPart::Elements(column)],
    };
    of_cells(table, &form)
}

/// Increases a counter: the markers are the increase and the key.
pub(super) fn increase(table: &Table, column: ColumnId, is_static: bool) -> String {
    let name = column_name(table, column);
    format!(
        "UPDATE {} SET {name} = {name} + ? WHERE {}",
        table_name(table),
        relations(table, is_static)
    )
}

/// `CREATE TABLE` in the form that every CQL database knows: columns, key, order, and the times to
/// live. For one that refuses the options of the database that the table was in.
pub(super) fn plain_table(table: &Table) -> String {
    let columns = table.columns_in_select_order().into_iter();
    let columns: Vec<String> = columns
        .map(|column| {
            let is_static = match column.kind {
                schema::ColumnKind::Static => " static",
                _ => "",
            };
            format!(
                "{} {}{is_static}",
                Identifier(&column.name),
                column.cql_type
            )
        })
        .collect();
    let names = |columns: &[&Column]| -> Vec<String> {
        let columns = columns.iter();
        columns.map(|it| Identifier(&it.name).to_string()).collect()
    };
    let partition = names(&table.partition_key()).join(", ");
    let clustering = table.clustering_key();
    let mut key = vec![format!("({partition})")];
    key.extend(names(&clustering));
    let order: Vec<String> = clustering
        .iter()
        .map(|column| {
            let descending = matches!(
                column.kind,
                schema::ColumnKind::Clustering {
                    descending: true,
                    ..
                }
            );
            let word = if descending { "DESC" } else { "ASC" };
            format!("{} {word}", Identifier(&column.name))
        })
        .collect();
    let order = match order.is_empty() {
        true => String::new(),
        false => format!("CLUSTERING ORDER BY ({}) AND ", order.join(", ")),
    };
    format!(
        "CREATE TABLE {} ({}, PRIMARY KEY ({})) WITH {order}default_time_to_live = {} AND gc_grace_seconds = {}",
        table_name(table),
        columns.join(", "),
        key.join(", "),
        table.default_ttl_s,
        table.gc_grace_s
    )
}

#[cfg(test)]
mod tests {
    use super::super::cells::tests::table;
    use super::*;

    fn form(is_insert: bool, is_static: bool, parts: Vec<AssignedPart>) -> StatementForm {
        StatementForm {
            is_insert,
            is_static,
            parts,
        }
    }

    #[test]
    fn statements_name_key_and_parts_and_quote_what_needs_it() {
        let table = table();
        let id = |name: &str| table.column(name).unwrap().id;
        let insert = form(
            true,
            false,
            vec![AssignedPart::Value(id("a")), AssignedPart::Value(id("Odd"))],
        );
        assert_eq!(
            of_cells(&table, &insert),
            "INSERT INTO ks.t (p, c, a, \"Odd\") VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
        );
        let update = form(
            false,
            false,
            vec![
                AssignedPart::Value(id("a")),
                AssignedPart::Field(id("u"), 1),
                AssignedPart::Elements(id("m")),
            ],
        );
        assert_eq!(
            of_cells(&table, &update),
            "UPDATE ks.t USING TIMESTAMP ? AND TTL ? SET a = ?, u.\"B\" = ?, m = m + ? WHERE p = ? AND c = ?"
        );
        let of_static = form(false, true, vec![AssignedPart::Value(id("st"))]);
        assert_eq!(
            of_cells(&table, &of_static),
            "UPDATE ks.t USING TIMESTAMP ? AND TTL ? SET st = ? WHERE p = ?"
        );
        assert_eq!(
            read_column(&table, id("l"), false),
            "SELECT l FROM ks.t WHERE p = ? AND c = ?"
        );
        assert_eq!(
            increase(&table, id("Odd"), false),
            "UPDATE ks.t SET \"Odd\" = \"Odd\" + ? WHERE p = ? AND c = ?"
        );
    }

    #[test]
    fn a_plain_table_has_what_its_rows_need() {
        let text = plain_table(&table());
        assert!(
            text.starts_with("CREATE TABLE ks.t (p int, c int, "),
            "{text}"
        );
        assert!(text.contains("st text static"), "{text}");
        assert!(text.contains("PRIMARY KEY ((p), c)) WITH CLUSTERING ORDER BY (c ASC) AND "));
    }
}
