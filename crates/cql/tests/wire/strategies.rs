//! Strategies for arbitrary messages of the protocol.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind, ReplicaFailures};
use cql::wire::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;
use value::{CqlType, UserType};

pub fn bytes(length_max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=length_max).prop_map(Bytes::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zé ]{0,12}", "[a-z]{600,700}"]
}

fn consistency() -> impl Strategy<Value = Consistency> {
    select(Consistency::EVERY.to_vec())
}

fn bound_value() -> impl Strategy<Value = BoundValue> {
    prop_oneof![
        Just(BoundValue::Null),
        Just(BoundValue::Unset),
        bytes(40).prop_map(BoundValue::Value),
    ]
}

fn values() -> impl Strategy<Value = MarkerValues> {
    prop_oneof![
        vec(bound_value(), 0..6).prop_map(MarkerValues::Positional),
        // At least one value: an empty list of named values is read back as positional.
        vec((text(), bound_value()), 1..6).prop_map(MarkerValues::Named),
    ]
}

fn timestamp() -> impl Strategy<Value = Option<i64>> {
    option::of(i64::MIN + 1..=i64::MAX)
}

/// A keyspace and a present, which only version 5 has.
fn of_v5() -> impl Strategy<Value = (Option<String>, Option<u32>)> {
    (option::of(text()), option::of(any::<u32>()))
}

prop_compose! {
    fn parameters()(
        consistency in consistency(),
        values in values(),
        skip_metadata in any::<bool>(),
        page_size in option::of(1..=i32::MAX as u32),
        paging_state in option::of(bytes(30)),
        serial_consistency in option::of(consistency()),
        timestamp in timestamp(),
        (keyspace, now_in_seconds) in of_v5(),
    ) -> QueryParameters {
        QueryParameters {
            consistency, values, skip_metadata, page_size, paging_state, serial_consistency, timestamp,
            keyspace, now_in_seconds,
        }
    }
}

fn batch_statement() -> impl Strategy<Value = BatchStatement> {
    let statement = prop_oneof![
        text().prop_map(BatchedStatement::Text),
        bytes(20).prop_map(BatchedStatement::Prepared),
    ];
    (statement, vec(bound_value(), 0..4))
        .prop_map(|(statement, values)| BatchStatement { statement, values })
}

prop_compose! {
    fn batch()(
        kind in select(vec![BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter]),
        statements in vec(batch_statement(), 0..6),
        consistency in consistency(),
        serial_consistency in option::of(consistency()),
        timestamp in timestamp(),
        (keyspace, now_in_seconds) in of_v5(),
    ) -> BatchRequest {
        BatchRequest { kind, statements, consistency, serial_consistency, timestamp, keyspace, now_in_seconds }
    }
}

pub fn version() -> impl Strategy<Value = ProtocolVersion> {
    select(ProtocolVersion::EVERY.to_vec())
}

/// A request without the fields that its version has no place for.
pub fn within(version: ProtocolVersion, mut request: Request) -> Request {
    if version == ProtocolVersion::V5 {
        return request;
    }
    match &mut request {
        Request::Query { parameters, .. } => {
            (parameters.keyspace, parameters.now_in_seconds) = (None, None);
        }
        Request::Prepare { keyspace, .. } => *keyspace = None,
        Request::Execute {
            result_metadata_id,
            parameters,
            ..
        } => {
            *result_metadata_id = None;
            (parameters.keyspace, parameters.now_in_seconds) = (None, None);
        }
        Request::Batch(batch) => (batch.keyspace, batch.now_in_seconds) = (None, None),
        _ => {}
    }
    request
}

