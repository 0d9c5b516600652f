"""Requests that no client of OpenAI would send."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def call(
    url: str, body: bytes | None = None, method: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any, Any]:
    """The status, the JSON and the headers of an answer."""
    request = urllib.request.Request(url, body, headers or {}, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response), response.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers
