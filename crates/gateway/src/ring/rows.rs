//! Rows of `system.local`, `system.peers` and `system.peers_v2`, with the gateways' addresses.
//!
//! Only the columns that drivers connect to are changed, and only under their own names. `peer`, by
//! which drivers look a row up again, and the addresses that nodes use among themselves stay as
//! they are. A row of peers whose node has no gateway is left out. A row stays if the address of
//! its node was not selected, as drivers cannot connect by it.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use cql::wire::{ColumnsMetadata, DecodeError, EncodedRows, RowsEncoder};
use value::{CqlType, Value};

use super::Ring;

/// The tables that tell of the cluster's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingTable {
    /// `system.local`: the node that was queried.
    Local,
    /// `system.peers`: the other nodes, without ports. Drivers use the port that they know.
    Peers,
    /// `system.peers_v2`: the other nodes, with ports.
    PeersV2,
}

impl RingTable {
    /// The table whose columns these are; `None` if it is another table.
    pub(crate) fn of(columns: &ColumnsMetadata) -> Option<RingTable> {
        let first = columns.columns.first()?;
        match (&*first.keyspace, &*first.table) {
            ("system", "local") => Some(RingTable::Local),
            ("system", "peers") => Some(RingTable::Peers),
            ("system", "peers_v2") => Some(RingTable::PeersV2),
            _ => None,
        }
    }

    /// The names of the columns with the address for clients and its port.
    fn address_columns(self) -> (&'static str, &'static str) {
        match self {
            RingTable::Local | RingTable::Peers => ("rpc_address", "rpc_port"),
            RingTable::PeersV2 => ("native_address", "native_port"),
        }
    }
}

/// Changes a result to that for drivers; `None` if it stays as it came, because it is of another
/// table or nothing in it has to be changed.
///
/// `prepared` are the columns for a result that comes without them. `own` is the address at which
/// the client reached this gateway.
///
/// # Errors
/// If the result is malformed.
pub(crate) fn translate_rows(
    rows: &EncodedRows,
    prepared: Option<&ColumnsMetadata>,
    ring: &Ring,
    own: SocketAddr,
) -> Result<Option<EncodedRows>, DecodeError> {
    let decoded = rows.decode()?;
    let Some(columns) = decoded.metadata.as_ref().or(prepared) else {
        return Ok(None);
    };
    let Some(table) = RingTable::of(columns) else {
        return Ok(None);
    };
    let place = AddressColumns::of(table, columns);
    let mut told = RowsEncoder::new(columns, decoded.metadata.is_none());
    let mut is_as_it_came = true;
    for mut row in decoded.rows {
        if row.len() != columns.columns.len() {
            return Err(DecodeError::Invalid(format!(
                "a row of {} cells where {} columns were prepared",
                row.len(),
                columns.columns.len()
            )));
        }
        let came = row.clone();
        let is_told = place.translate(&mut row, table, ring, own);
        is_as_it_came &= is_told && row == came;
        if is_told {
            row.iter().for_each(|cell| told.cell(cell.as_deref()));
            told.end_row();
        }
    }
    Ok((!is_as_it_came).then(|| told.finish(decoded.paging_state)))
}

/// The positions of the address for clients in a row; `None` for a column that was not selected.
struct AddressColumns {
    ip: Option<usize>,
    port: Option<usize>,
}

impl AddressColumns {
    fn of(table: RingTable, columns: &ColumnsMetadata) -> AddressColumns {
        let (ip, port) = table.address_columns();
        let position = |name: &str, cql_type: &CqlType| {
            columns
                .columns
                .iter()
                .position(|column| &*column.name == name && column.cql_type == *cql_type)
        };
        AddressColumns {
            ip: position(ip, &CqlType::Inet),
            port: position(port, &CqlType::Int),
        }
    }

