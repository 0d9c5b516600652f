"""Asks two servers the same, and tells whether their answers are equal.

Rows, their order, the names and types of columns, and codes of errors count; pages are put
together."""

import concurrent.futures
import re
import time

import compare
import replay
from client import Client
from script import Step
from stories import beginning

# Microseconds and seconds that depend on when a statement ran.
PRESENT = re.compile(r"\b1[78]\d{14}\b")
LIFE = re.compile(r"\b(?:99\d{4}|1000000)\b")
KEYSPACE = "differential"
BUILT_SECONDS = 20
NOT_BUILT = f"error 1300 ReadFailureMessage: an index was not built within {BUILT_SECONDS} s"


class Side:
    """A server, asked in a thread of its own."""

    def __init__(self, address, keyspace=KEYSPACE):
        self._address, self.keyspace = address, keyspace
        self._client = None
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def begin(self):
        """Makes the keyspace of stories anew."""
        for statement in beginning(self.keyspace):
            self.ask(statement).result()

    def ask(self, step):
        """A future of the answer to a step."""
        return self._thread.submit(self._answer, step)

    def _answer(self, step):
        try:
            answer = counted(replay.answer(self._usable(), Step(step.split("\n"))))
            return answer.replace(self.keyspace, KEYSPACE)
        except (AttributeError, ValueError) as unreadable:
            # The driver can't read some types by their class names, such as vectors of user types.
            return f"unreadable for the driver: {type(unreadable).__name__}"

    def _usable(self):
        """A client; a new one after an error upon which the driver gave the connection up."""
        if self._client is None or not self._client.is_usable():
            host, port = self._address.rsplit(":", 1)
            first, self._client = self._client is None, Client(host, int(port))
            if not first:
                replay.answer(self._client, Step([f"USE {self.keyspace}"]))
        return self._client


class Cassandra(Side):
    """A Cassandra, which builds indexes after it has answered. Annulus answers when they are built."""

    def _answer(self, step):
        answer = super()._answer(step)
        is_index = re.match(r"CREATE (CUSTOM )?INDEX ", step) and not is_refused(answer)
        return answer if not is_index or self._has_built() else NOT_BUILT

    def indexes(self):
        """The names of the indexes that there are."""
        return self._thread.submit(self._indexes).result()

    def _indexes(self):
        made = f"SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '{self.keyspace}'"
        return self._names(made)

    def _has_built(self):
        """Whether all indexes are built in the end. Some builds fail within."""
        built = f"""SELECT index_name FROM system."IndexInfo" WHERE table_name = '{self.keyspace}'"""
        deadline = time.monotonic() + BUILT_SECONDS
        while not self._indexes() <= self._names(built):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _names(self, query):
        return {row[0].decode() for row in self._usable().query(query).parsed_rows}


def counted(text):
    """What counts of a rendered answer; the words of an error are kept behind it, to be shown."""
    lines = [line for line in text.split("\n") if line != "-- next page" and not line.startswith("warning: ")]
    return LIFE.sub("life", PRESENT.sub("present", "\n".join(lines)))


def is_equal(theirs, ours):
    """Whether two answers are equal. A fault of our server is never right."""
    return compare.what_counts(theirs) == compare.what_counts(ours) and not has_fault(ours)


def has_fault(text):
    """Whether a server failed within, or in reading."""
    return any(line.startswith(("error 0000", "error 1300", "error 1500")) for line in text.split("\n"))


def is_refused(text):
    return any(line.startswith("error ") for line in text.split("\n"))


def statement_of(step):
    """The statement of a step, without its directives."""
    return Step(step.split("\n")).statement


def is_read(step):
    return statement_of(step).startswith("SELECT")


def without_pages(step):
    """A step that reads without pages; None if it has none."""
    return step.partition("\n")[2] if step.startswith("@page ") else None


def ends_story(step, theirs, ours):
    """Whether the tables may differ after these different answers."""
    return not is_read(step) and is_refused(theirs) != is_refused(ours)
