"""One connection of the Python driver, used below the driver's sessions: no retries, no preparing
anew, values as bytes."""

import concurrent.futures

from cassandra import AuthenticationFailed, ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from cassandra.connection import DefaultEndPoint
from cassandra.cqltypes import _cqltypes, apache_cassandra_type_prefix
from cassandra.protocol import (
    ErrorMessage,
    ExecuteMessage,
    PrepareMessage,
    ProtocolHandler,
    QueryMessage,
    ResultMessage,
    read_int,
    read_short,
)
from cassandra.query import UNSET_VALUE

PROTOCOL = 4  # the version that the golden files were recorded at; values have the same form in version 5
CUSTOM = 0x0000  # the type code of a type given by its class name
DURATION = 0x0015
ANSWER_SECONDS = 60


class Result(ResultMessage):
    """Reads a RESULT like the driver, but leaves the rows as bytes."""

    def recv_results_rows(self, f, protocol_version, user_type_map, result_metadata, column_encryption_policy):
        self.recv_results_metadata(f, user_type_map)
        self.column_metadata = self.column_metadata or result_metadata
        self.parsed_rows = [self.recv_row(f, len(self.column_metadata)) for _ in range(read_int(f))]

    @classmethod
    def read_type(cls, f, user_type_map):
        start = f.tell()
        # Version 5 alone has a code for durations. The golden files, of version 4, have their class.
        is_custom = read_short(f) in (CUSTOM, DURATION)
        f.seek(start)
        cql_type = super().read_type(f, user_type_map)
        # The underscore keeps the driver from registering the type.
        return type(f"_{cql_type.__name__}", (cql_type,), {"is_custom": True}) if is_custom else cql_type


class Handler(ProtocolHandler):
    message_types_by_opcode = {**ProtocolHandler.message_types_by_opcode, ResultMessage.opcode: Result}


class Raw(bytes):
    """A value that is sent as these bytes."""


def typed(cql_name, value):
    """A value in the serialised form of a CQL scalar type."""
    return Raw(_cqltypes[cql_name].serialize(value, PROTOCOL))


class Client:
    """A connection. Its answers are the driver's messages: a `Result`, or an `ErrorMessage`, which
    is returned and not raised."""

    def __init__(self, host, port, handler=Handler, login=None, version=PROTOCOL):
        self._host, self._port, self._handler, self._version = host, port, handler, version
        self._others = {}
        provider = PlainTextAuthProvider(*login) if login else None
        self._cluster = Cluster(
            [host],
            port=port,
            protocol_version=version,
            compression=False,
            auth_provider=provider,
            connect_timeout=30,
        )
        self._cluster.connection_class.initialize_reactor()
        try:
            self._connection = self._cluster.connection_factory(DefaultEndPoint(host, port))
        except AuthenticationFailed:
            self._cluster.shutdown()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for other in self._others.values():
            other.__exit__()
        self._connection.close()
        self._cluster.shutdown()

    def of(self, user, password):
        """A connection of another user, the same one each time. Raises `AuthenticationFailed`."""
        login = (user, password)
        if login not in self._others:
            self._others[login] = Client(self._host, self._port, self._handler, login, self._version)
        return self._others[login]

    def is_usable(self):
        """Whether the connection stands. The driver gives it up after an error of the protocol."""
        return not (self._connection.is_defunct or self._connection.is_closed)

    def query(self, statement, values=None, page_size=None, paging_state=None):
        message = QueryMessage(statement, ConsistencyLevel.ONE, fetch_size=page_size, paging_state=paging_state)
        message.query_params = values
        return self._ask(message)

    def prepare(self, statement):
        return self._ask(PrepareMessage(statement))

    def execute(self, prepared, values, page_size=None, paging_state=None):
        """Executes a statement. `values` has bytes, None or UNSET for each variable."""
        message = ExecuteMessage(
            prepared.query_id,
            values,
            ConsistencyLevel.ONE,
            fetch_size=page_size,
            paging_state=paging_state,
            skip_meta=bool(prepared.column_metadata),
            result_metadata_id=prepared.result_metadata_id,
        )
        return self._ask(message, prepared.column_metadata)

    def _ask(self, message, result_metadata=None):
        answer = concurrent.futures.Future()
        with self._connection.lock:
            stream = self._connection.get_request_id()
            self._connection.in_flight += 1
        self._connection.send_msg(
            message, stream, answer.set_result, decoder=self._handler.decode_message, result_metadata=result_metadata
        )
        answer = answer.result(ANSWER_SECONDS)
        if isinstance(answer, Exception) and not isinstance(answer, ErrorMessage):
            raise answer
        return answer


def encode(column, value):
    """A Python value in the form of a bind variable; `Raw`, None and UNSET pass as they are."""
    if value is None or value is UNSET_VALUE or isinstance(value, Raw):
        return value
    return column.type.serialize(value, PROTOCOL)


def type_name(cql_type):
    """The CQL name of a type, marked if the server gave it by class name."""
    name = cql_type.cql_parameterized_type().removeprefix(apache_cassandra_type_prefix)
    return f"custom {name}" if getattr(cql_type, "is_custom", False) else name
