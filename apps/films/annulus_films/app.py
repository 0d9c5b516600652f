"""The page: `streamlit run annulus_films/app.py`.

Streamlit runs this file from top to bottom at each click. What a visitor liked is in the session's state.
"""

import html

import altair as alt
import pandas as pd
import streamlit as st
from pydantic import ValidationError

from annulus_films.config import Settings
from annulus_films.database import DatabaseError, FilmDatabase, FilmLabel
from annulus_films.embedding import EmbeddingError, creator
from annulus_films.film_map import FilmMap
from annulus_films.highlight import marked, plain
from annulus_films.models import Match, Wish
from annulus_films.recommender import Recommender

EXAMPLE = "a lonely robot learns to love"
EXAMPLE_NOTE = "12 of these 10,000 texts have a robot or an android, and only that of Heartbeeps has love as well."
FIRST_YEAR, LAST_YEAR = 1900, 2023
OTHERS = 8
# Of the font that Streamlit brings: a machine may have none with emoji.
ICONS = {"liked": ":material/thumb_up:", "disliked": ":material/thumb_down:"}
STYLE = """
<style>
  h3, h4 { margin: 0; padding: 0; }
  mark { background: rgba(255, 170, 0, .35); color: inherit; border-radius: 3px; padding: 0 2px; }
  .reasons { opacity: .75; font-size: .85rem; }
</style>
"""


@st.cache_resource(show_spinner="Connecting, and loading the model ...")
def recommender() -> tuple[FilmDatabase, Recommender]:
    settings = Settings()
    database = FilmDatabase(settings)
    try:
        return database, Recommender(database, creator(settings))
    except BaseException:
        database.close()
        raise


@st.cache_data(ttl=600, show_spinner=False)
def all_films(_database: FilmDatabase) -> list[FilmLabel]:
    return _database.all_films()


@st.cache_resource(show_spinner=False)
def film_map() -> FilmMap:
    return FilmMap()


def page() -> None:
    st.set_page_config(page_title="Films by a sentence", layout="wide")
    st.html(STYLE)
    st.title("Films by a sentence")
    state = st.session_state
    for name in ("liked", "disliked"):
        state.setdefault(name, {})
    state.setdefault("like_film", None)
    try:
        database, films = recommender()
        wish = wish_of(database)
        if wish is None:
            return
        matches = films.recommend(wish)
        labels = all_films(database)
    except (DatabaseError, EmbeddingError) as error:
        st.error(plain(str(error)))
        st.button("Try again")
        return
    answer(matches)
    draw_map(labels, matches)


