"""Reads a file of Alloy, and gives its syslog job in the form of promtail's, so that both can be compared."""

import re

TOKEN = re.compile(r'\s+|//[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[\w.]+)|(?P<sign>[{}\[\],=])')


def tokens(text):
    position, found = 0, []
    while position < len(text):
        match = TOKEN.match(text, position)
        assert match, f"not Alloy: {text[position : position + 40]!r}"
        position = match.end()
        if match.lastgroup:
            found.append((match.lastgroup, match[0]))
    return found


class AlloyFile:
    """The blocks of a file: each (name, label, attributes, blocks)."""

    def __init__(self, text):
        self._tokens, self._next = tokens(text), 0
        _, self.blocks = self._body(None)

    def block(self, name):
        """The body of the one block of a name: its attributes and its blocks."""
        (found,) = [block for block in self.blocks if block[0] == name]
        return found[2], found[3]

    def _peek(self):
        return self._tokens[self._next][1] if self._next < len(self._tokens) else None

    def _take(self, wanted=None):
        token = self._tokens[self._next]
        assert wanted in (None, token[1]), f"{wanted!r} is wanted where {token[1]!r} is"
        self._next += 1
        return token

    def _body(self, end):
        attributes, blocks = {}, []
        while self._peek() != end:
            _, name = self._take()
            if self._peek() == "=":
                self._take()
                attributes[name] = self._value()
                continue
            label = _text(self._take()) if self._peek().startswith('"') else None
            self._take("{")
            blocks.append((name, label, *self._body("}")))
            self._take("}")
        return attributes, blocks

    def _value(self):
        kind, text = self._take()
        if text == "[":
            return self._items("]", self._value)
        if text == "{":
            return dict(self._items("}", self._pair))
        return _text((kind, text)) if kind == "string" else {"true": True, "false": False}.get(text, text)

    def _pair(self):
        _, name = self._take()
        self._take("=")
        return name, self._value()

    def _items(self, end, item):
        items = []
        while self._peek() != end:
            items.append(item())
            if self._peek() == ",":
                self._take()
        self._take(end)
        return items


def _text(token):
    return token[1][1:-1].replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\")


def as_promtail(file):
    """The listener, relabelling, stages and address of a file of Alloy, in the words of promtail.yml."""
    attributes, blocks = file.block("loki.source.syslog")
    ((_, _, listener, _),) = blocks
    assert attributes["relabel_rules"] == "loki.relabel.syslog.rules"
    assert attributes["forward_to"] == ["loki.process.annulus.receiver"]
    stages, stage_blocks = file.block("loki.process")
    assert stages["forward_to"] == ["loki.write.loki.receiver"]
    ((_, _, endpoint, _),) = file.block("loki.write")[1]
    return {
        "syslog": {
            "listen_address": listener["address"],
            "idle_timeout": listener["idle_timeout"],
            "labels": listener["labels"],
        },
        "relabel_configs": [rule for _, _, rule, _ in file.block("loki.relabel")[1]],
        "pipeline_stages": [_stage(block) for block in stage_blocks],
        "clients": [endpoint],
    }


def _stage(block):
    name, _, attributes, blocks = block
    match name:
        case "stage.match":
            return {"match": {"selector": attributes["selector"], "stages": [_stage(inner) for inner in blocks]}}
        case "stage.regex":
            return {"regex": attributes}
        case "stage.labels":
            return {"labels": {label: source or None for label, source in attributes["values"].items()}}
        case "stage.metrics":
            return {"metrics": dict(_counter(inner) for inner in blocks)}
    raise AssertionError(f"a stage that this test does not know: {name}")


def _counter(block):
    name, _, attributes, _ = block
    assert name == "metric.counter", name
    config = {"match_all": attributes["match_all"], "action": attributes["action"]}
    shown = {"type": "Counter", "description": attributes["description"], "prefix": attributes["prefix"]}
    return attributes["name"], {**shown, "config": config}
