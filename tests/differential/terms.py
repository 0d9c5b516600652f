"""Writes values into statements."""


class Terms:
    """Writes values into one statement: as literals, or as markers with the bytes for each."""

    def __init__(self, rng, markers=0.3):
        self._markers = rng.random() < markers
        self._bound = []

    def of(self, value):
        if not self._markers or not value.has_raw:
            return value.literal
        self._bound.append("None" if value.raw is None else f"raw('{value.raw.hex()}')")
        return "?"

    def step(self, text, page=None):
        """The statement as a step of tests/compat."""
        lines = [f"@page {page}"] if page else []
        if self._bound:
            lines.append(f"@bind [{', '.join(self._bound)}]")
        return "\n".join([*lines, text])