def wish_of(database: FilmDatabase) -> Wish | None:
    """The wish that the controls say, or none, with a sentence that says what is missing."""
    state, dialect = st.session_state, database.settings.dialect
    sentence = st.text_input("A film about", EXAMPLE, key="sentence", on_change=forget_film)
    if sentence == EXAMPLE and state.like_film is None:
        st.caption(EXAMPLE_NOTE)
    with st.sidebar:
        st.header("Filters")
        years = st.slider("Years", FIRST_YEAR, LAST_YEAR, (FIRST_YEAR, LAST_YEAR), key="years")
        genre = None
        if dialect.has_genre_filter:
            genres = sorted({genre for film in all_films(database) for genre in film.genres})
            genre = st.selectbox("Genre", genres, index=None, placeholder="any", key="genre")
        hybrid = False
        if dialect.has_hybrid:
            hybrid = st.toggle("Rank by words as well", value=True, key="hybrid")
        opinions()
    if state.like_film is not None:
        id, title = state.like_film
        st.info(f"More like {title}")
        st.button("Back to the sentence", on_click=forget_film)
    try:
        return Wish(
            sentence="" if state.like_film is not None else sentence,
            like_film=state.like_film[0] if state.like_film is not None else None,
            # The whole range is no filter.
            year_from=years[0] if years[0] > FIRST_YEAR else None,
            year_to=years[1] if years[1] < LAST_YEAR else None,
            genre=genre,
            liked=frozenset(state.liked),
            disliked=frozenset(state.disliked),
            hybrid=hybrid,
            limit=1 + OTHERS,
        )
    except ValidationError as error:
        st.warning("; ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors()).capitalize())
        return None


def opinions() -> None:
    """What was liked and disliked so far."""
    state = st.session_state
    for name, icon in ICONS.items():
        for id, title in list(state[name].items()):
            st.button(
                f"Forget {title}", key=f"forget-{name}-{id}", icon=icon, on_click=state[name].pop, args=(id, None)
            )
    if not (state.liked or state.disliked):
        st.caption("Films that you like or dislike move the search towards them, or away from them.")


def answer(matches: list[Match]) -> None:
    if not matches:
        st.warning("No film satisfies these filters.")
        return
    best, *others = matches
    st.subheader("The best match")
    with st.container(border=True):
        show(best, heading="###")
    if others:
        st.subheader("The others")
    for at in range(0, len(others), 2):
        for column, match in zip(st.columns(2), others[at : at + 2]):
            with column.container(border=True):
                show(match, heading="####")


def show(match: Match, heading: str) -> None:
    film = match.film
    title = f"{film.title} ({film.release_date.year})"
    level = len(heading)
    genre, plot = html.escape(film.genre), marked(film.plot, match.highlight)
    st.html(f"<h{level}>{html.escape(title)}</h{level}><p class='genre'><i>{genre}</i></p><p>{plot}</p>")
    st.html(f'<p class="reasons">{html.escape(reasons(match))}</p>')
    with st.container(horizontal=True):
        for label, name in (("Like", "liked"), ("Dislike", "disliked")):
            st.button(label, key=f"{name}-{film.id}", icon=ICONS[name], on_click=judge, args=(name, film.id, title))
        st.button("More like this", key=f"more-{film.id}", on_click=more_like, args=(film.id, title))


def reasons(match: Match) -> str:
    """Why a film is in the answer: the numbers that ranked it."""
    parts = [f"cosine {match.cosine:.3f} (score {match.similarity:.3f})"]
    if match.vector_rank is not None:
        parts.append(f"place {match.vector_rank} by vectors")
    if match.words_score is not None and match.words_score > 0:
        rank = f"place {match.words_rank} by words, " if match.words_rank is not None else ""
        parts.append(f"{rank}BM25 {match.words_score:.2f}")
    return " · ".join(parts)


def judge(name: str, id: int, title: str) -> None:
    """Remembers an opinion, in place of another about the same film."""
    st.session_state["disliked" if name == "liked" else "liked"].pop(id, None)
    st.session_state[name][id] = title


def more_like(id: int, title: str) -> None:
    st.session_state.like_film = (id, title)


def forget_film() -> None:
    st.session_state.like_film = None


def draw_map(labels: list[FilmLabel], matches: list[Match]) -> None:
    """All films as points, those of the answer in colour: films that are near each other have plots that are alike."""
    places = film_map().places(film.id for film in labels)
    found = {match.film.id: place for place, match in enumerate(matches, 1)}
    rows = [(*places[film.id], film.title, found.get(film.id)) for film in labels if film.id in places]
    frame = pd.DataFrame(rows, columns=["x", "y", "film", "place"])
    st.subheader("Where they are among all films")
    st.caption("Each point is a film; films with plots that are alike are near each other (t-SNE of the embeddings).")
    axes = {"x": alt.X("x", axis=None), "y": alt.Y("y", axis=None), "tooltip": ["film"]}
    everything = alt.Chart(frame[frame.place.isna()]).mark_circle(size=8, opacity=0.35, color="#888").encode(**axes)
    answers = alt.Chart(frame[frame.place.notna()])
    points = answers.mark_circle(size=110, opacity=1, color="#ff8800").encode(**axes)
    names = answers.mark_text(align="left", dx=8, fontWeight="bold", color="#ff8800").encode(x="x", y="y", text="film")
    st.altair_chart((everything + points + names).properties(height=560).configure_view(strokeWidth=0), key="map")


page()