    /// Changes a row; false if drivers must not see it.
    fn translate(
        &self,
        row: &mut [Option<Bytes>],
        table: RingTable,
        ring: &Ring,
        own: SocketAddr,
    ) -> bool {
        let ip = self.ip.map(|at| row[at].as_deref().and_then(read_ip));
        let port = self
            .port
            .and_then(|at| row[at].as_deref())
            .and_then(read_port);
        // `None` if the row does not say which node it is of, or if that node has no gateway.
        let known = ip.flatten().and_then(|ip| match port {
            Some(port) => ring.gateway_of(SocketAddr::new(ip, port)),
            None => ring.gateway_at(ip),
        });
        let gateway = match (table, known) {
            (RingTable::Local, gateway) => gateway.unwrap_or(own),
            (_, None) => return ip.is_none(),
            // The driver would use its own port for that gateway, too.
            (RingTable::Peers, Some(gateway)) if gateway.port() != own.port() => return false,
            (_, Some(gateway)) => gateway,
        };
        if let Some(at) = self.ip {
            row[at] = Some(Value::Inet(gateway.ip()).serialize());
        }
        if let Some(at) = self.port {
            row[at] = Some(Value::Int(i32::from(gateway.port())).serialize());
        }
        true
    }
}

fn read_ip(cell: &[u8]) -> Option<IpAddr> {
    match Value::deserialize(&CqlType::Inet, cell) {
        Ok(Value::Inet(ip)) => Some(ip),
        _ => None,
    }
}

