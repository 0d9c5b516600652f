"""The page that measures: what is found, what is declined, and whether answers are faithful to their sources."""

import altair as alt
import pandas as pd
import streamlit as st

from ..config import Settings
from ..embeddings import EmbeddingError
from ..questions import DEPTH
from ..stores import StoreError
from .ask_page import pipeline, plain
from .evaluation import STUB_IS_FAITHFUL, Faithfulness, Retrieval, measure_faithfulness, measure_retrieval
from .model import ModelError

DISTANCES = [hundredths / 100 for hundredths in range(20, 101, 2)]
PASSED, DECLINED = "answerable, and passed on", "unanswerable, and declined"


def evaluation_page() -> None:
    st.title("Evaluation")
    if st.button("Measure again", icon=":material/refresh:"):
        st.session_state.pop("retrieval", None)
    try:
        if "retrieval" not in st.session_state:
            with st.spinner("Searching for the judged questions ..."):
                st.session_state.retrieval = measure_retrieval(pipeline())
    except (StoreError, EmbeddingError) as error:
        st.error(plain(str(error)))
        return
    show_quality(st.session_state.retrieval)
    show_declining(st.session_state.retrieval)
    faithfulness_part()


def show_quality(retrieval: Retrieval) -> None:
    st.subheader("Are the right articles found?")
    st.caption(
        f"nDCG@{DEPTH} of {len(retrieval.scores)} judged questions: 1 where the best articles come first, "
        "0 where none is among the first five."
    )
    both = retrieval.mean(by_both=True) is not None
    groups = {"all": None, "with dates": True, "without dates": False}
    rows = {"by vectors": [retrieval.mean(False, dates) for dates in groups.values()]}
    if both:
        rows["by vectors and words"] = [retrieval.mean(True, dates) for dates in groups.values()]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(groups))
    # Letters of its own: a cell of this table can be read by a screen reader, and found by its text.
    st.table(table.map(lambda value: "-" if pd.isna(value) else f"{value:.3f}"))
    with st.expander("Each question, the worst first"):
        frame = pd.DataFrame(retrieval.scores).drop(columns="has_dates")
        frame.columns = pd.Index(["question", "by vectors", "by vectors and words", "nearest distance"])
        if not both:
            frame = frame.drop(columns="by vectors and words")
        order = frame.columns[2] if both else frame.columns[1]
        formats = {name: st.column_config.NumberColumn(format="%.3f") for name in frame.columns[1:]}
        st.dataframe(frame.sort_values(order), column_config=formats, hide_index=True)


def show_declining(retrieval: Retrieval) -> None:
    settings = Settings()
    st.subheader("Is it known what is not in the documents?")
    at, unanswerable = settings.distance_max, len(retrieval.unanswerable)
    st.caption(
        f"Within the largest distance of {at:g}, {retrieval.passed(at):.0%} of the {len(retrieval.scores)} judged "
        f"questions have an article. {retrieval.declined(at):.0%} of {unanswerable} questions about taps, taxes and "
        "thermodynamics have none and are declined. `RAG_DISTANCE_MAX` sets the distance; another embedding model "
        "needs another."
    )
    rows = [(at, PASSED, retrieval.passed(at)) for at in DISTANCES]
    rows += [(at, DECLINED, retrieval.declined(at)) for at in DISTANCES]
    frame = pd.DataFrame(rows, columns=["distance", "questions", "share"])
    colours = alt.Scale(domain=[PASSED, DECLINED], range=["#2a9d8f", "#e76f51"])
    lines = (
        alt.Chart(frame)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("distance", title="largest distance of an article that helps", scale=alt.Scale(domain=[0.2, 1])),
            y=alt.Y("share", title="share of questions", axis=alt.Axis(format="%")),
            color=alt.Color("questions", scale=colours, legend=alt.Legend(orient="top", title=None, labelLimit=0)),
            tooltip=["questions", "distance", alt.Tooltip("share", format=".0%")],
        )
    )
    rule = alt.Chart(pd.DataFrame({"distance": [at]})).mark_rule(strokeDash=[4, 4], color="#888").encode(x="distance")
    st.altair_chart((lines + rule).properties(height=300), key="declining")


def faithfulness_part() -> None:
    st.subheader("Do answers say no more than their sources?")
    model = pipeline().model
    try:
        if model.is_stub():
            st.info(STUB_IS_FAITHFUL)
            return
        st.caption(f"{model.name} answers each judged question, and then judges each sentence of its own answer.")
        if st.button("Measure faithfulness", help="Up to three calls of the model for each question."):
            bar = st.progress(0.0)

            def progress(done: int, all: int) -> None:
                bar.progress(done / all, f"{done} of {all} questions")

            st.session_state.faithfulness = measure_faithfulness(pipeline(), progress=progress)
            bar.empty()
    except (ModelError, StoreError, EmbeddingError) as error:
        st.error(plain(str(error)))
    if "faithfulness" in st.session_state:
        show_faithfulness(st.session_state.faithfulness)


def show_faithfulness(measured: Faithfulness) -> None:
    supported = "-" if measured.supported is None else f"{measured.supported:.1%}"
    unread = sum(answer.supported is None for answer in measured.answers)
    facts: dict[str, str | int] = {
        "sentences that the sources have": supported,
        "answers": len(measured.answers),
        "not in the documents": measured.declined,
        "without a citation": measured.uncited,
        "judgements that could not be read": unread,
    }
    for column, (label, value) in zip(st.columns(len(facts)), facts.items(), strict=True):
        column.metric(label, value)
    rows = [
        (answer.question, statement, "yes" if verdict else "no")
        for answer in measured.answers
        for statement, verdict in zip(answer.statements, answer.supported or [], strict=False)
    ]
    frame = pd.DataFrame(rows, columns=["question", "sentence", "in its sources"])
    st.dataframe(frame.sort_values("in its sources"), hide_index=True)