/// A response without the fields that its version has no place for.
pub fn response_within(version: ProtocolVersion, mut response: Response) -> Response {
    let is_v5 = version == ProtocolVersion::V5;
    match &mut response {
        Response::Error(error) => {
            let mut kind = error.kind.clone();
            if let ErrorKind::WriteTimeout {
                contentions,
                write_type,
                ..
            } = &mut kind
                && (!is_v5 || *write_type != "CAS")
            {
                *contentions = None;
            }
            if let ErrorKind::ReadFailure { failures, .. }
            | ErrorKind::WriteFailure { failures, .. } = &mut kind
            {
                *failures = match is_v5 {
                    true => failures.clone(),
                    false => ReplicaFailures::Count(failures.count()),
                };
            }
            error.kind = match kind {
                ErrorKind::CasWriteUnknown {
                    consistency,
                    received,
                    block_for,
                } if !is_v5 => ErrorKind::WriteTimeout {
                    consistency,
                    received,
                    block_for,
                    write_type: "CAS",
                    contentions: None,
                },
                kind => kind,
            };
        }
        Response::Rows(rows) if !is_v5 => rows.new_metadata_id = None,
        Response::Prepared(prepared) if !is_v5 => prepared.result_metadata_id = None,
        _ => {}
    }
    response
}

pub fn request() -> impl Strategy<Value = Request> {
    let kinds = vec![
        EventKind::TopologyChange,
        EventKind::StatusChange,
        EventKind::SchemaChange,
    ];
    prop_oneof![
        vec((text(), text()), 0..5).prop_map(|options| Request::Startup(Startup { options })),
        Just(Request::Options),
        (text(), parameters()).prop_map(|(statement, parameters)| Request::Query {
            statement,
            parameters
        }),
        (text(), option::of(text())).prop_map(|(statement, keyspace)| Request::Prepare {
            statement,
            keyspace
        }),
        (bytes(20), bytes(20), parameters()).prop_map(|(id, columns, parameters)| {
            Request::Execute {
                id,
                result_metadata_id: Some(columns),
                parameters,
            }
        }),
        batch().prop_map(Request::Batch),
        vec(select(kinds), 0..4).prop_map(|events| Request::Register { events }),
        option::of(bytes(20)).prop_map(|token| Request::AuthResponse {
            token: token.into()
        }),
    ]
}

/// A type that the wire can carry exactly. A collection is frozen if it lies in another type than a
/// vector; an outermost one is not.
fn cql_type() -> impl Strategy<Value = CqlType> {
    let simple = select(vec![
        CqlType::Ascii,
        CqlType::Bigint,
        CqlType::Duration,
        CqlType::Float,
        CqlType::Text,
        CqlType::Timeuuid,
        CqlType::Varint,
    ]);
    let nested = simple.prop_recursive(4, 12, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(|element| CqlType::List {
                element,
                frozen: true
            }),
            boxed.clone().prop_map(|element| CqlType::Set {
                element,
                frozen: true
            }),
            (boxed.clone(), boxed.clone()).prop_map(|(key, value)| CqlType::Map {
                key,
                value,
                frozen: true
            }),
            vec(inner.clone(), 1..3).prop_map(CqlType::Tuple),
            vec(inner, 1..3).prop_map(user_type),
            (boxed, 1..=16_000u16).prop_map(|(element, dimensions)| CqlType::Vector {
                element: Box::new(thawed(*element)),
                dimensions
            }),
        ]
    });
    nested.prop_map(thawed)
}

fn user_type(field_types: Vec<CqlType>) -> CqlType {
    let names = 0..field_types.len();
    let definition = UserType {
        keyspace: "ks".to_owned(),
        name: "ü".to_owned(),
        field_names: names.map(|position| format!("Field {position}")).collect(),
        field_types,
    };
    CqlType::UserType {
        definition: Arc::new(definition),
        frozen: true,
    }
}

/// The type with its outermost collection or user type not frozen.
fn thawed(mut cql_type: CqlType) -> CqlType {
    if let CqlType::List { frozen, .. }
    | CqlType::Set { frozen, .. }
    | CqlType::Map { frozen, .. }
    | CqlType::UserType { frozen, .. } = &mut cql_type
    {
        *frozen = false;
    }
    cql_type
}

