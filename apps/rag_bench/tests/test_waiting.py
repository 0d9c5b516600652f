"""The wait for what was inserted."""

from __future__ import annotations

import pytest
from annulus_rag_bench.stores.store import StoreBusyError, StoreError
from annulus_rag_bench.stores.waiting import wait_until


def test_a_busy_store_is_tried_again() -> None:
    answers = iter([StoreBusyError("a timeout"), False, True])

    def is_so() -> bool:
        answer = next(answers)
        if isinstance(answer, StoreBusyError):
            raise answer
        return answer

    wait_until(is_so, 60, "10 articles searchable")
    assert next(answers, None) is None


def test_a_store_that_stays_busy_is_said_and_another_failure_ends_the_wait() -> None:
    def is_busy() -> bool:
        raise StoreBusyError("a timeout")

    with pytest.raises(StoreError, match=r"^Not 10 articles searchable within 0\.01 s: a timeout$"):
        wait_until(is_busy, 0.01, "10 articles searchable")

    def is_away() -> bool:
        raise StoreError("no store answers")

    with pytest.raises(StoreError, match="^no store answers$"):
        wait_until(is_away, 60, "10 articles searchable")
