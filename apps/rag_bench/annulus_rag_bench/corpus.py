"""The articles: lead texts of an encyclopedia about films, as no news may be copied freely.

`samples/movies/movies.parquet` has 10,000 of them under CC BY-SA. The address is made of the title, as Wikipedia makes
it, and where several films share a title, of the year as well. The day on which a film came out is the article's date.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet

from .article import Article
from .config import REPOSITORY

CORPUS = REPOSITORY / "samples/movies/movies.parquet"
COLUMNS = ["title", "release_date", "plot"]
WIKI = "https://en.wikipedia.org/wiki/"


def load_articles(path: Path | None = None, limit: int | None = None) -> list[Article]:
    """The articles of a file with the columns of the film sample: all, or the first ones."""
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path or CORPUS, columns=COLUMNS).to_pylist()
    films_of_title = Counter(row["title"] for row in rows)
    articles = [article_of(row, films_of_title[row["title"]] > 1) for row in rows[:limit]]
    if len({article.url for article in articles}) < len(articles):
        raise ValueError(f"{path or CORPUS} has two films of one title and year")
    return articles


def article_of(row: dict[str, Any], title_is_shared: bool) -> Article:
    """The article of a row."""
    title, released = row["title"], datetime.fromisoformat(row["release_date"]).replace(tzinfo=UTC)
    page = f"{title} ({released.year} film)" if title_is_shared else title
    # What Wikipedia leaves as it is in an address.
    url = WIKI + quote(page.replace(" ", "_"), safe="/:@!$*(),;'~")
    return Article(url, title, row["plot"], released)


def embedding_text(article: Article) -> str:
    """The one text that is embedded, whatever the store: the title and the body."""
    return f"{article.title}\n{article.body}"