fn column() -> impl Strategy<Value = ColumnSpec> {
    (select(vec!["t", "u"]), text(), cql_type()).prop_map(|(table, name, cql_type)| ColumnSpec {
        keyspace: "ks".into(),
        table: table.into(),
        name: name.into(),
        cql_type,
    })
}

fn metadata() -> impl Strategy<Value = ColumnsMetadata> {
    vec(column(), 0..5).prop_map(|columns| ColumnsMetadata { columns })
}

fn rows() -> impl Strategy<Value = EncodedRows> {
    vec(column(), 1..5).prop_flat_map(|columns| {
        let row = vec(option::of(bytes(50)), columns.len());
        let metadata = ColumnsMetadata { columns };
        let ids = (option::of(bytes(20)), option::of(bytes(20)));
        (vec(row, 0..20), any::<bool>(), ids).prop_map(
            move |(rows, skip_metadata, (paging_state, new_metadata_id))| {
                let mut encoder = RowsEncoder::new(&metadata, skip_metadata);
                for row in rows {
                    row.iter().for_each(|cell| encoder.cell(cell.as_deref()));
                    encoder.end_row();
                }
                let mut rows = encoder.finish(paging_state);
                rows.new_metadata_id = new_metadata_id;
                rows
            },
        )
    })
}

fn schema_change() -> impl Strategy<Value = SchemaChange> {
    let change = select(vec![
        SchemaChangeKind::Created,
        SchemaChangeKind::Updated,
        SchemaChangeKind::Dropped,
    ]);
    let target = prop_oneof![
        Just(SchemaTarget::Keyspace),
        text().prop_map(SchemaTarget::Table),
        text().prop_map(SchemaTarget::Type),
        (text(), vec(text(), 0..3))
            .prop_map(|(name, arguments)| SchemaTarget::Function { name, arguments }),
        (text(), vec(text(), 0..3))
            .prop_map(|(name, arguments)| SchemaTarget::Aggregate { name, arguments }),
    ];
    (change, text(), target).prop_map(|(change, keyspace, target)| SchemaChange {
        change,
        keyspace,
        target,
    })
}

fn event() -> impl Strategy<Value = ServerEvent> {
    let topology = select(vec![
        TopologyChange::NewNode,
        TopologyChange::RemovedNode,
        TopologyChange::MovedNode,
    ]);
    let status = select(vec![StatusChange::Up, StatusChange::Down]);
    prop_oneof![
        (topology, any::<std::net::SocketAddrV4>()).prop_map(|(change, node)| {
            ServerEvent::TopologyChange {
                change,
                node: node.into(),
            }
        }),
        (status, any::<std::net::Ipv6Addr>(), any::<u16>()).prop_map(|(change, ip, port)| {
            ServerEvent::StatusChange {
                change,
                node: (ip, port).into(),
            }
        }),
        schema_change().prop_map(ServerEvent::SchemaChange),
    ]
}

fn failures() -> impl Strategy<Value = ReplicaFailures> {
    let reason = (any::<std::net::IpAddr>(), any::<u16>());
    vec(reason, 0..4).prop_map(ReplicaFailures::Reasons)
}

/// A kind of error without fields.
fn kind_without_fields() -> impl Strategy<Value = ErrorKind> {
    select(vec![
        ErrorKind::ServerError,
        ErrorKind::ProtocolError,
        ErrorKind::BadCredentials,
        ErrorKind::Overloaded,
        ErrorKind::IsBootstrapping,
        ErrorKind::TruncateError,
        ErrorKind::SyntaxError,
        ErrorKind::Unauthorized,
        ErrorKind::Invalid,
        ErrorKind::ConfigError,
    ])
}

