"""One story after another on two servers, and the differences between their answers."""

import dataclasses

import compare
import stories
import witnesses
from meant import reasons_for
from shrinking import shrunk
from sides import Cassandra, Side, ends_story, has_fault, is_equal, is_read, is_refused, without_pages

BY_CHANCE = "Not seen again: Cassandra's conditional writes are not always earlier than the writes behind them."
PAGES = "Cassandra's pages, put together, are not its own answer without pages; Annulus's are."
LOST = "InstanceAlreadyExistsException"
"""A word of Cassandra's error where a table of a name that it has dropped is still there within."""
KEYSPACES_MAX = 5
FOUND_IN_STORY_MAX = 3
"""A story ends after so many differences: most of them have one cause."""


class KeyspaceLost(Exception):
    """Cassandra makes no table of this name in the keyspace any more."""


@dataclasses.dataclass
class Difference:
    """A step with two answers, and what came before it."""

    seed: int
    definitions: list
    before: list
    step: str
    theirs: str
    ours: str
    note: str = ""

    def __str__(self):
        steps = self.definitions + (self.before if self.note else []) + [self.step]
        script = "\n".join(f"{line};" if not line.startswith("@") else line for line in steps)
        answers = f"--- Cassandra\n{self.theirs}\n--- Annulus\n{self.ours}"
        return f"=== seed {self.seed}{self.note}\n{script}\n{answers}"


@dataclasses.dataclass
class Told:
    """What a story came to."""

    asked: int = 0
    refused: int = 0
    # (reason, difference)
    meant: list = dataclasses.field(default_factory=list)
    found: list = dataclasses.field(default_factory=list)


class Run:
    """Stories on two servers, in a keyspace."""

    def __init__(self, cassandra, annulus, keyspace):
        self.cassandra, self.annulus = Cassandra(cassandra, keyspace), Side(annulus, keyspace)
        self._addresses, self._keyspace, self._elsewhere = (cassandra, annulus), keyspace, None
        self._lost = 0

    def story(self, seed, length):
        """Runs a story up to its end, or to a difference after which the tables differ."""
        for _ in range(KEYSPACES_MAX):
            try:
                return self._story(seed, length)
            except KeyspaceLost:
                self._move()
        raise KeyspaceLost(f"{KEYSPACES_MAX} keyspaces were lost in story {seed}")

    def _move(self):
        """Goes on in another keyspace."""
        self._lost += 1
        self._elsewhere = None
        for side in (self.cassandra, self.annulus):
            side.keyspace = f"{self._keyspace}_{self._lost}"

    def _story(self, seed, length):
        definitions, steps = stories.story(seed, length)
        self.begin()
        told, done = Told(), []
        for step in definitions + steps:
            theirs, ours = self.ask(step)
            told.asked += 1
            told.refused += is_refused(theirs)
            if is_equal(theirs, ours):
                done.append(step)
                continue
            reason, _ = self.reason_for(step, theirs, ours, done)
            before = [each for each in done if each not in definitions]
            difference = Difference(seed, definitions, before, step, theirs, ours)
            is_chance = not reason and is_read(step) and not self.elsewhere().differs(done, step)
            if is_chance:
                told.meant.append((BY_CHANCE, difference))
                break
            if reason:
                told.meant.append((reason, difference))
            else:
                told.found.append(difference)
            if ends_story(step, theirs, ours) or not reason and not is_read(step):
                break
            if len(told.found) == FOUND_IN_STORY_MAX:
                break
            done.append(step)
        return told

    def begin(self):
        for side in (self.cassandra, self.annulus):
            side.begin()

    def ask(self, step):
        """The answers of both: (Cassandra's, ours)."""
        theirs, ours = self.cassandra.ask(step), self.annulus.ask(step)
        theirs, ours = theirs.result(), ours.result()
        if LOST in theirs:
            raise KeyspaceLost
        return theirs, ours

    def elsewhere(self):
        """A run in another keyspace of the same servers, which is made anew."""
        if self._elsewhere is None:
            self._elsewhere = Run(*self._addresses, f"{self.cassandra.keyspace}_elsewhere")
        self._elsewhere.begin()
        return self._elsewhere

    def reason_for(self, step, theirs, ours, before):
        """(why these different answers are meant to differ or None, the witness that has proved it
        or None)."""
        if has_fault(ours):
            return None, None
        plain = without_pages(step)
        if is_read(step) and plain and compare.what_counts(self.ask(plain)[0]) != compare.what_counts(theirs):
            theirs, our_plain = self.ask(plain)
            if compare.what_counts(our_plain) == compare.what_counts(ours):
                if is_equal(theirs, ours) or self.reason_for(plain, theirs, ours, before)[0]:
                    return PAGES, "pages"
        for reason, witness in reasons_for(step, theirs, ours, before):
            if witness is None or witnesses.proves(witness, self, step, before, ours):
                return reason, witness
        return None, None

    def differs(self, steps, last):
        """Whether the last of these steps still differs, in a keyspace made anew."""
        self.begin()
        for step in steps:
            self.ask(step)
        theirs, ours = self.ask(last)
        return not is_equal(theirs, ours) and not self.reason_for(last, theirs, ours, steps)[0]

    def shrunk(self, difference):
        """The difference with as few steps before it as still show it."""
        if is_refused(difference.theirs) and is_refused(difference.ours):
            # What came before is seldom of any meaning for a statement that is refused.
            before, note = [], ", alone"
        else:
            before, note = shrunk(self, difference.definitions, difference.before, difference.step)
        return dataclasses.replace(difference, before=before, note=note)
