"""Connections, errors and TLS of both clients, with a server that answers what a test says."""

import asyncio
import inspect
import socket
import ssl
import threading
import time

import pytest
from scripted import chunks, hang_up

import annulus_db
from annulus_db import AsyncClient, AsyncTable, Client, Table

SCHEMA = {"keyspaces": {}}


def both(scripted, work, **options):
    """What `work` gives by each client: it gets a function that calls a method by its name."""

    def synchronously():
        with Client(scripted.url, **options) as client:
            return work(lambda name, *values: getattr(client, name)(*values))

    def with_asyncio():
        loop = asyncio.new_event_loop()
        client = AsyncClient(scripted.url, **options)
        try:
            return work(lambda name, *values: loop.run_until_complete(getattr(client, name)(*values)))
        finally:
            loop.run_until_complete(client.close())
            loop.close()

    return [synchronously(), with_asyncio()]


def test_requests_share_a_connection(scripted):
    def work(call):
        scripted.answers += [(200, SCHEMA)] * 3
        del scripted.requests[:]
        answers = [call("schema") for _ in range(3)]
        assert len({request.connection for request in scripted.requests}) == 1
        return answers

    assert both(scripted, work) == [[SCHEMA] * 3] * 2


def test_requests_say_who_sends_them(scripted):
    def work(call):
        scripted.answers.append((200, SCHEMA))
        call("schema")
        headers = scripted.requests.pop().headers
        return headers["X-Requested-With"], headers["Authorization"], int(headers["X-Request-Timeout-Ms"])

    expected = ("annulus", "Basic YW5uOnDDpHNz", 7_000)
    assert both(scripted, work, user="ann", password="päss", timeout=7) == [expected] * 2


def test_a_connection_that_was_closed_meanwhile_is_replaced(scripted):
    def work(call):
        scripted.answers += [(200, SCHEMA), hang_up, (200, SCHEMA)]
        call("schema")
        # A request that may be repeated is, on a fresh connection.
        return call("schema")

    assert both(scripted, work) == [SCHEMA] * 2


def test_a_statement_is_not_sent_twice(scripted):
    def work(call):
        scripted.answers += [(200, SCHEMA), hang_up]
        call("schema")
        with pytest.raises(annulus_db.ConnectionFailedError, match="the connection to 127.0.0.1:"):
            call("cql", "UPDATE counters SET n = n + 1 WHERE id = 1")
        return len(scripted.answers)

    assert both(scripted, work) == [0, 0]


def test_answers_in_pieces_and_with_an_end(scripted):
    def work(call):
        scripted.answers += [chunks(b'{"key', b'spaces": {}}'), (200, SCHEMA, {"Connection": "close"})] * 2
        return [call("schema") for _ in range(4)]

    assert both(scripted, work) == [[SCHEMA] * 4] * 2


@pytest.mark.parametrize(
    "status, body, kind, text",
    [
        (400, {"error": "no column x", "hint": "its columns are a"}, "InvalidRequestError", "no column x; its columns"),
        (422, "limit: 0", "InvalidRequestError", "HTTP 422: limit: 0"),
        (401, {"error": "no login", "hint": "send one"}, "LoginError", "no login; send one"),
        (403, {"error": "no right"}, "ForbiddenError", "HTTP 403: no right"),
        (404, "", "NotFoundError", "HTTP 404: GET /api/v1/schema: no reason is given"),
        (409, {"error": "is there"}, "ConflictError", "is there"),
        (500, {"error": "a fault"}, "RequestError", "HTTP 500: a fault"),
        (504, {"error": "too long"}, "UnavailableError", "too long"),
        (503, {"reason": "NODE_BOOTSTRAPPING"}, "UnavailableError", "NODE_BOOTSTRAPPING"),
    ],
)
def test_errors_have_a_class_by_their_status(scripted, status, body, kind, text):
    def work(call):
        scripted.answers.append((status, body, {"Retry-After": "2"}))
        with pytest.raises(annulus_db.RequestError) as raised:
            call("schema")
        error = raised.value
        return type(error).__name__, error.status, error.retry_after, text in str(error)

    assert both(scripted, work) == [(kind, status, 2.0, True)] * 2


def test_an_answer_of_another_program_is_named(scripted):
    def work(call):
        for body in ["<html>", '"text"', "[1"]:
            scripted.answers.append((200, body))
            with pytest.raises(annulus_db.AnnulusError, match="is that address an Annulus server"):
                call("schema")

    both(scripted, work)


def test_a_server_that_is_not_there_is_named(scripted):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(annulus_db.ConnectionFailedError, match="nothing listens on 127.0.0.1:"):
            Client(url).schema()
        with pytest.raises(annulus_db.ConnectionFailedError, match="nothing listens on 127.0.0.1:"):
            asyncio.run(AsyncClient(url).schema())


def test_a_server_that_does_not_answer_is_not_waited_for(scripted):
    goes_on = threading.Event()

    def work(call):
        scripted.answers.append(lambda handler: goes_on.wait(20))
        begin = time.monotonic()
        with pytest.raises(annulus_db.TimedOutError, match="within 0.2 s"):
            call("schema")
        assert time.monotonic() - begin < 10

    try:
        both(scripted, work, timeout=0.2)
    finally:
        goes_on.set()


def test_a_cancelled_task_hangs_up(scripted):
    came, hung_up = threading.Event(), threading.Event()

    def answer(handler):
        came.set()
        # Empty at the end of the connection.
        if handler.connection.recv(1) == b"":
            hung_up.set()
        handler.close_connection = True

    async def work():
        async with AsyncClient(scripted.url) as client:
            task = asyncio.create_task(client.schema())
            assert await asyncio.to_thread(came.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(hung_up.wait, 20)

    scripted.answers.append(answer)
    asyncio.run(work())


def test_a_client_outlives_an_event_loop(scripted):
    scripted.answers += [(200, SCHEMA)] * 2
    client = AsyncClient(scripted.url)
    assert [asyncio.run(client.schema()) for _ in range(2)] == [SCHEMA] * 2


def test_no_more_connections_than_permitted(scripted):
    scripted.answers += [(200, SCHEMA)] * 20

    async def work():
        async with AsyncClient(scripted.url, open_max=2) as client:
            await asyncio.gather(*(client.schema() for _ in range(20)))

    asyncio.run(work())
    assert len({request.connection for request in scripted.requests}) <= 2


def test_threads_share_a_client(scripted):
    scripted.answers += [(200, SCHEMA)] * 40
    answers = []
    with Client(scripted.url) as client:
        work = [threading.Thread(target=lambda: answers.append(client.schema())) for _ in range(40)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert answers == [SCHEMA] * 40


@pytest.mark.parametrize("url", ["127.0.0.1:6080", "http://", "http://h/api", "ftp://h", "http://ann:x@h:1", ""])
def test_an_address_of_another_form_is_refused(url):
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        Client(url)


def test_authorities_need_tls():
    with pytest.raises(ValueError, match="not encrypted"):
        Client("http://127.0.0.1:6080", ssl_context=ssl.create_default_context())


@pytest.mark.parametrize("pair", [(Client, AsyncClient), (Table, AsyncTable)], ids=["client", "table"])
def test_both_clients_have_the_same_methods(pair):
    def methods(cls):
        public = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
        return {name: list(inspect.signature(member).parameters) for name, member in public.items()}

    assert methods(pair[0]) == methods(pair[1])
