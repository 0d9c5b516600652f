"""Sessions of connection strings."""

from __future__ import annotations

import ssl
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from cassandra.cluster import Session

_PORT = 9042
_SCHEME = "cql"


class Address(NamedTuple):
    """The servers that a connection string names, and how to log in."""

    hosts: list[tuple[str, int]]
    role: str | None = None
    password: str = ""
    ca: str | None = None


def session_of(session: Session | str) -> Session:
    """A session, or that of a connection string."""
    return _opened(session) if isinstance(session, str) else session


@lru_cache(maxsize=None)
def _opened(text: str) -> Session:
    """Opens the session of a connection string once. The driver closes it when the process ends."""
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import Cluster
    from cassandra.connection import DefaultEndPoint

    address = address_of(text)
    login = PlainTextAuthProvider(address.role, address.password) if address.role is not None else None
    tls = ssl.create_default_context(cafile=address.ca) if address.ca is not None else None
    if tls is not None:
        # Drivers find the other nodes of a cluster by their addresses, which certificates seldom name.
        tls.check_hostname = False
    hosts = [DefaultEndPoint(host, port) for host, port in address.hosts]
    port = address.hosts[0][1]
    return Cluster(hosts, port=port, auth_provider=login, ssl_context=tls).connect()


def address_of(text: str) -> Address:
    """What a connection string says: `cql://[ROLE:PASSWORD@]HOST[:PORT][,HOST...][?ca=FILE]`."""
    parts = urlsplit(text if "://" in text else f"{_SCHEME}://{text}")
    login, _, servers = parts.netloc.rpartition("@")
    role, has_password, password = login.partition(":")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    ca = options.pop("ca", None)
    is_login = bool(role and has_password) or not login
    if parts.scheme != _SCHEME or not servers or not is_login or options or parts.path.strip("/"):
        raise ValueError(
            "a connection string is cql://[ROLE:PASSWORD@]HOST[:PORT][,HOST...][?ca=FILE], "
            "such as cql://127.0.0.1:9042; a letter of the password such as @ or / is written as %40 or %2F"
        )
    hosts = [_host(server) for server in servers.split(",")]
    return Address(hosts, unquote(role) or None, unquote(password), ca)


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if parts.hostname is None:
        raise ValueError(f"a connection string names a server by HOST or HOST:PORT, unlike {text!r}")
    return parts.hostname, parts.port or _PORT