fn read_port(cell: &[u8]) -> Option<u16> {
    match Value::deserialize(&CqlType::Int, cell) {
        Ok(Value::Int(port)) => u16::try_from(port).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cql::wire::ColumnSpec;

    use super::*;

    const OWN: &str = "10.0.1.1:9043";

    fn ring() -> Ring {
        let address = |text: &str| text.parse().unwrap();
        Ring::new([
            (address("10.0.0.1:9042"), address(OWN)),
            (address("10.0.0.2:9042"), address("10.0.1.2:9043")),
            (address("10.0.0.3:9042"), address("10.0.1.3:19043")),
        ])
        .unwrap()
    }

    fn columns(table: &str, names: &[&str]) -> ColumnsMetadata {
        let column = |name: &&str| ColumnSpec {
            keyspace: "system".into(),
            table: table.into(),
            name: (*name).into(),
            cql_type: match *name {
                name if name.ends_with("address") || name == "peer" => CqlType::Inet,
                name if name.ends_with("port") => CqlType::Int,
                _ => CqlType::Text,
            },
        };
        ColumnsMetadata {
            columns: names.iter().map(column).collect(),
        }
    }

    fn value(column: &ColumnSpec, text: &str) -> Bytes {
        match column.cql_type {
            CqlType::Inet => Value::Inet(text.parse().unwrap()),
            CqlType::Int => Value::Int(text.parse().unwrap()),
            _ => Value::Text(text.to_owned()),
        }
        .serialize()
    }

    /// Translates a result whose cells are given as text, `-` for null, back into text; `None` if
    /// it stays as it is.
    fn translated(
        table: &str,
        names: &[&str],
        rows: &[&[&str]],
        skip_metadata: bool,
    ) -> Option<Vec<Vec<String>>> {
        let columns = columns(table, names);
        let mut encoder = RowsEncoder::new(&columns, skip_metadata);
        for row in rows {
            for (column, text) in columns.columns.iter().zip(*row) {
                let cell = (*text != "-").then(|| value(column, text));
                encoder.cell(cell.as_deref());
            }
            encoder.end_row();
        }
        let rows = encoder.finish(Some(Bytes::from_static(b"more")));
        let own = OWN.parse().unwrap();
        let prepared = skip_metadata.then_some(&columns);
        let told = translate_rows(&rows, prepared, &ring(), own).unwrap()?;
        let told = told.decode().unwrap();
        assert_eq!(told.paging_state.as_deref(), Some(&b"more"[..]));
        assert_eq!(told.metadata, (!skip_metadata).then(|| columns.clone()));
        let text = |(column, cell): (&ColumnSpec, &Option<Bytes>)| match cell {
            None => "-".to_owned(),
            Some(cell) => {
                let value = Value::deserialize(&column.cql_type, cell).unwrap();
                value.to_literal().replace('\'', "")
            }
        };
        let texts = |row: &Vec<Option<Bytes>>| columns.columns.iter().zip(row).map(text).collect();
        Some(told.rows.iter().map(texts).collect())
    }

    #[test]
    fn peers_have_their_gateways_addresses_and_those_without_one_are_left_out() {
        for skip_metadata in [false, true] {
            let told = translated(
                "peers_v2",
                &["peer", "native_address", "native_port", "rack"],
                &[
                    &["10.9.0.2", "10.0.0.2", "9042", "a"],
                    &["10.9.0.3", "10.0.0.3", "9042", "b"],
                    &["10.9.0.4", "10.0.0.4", "9042", "c"],
                    &["10.9.0.2", "10.0.0.2", "9999", "another port"],
                    &["10.9.0.5", "-", "-", "not known yet"],
                ],
                skip_metadata,
            );
            let expected = [
                ["10.9.0.2", "10.0.1.2", "9043", "a"],
                ["10.9.0.3", "10.0.1.3", "19043", "b"],
            ];
            assert_eq!(told.unwrap(), expected);
        }
    }

    #[test]
    fn without_ports_a_gateway_on_another_port_is_left_out() {
        let told = translated(
            "peers",
            &["rpc_address", "peer"],
            &[&["10.0.0.2", "10.9.0.2"], &["10.0.0.3", "10.9.0.3"]],
            false,
        );
        assert_eq!(told.unwrap(), [["10.0.1.2", "10.9.0.2"]]);
    }

    #[test]
    fn the_local_row_has_the_address_that_the_client_came_to_unless_the_ring_names_another() {
        let names = ["key", "rpc_address", "rpc_port", "listen_address"];
        let known = ["local", "10.0.0.3", "9042", "10.0.0.3"];
        let stranger = ["local", "127.0.0.9", "9042", "127.0.0.9"];
        let told = translated("local", &names, &[&known, &stranger], false);
        let expected = [
            ["local", "10.0.1.3", "19043", "10.0.0.3"],
            ["local", "10.0.1.1", "9043", "127.0.0.9"],
        ];
        assert_eq!(told.unwrap(), expected);
    }

    #[test]
    fn a_row_that_does_not_say_where_its_node_is_stays() {
        let rows: &[&[&str]] = &[&["10.9.0.4", "a"]];
        assert_eq!(translated("peers_v2", &["peer", "rack"], rows, false), None);
    }

    #[test]
    fn columns_are_known_by_name_and_type() {
        let rows: &[&[&str]] = &[&["10.0.0.2"]];
        let mut columns = columns("peers", &["rpc_address"]);
        columns.columns[0].cql_type = CqlType::Text;
        let mut encoder = RowsEncoder::new(&columns, false);
        encoder.cell(Some(b"a text under this name"));
        encoder.end_row();
        let rows_as_text = encoder.finish(None);
        let own = OWN.parse().unwrap();
        let told = translate_rows(&rows_as_text, None, &ring(), own);
        assert_eq!(told, Ok(None));
        assert_eq!(
            translated("peers_of_shop", &["rpc_address"], rows, false),
            None
        );
    }

    #[test]
    fn rows_of_other_columns_than_prepared_are_an_error() {
        let columns = columns("peers", &["rpc_address"]);
        let two = super::tests::columns("peers", &["rpc_address", "rack"]);
        let mut encoder = RowsEncoder::new(&two, true);
        encoder.cell(None);
        encoder.cell(None);
        encoder.end_row();
        let own = OWN.parse().unwrap();
        let told = translate_rows(&encoder.finish(None), Some(&columns), &ring(), own);
        assert!(told.is_err());
    }
}
