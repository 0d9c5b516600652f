"""The page on which a question is asked: its answer with citations, its sources, and the time of each step."""

import html
import re
from datetime import date

import streamlit as st

from ..config import Settings
from ..embeddings import EmbeddingError
from ..retrieval import QuestionError
from ..stores import StoreError, store_class
from .answer import Answer, Outcome, Question, Source
from .pipeline import SOURCES_MAX, Pipeline
from .prompts import CITATION

EXAMPLE = "Which film has two robots that fall in love?"
FIRST_DAY = date(1880, 1, 1)


@st.cache_resource(show_spinner="Loading the model that embeds questions ...", on_release=Pipeline.close)
def pipeline() -> Pipeline:
    """One pipeline for all visitors."""
    pipeline = Pipeline.of(Settings())
    pipeline.warm()
    return pipeline


def ask_page() -> None:
    st.title("Answers from articles")
    question = question_of_controls()
    if question is None:
        return
    try:
        with st.spinner("Searching and reading ..."):
            answer = pipeline().answer(question)
    except QuestionError as error:
        st.warning(plain(sentence(str(error))))
    except (StoreError, EmbeddingError) as error:
        st.error(plain(str(error)))
        st.button("Try again")
    else:
        show_answer(answer)


def question_of_controls() -> Question | None:
    """The question that the controls say, or none, with a sentence that says what is missing."""
    settings = Settings()
    store = store_class(settings.store)
    text = st.text_input("Question", EXAMPLE, key="question")
    with st.sidebar:
        limit = st.slider("Articles", 1, SOURCES_MAX, 5, key="limit", help="How many are found and graded.")
        first, last = (
            st.date_input(label, None, FIRST_DAY, "today", key=label, format="YYYY-MM-DD")
            for label in ("Published from", "Published until")
        )
        hybrid = store.has_hybrid and st.toggle("Search by words as well", value=True, key="hybrid")
        model = "a stub that repeats sentences" if settings.model_url is None else settings.model
        st.caption(f"Store: {store.title}. Answers by {model}.")
    if not text.strip():
        st.warning("The question is empty: say what the articles should be about.")
        return None
    return Question.between(text, limit, first, last, hybrid)


def show_answer(answer: Answer) -> None:
    with st.container(border=True, key="answer"):
        if answer.outcome is Outcome.ANSWERED:
            st.html(f"<p class='answer'>{with_links(answer)}</p>")
        elif answer.outcome is Outcome.NOT_IN_DOCUMENTS:
            st.html("<p class='answer'><b>Not in the documents.</b></p>")
        else:
            st.error(plain(f"The articles were found, and the model gave no answer. {answer.error}"))
            st.button("Try again")
        for note in answer.notes:
            st.caption(plain(note))
    helpful = [source for source in answer.sources if source.number is not None]
    left_out = [source for source in answer.sources if source.number is None]
    if helpful:
        st.subheader("Sources")
        show_sources(helpful)
    if left_out:
        with st.expander(f"Found and left out, as they do not help: {len(left_out)}"):
            show_sources(left_out)
    st.subheader("Time of each step")
    st.html(steps(answer.seconds))


def with_links(answer: Answer) -> str:
    """The text of an answer as HTML, with each citation as a link to its article."""
    sources = {source.number: source for source in answer.sources if source.cited}

    def links(group: re.Match[str]) -> str:
        return "".join(link(int(number)) for number in group[1].split(","))

    def link(number: int) -> str:
        if number not in sources:
            return f"[{number}]"
        source = sources[number]
        return anchor(source.url, f"[{number}]", source.title)

    # Brackets and digits are no HTML, so that the citations are still there.
    return CITATION.sub(links, html.escape(answer.text)).replace("\n", "<br>")


def anchor(url: str, text: str, title: str) -> str:
    """A link, unless the address could be a script."""
    if not url.startswith(("https://", "http://")):
        return html.escape(text)
    attributes = f'href="{html.escape(url)}" title="{html.escape(title)}" target="_blank" rel="noopener noreferrer"'
    return f"<a {attributes}>{html.escape(text)}</a>"


def show_sources(sources: list[Source]) -> None:
    for source in sources:
        with st.container(border=True):
            number = "" if source.number is None else f"[{source.number}] "
            cited = " · cited" if source.cited else ""
            facts = f"{source.publication_date:%Y-%m-%d} · distance {source.distance:.3f}{cited}"
            st.html(
                f"<div class='source'><h4>{number}{anchor(source.url, source.title, source.url)}</h4>"
                f"<p class='facts'>{facts}</p><p>{html.escape(source.body)}</p></div>"
            )


def steps(seconds: dict[str, float]) -> str:
    """The steps with their times, as numbers and as bars."""
    longest = max(seconds.values(), default=0.0) or 1.0
    rows = [
        f"<span>{html.escape(step)}</span><span>{taken * 1_000:.1f} ms</span>"
        f"<span><i style='width: {100 * taken / longest:.1f}%'></i></span>"
        for step, taken in seconds.items()
    ]
    return f"<div class='steps'>{''.join(rows)}</div>"


def plain(text: str) -> str:
    """A text in which Markdown finds nothing."""
    return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|$:~])", r"\\\1", text)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
