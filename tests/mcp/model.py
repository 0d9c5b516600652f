"""A program that runs a model, in small: the client of the protocol's own project, which starts `annulus mcp`."""

import contextlib
import json
import os

from mcp import Client, MCPError, StdioServerParameters

from process import BINARY

__all__ = ["MCPError", "opened", "refused", "shown"]

SECONDS = 60


@contextlib.asynccontextmanager
async def opened(address, *arguments, mode="auto"):
    """A client of `annulus mcp` for the CQL server at HOST:PORT."""
    command = StdioServerParameters(
        command=str(BINARY),
        args=["mcp", "--cql", address, *map(str, arguments)],
        # An instrumented binary writes its counters where its environment says.
        env={name: value for name, value in os.environ.items() if name.startswith("LLVM_")},
    )
    async with Client(command, mode=mode, read_timeout_seconds=SECONDS) as client:
        yield client


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    return result.is_error, content.text


async def shown(client, tool, **arguments):
    """The answer of a tool, read as JSON."""
    is_error, text = await call(client, tool, **arguments)
    assert not is_error, text
    return json.loads(text)


async def refused(client, tool, **arguments):
    """The error and the hint of a tool that fails."""
    is_error, text = await call(client, tool, **arguments)
    assert is_error, text
    failure = json.loads(text)
    assert set(failure) == {"error", "hint"} and all(failure.values()), text
    return failure["error"], failure["hint"]
