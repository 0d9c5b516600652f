"""Marks in a plot the words that a search found. Everything else of a text is escaped: it goes into a page."""

import html
import re


def marked(text: str, excerpt: str | None) -> str:
    """HTML of a text. Words that are in <b> in an excerpt of it are in <mark>."""
    # The excerpt is HTML, whose text the database escaped.
    found = {html.unescape(word) for word in re.findall(r"<b>(.*?)</b>", excerpt or "", re.DOTALL)}
    if not found:
        return html.escape(text)
    words = "|".join(re.escape(word) for word in sorted(found, key=len, reverse=True))
    parts = re.split(rf"\b({words})\b", text, flags=re.IGNORECASE)
    # Every other part is a word that was found.
    return "".join(
        f"<mark>{html.escape(part)}</mark>" if at % 2 else html.escape(part) for at, part in enumerate(parts)
    )