fn unavailable() -> impl Strategy<Value = ErrorKind> {
    any::<(u16, i32, i32)>().prop_map(|(consistency, required, alive)| ErrorKind::Unavailable {
        consistency,
        required,
        alive,
    })
}

fn error() -> impl Strategy<Value = CqlError> {
    let kind = prop_oneof![
        kind_without_fields(),
        unavailable(),
        (
            any::<(u16, i32, i32)>(),
            select(vec!["SIMPLE", "CAS"]),
            option::of(any::<u16>())
        )
            .prop_map(
                |((consistency, received, block_for), write_type, contentions)| {
                    ErrorKind::WriteTimeout {
                        consistency,
                        received,
                        block_for,
                        write_type,
                        contentions,
                    }
                }
            ),
        any::<(u16, i32, i32, bool)>().prop_map(
            |(consistency, received, block_for, data_present)| ErrorKind::ReadTimeout {
                consistency,
                received,
                block_for,
                data_present,
            }
        ),
        (any::<(u16, i32, i32, bool)>(), failures()).prop_map(
            |((consistency, received, block_for, data_present), failures)| {
                ErrorKind::ReadFailure {
                    consistency,
                    received,
                    block_for,
                    failures,
                    data_present,
                }
            }
        ),
        (any::<(u16, i32, i32)>(), failures()).prop_map(
            |((consistency, received, block_for), failures)| ErrorKind::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                write_type: "BATCH",
            }
        ),
        any::<(u16, i32, i32)>().prop_map(|(consistency, received, block_for)| {
            ErrorKind::CasWriteUnknown {
                consistency,
                received,
                block_for,
            }
        }),
        (text(), text(), vec(text(), 0..4)).prop_map(|(keyspace, function, argument_types)| {
            ErrorKind::FunctionFailure {
                keyspace,
                function,
                argument_types,
            }
        }),
        (text(), text()).prop_map(|(keyspace, table)| ErrorKind::AlreadyExists { keyspace, table }),
        bytes(20).prop_map(|id| ErrorKind::Unprepared { id }),
    ];
    (kind, text()).prop_map(|(kind, message)| CqlError { kind, message })
}

fn prepared() -> impl Strategy<Value = PreparedResponse> {
    (
        (bytes(20), bytes(20)),
        metadata(),
        vec(any::<u16>(), 0..4),
        option::of(metadata()),
    )
        .prop_map(
            |((id, columns), bind, partition_key_indexes, result)| PreparedResponse {
                id,
                result_metadata_id: Some(columns),
                bind,
                partition_key_indexes,
                result,
            },
        )
}

pub fn response() -> impl Strategy<Value = Response> {
    prop_oneof![
        error().prop_map(Response::Error),
        Just(Response::Ready),
        text().prop_map(|authenticator| Response::Authenticate { authenticator }),
        option::of(bytes(20)).prop_map(|token| Response::AuthChallenge {
            token: token.into()
        }),
        option::of(bytes(20)).prop_map(|token| Response::AuthSuccess {
            token: token.into()
        }),
        vec((text(), vec(text(), 0..3)), 0..4).prop_map(Response::Supported),
        Just(Response::Void),
        rows().prop_map(Response::Rows),
        text().prop_map(Response::SetKeyspace),
        prepared().prop_map(Response::Prepared),
        schema_change().prop_map(Response::SchemaChange),
        event().prop_map(Response::Event),
    ]
}

prop_compose! {
    pub fn context()(
        version in version(),
        stream in any::<i16>(),
        tracing_id in option::of(any::<u128>().prop_map(Uuid::from_u128)),
        warnings in vec(text(), 0..3),
        custom_payload in vec((text(), option::of(bytes(20))), 0..3),
    ) -> ResponseContext {
        ResponseContext { version, stream, tracing_id, warnings, custom_payload }
    }
}

pub fn compression() -> impl Strategy<Value = Option<Compression>> {
    option::of(select(Compression::EVERY.to_vec()))
}
