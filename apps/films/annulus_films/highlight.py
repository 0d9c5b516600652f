"""Texts that go into a page: a plot with marks on the words that a search found, and what is to have no marks."""

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


def plain(text: str) -> str:
    """A text in which Markdown finds nothing, such as what a provider of embeddings says of its trouble."""
    return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|$:~])", r"\\\1", text)
