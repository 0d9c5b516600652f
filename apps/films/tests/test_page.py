"""The page in a real browser. Screenshots: target/apps/films."""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterator

import pytest
from annulus_embedder.model import Embedder
from annulus_embedder.testing import running_embedder
from annulus_films.database import FilmDatabase
from annulus_films.migrate import migrate
from conftest import ROOT, settings_of
from pages import running_app
from playwright.sync_api import Browser, Locator, Page, expect
from server import Server, eventually
from serving import free_port

SCREENSHOTS = ROOT / "target/apps/films"
WAIT_MS = 45_000


@pytest.fixture(scope="module")
def url(server: Server, database: FilmDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_app(server.host, server.cql_port, tmp_path_factory.mktemp("page") / "log") as url:
        yield url


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A visitor of the page, with an answer on it, and without a request to another place."""
    visitor = browser.new_page(viewport={"width": 1280, "height": 1000})
    visitor.set_default_timeout(WAIT_MS)
    elsewhere: list[str] = []
    visitor.on(
        "request",
        lambda request: (
            elsewhere.append(request.url) if "127.0.0.1" not in request.url and request.url.startswith("http") else None
        ),
    )
    visitor.goto(url)
    heading(visitor, "Heartbeeps (1981)").wait_for()
    # A click while the page is still being drawn may miss what it was meant for.
    visitor.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    visitor.locator("canvas").wait_for()
    yield visitor
    visitor.close()
    assert elsewhere == []


def heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", name=name, exact=True)


def write(page: Page, sentence: str) -> None:
    page.get_by_label("A film about").fill(sentence)
    page.get_by_label("A film about").press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_example_is_answered_with_reasons_and_a_map(browser: Browser, url: str, scheme: str) -> None:
    visitor = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme=scheme)
    problems: list[str] = []
    visitor.on("pageerror", lambda error: problems.append(str(error)))
    visitor.goto(url)
    heading(visitor, "Heartbeeps (1981)").wait_for(timeout=WAIT_MS)
    expect(visitor.locator("mark").first).to_have_text("robots", timeout=WAIT_MS)
    expect(visitor.locator(".reasons").first).to_contain_text("place 1 by words", timeout=WAIT_MS)
    expect(visitor.locator(".reasons")).to_have_count(9, timeout=WAIT_MS)
    visitor.locator("canvas").wait_for(timeout=WAIT_MS)
    expect(visitor.get_by_text("12 of these 10,000 texts")).to_be_visible(timeout=WAIT_MS)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    visitor.screenshot(path=SCREENSHOTS / f"page-{scheme}.png")
    visitor.locator("canvas").scroll_into_view_if_needed()
    expect(visitor.locator("canvas")).to_be_in_viewport()
    visitor.screenshot(path=SCREENSHOTS / f"map-{scheme}.png")
    visitor.close()
    assert problems == []


def test_a_sentence_is_answered(page: Page) -> None:
    write(page, "astronauts travel to Mars")
    heading(page, "Mission to Mars (2000)").wait_for()
    expect(page.get_by_text("12 of these 10,000 texts")).to_have_count(0, timeout=WAIT_MS)


def test_sentences_of_100_kb_and_of_any_sign_are_answered(page: Page) -> None:
    write(page, "astronauts travel to Mars. " * 4_000)
    heading(page, "Mission to Mars (2000)").wait_for()
    write(page, "🎤🎶 歌手の物語 ❤️")
    heading(page, "Mission to Mars (2000)").wait_for(state="detached")
    expect(page.locator(".reasons")).to_have_count(9, timeout=WAIT_MS)
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def test_an_empty_sentence_says_what_is_missing(page: Page) -> None:
    write(page, "")
    page.get_by_text("Say what the film should be about").wait_for()


def test_tags_in_a_sentence_are_text(page: Page) -> None:
    write(page, "<img src=x onerror=document.title='broken'> robot")
    # Until the answer is that to this sentence, which has no love in it.
    expect(page.locator("mark").filter(has_text=re.compile("love", re.IGNORECASE))).to_have_count(0, timeout=WAIT_MS)
    expect(page.locator(".reasons")).to_have_count(9, timeout=WAIT_MS)
    assert page.title() == "Films by a sentence"


def test_a_genre_narrows_the_answer(page: Page) -> None:
    page.get_by_role("combobox", name="Genre").click()
    page.get_by_role("combobox", name="Genre").fill("Western")
    page.keyboard.press("Enter")
    expect(page.locator(".genre").filter(has_not_text="Western")).to_have_count(0, timeout=WAIT_MS)
    expect(page.locator(".genre").filter(has_text="Western")).to_have_count(9, timeout=WAIT_MS)


def test_likes_are_remembered_and_forgotten(page: Page) -> None:
    page.get_by_role("button", name="Like", exact=True).first.click()
    page.get_by_role("button", name="Forget Heartbeeps (1981)").wait_for()
    heading(page, "Heartbeeps (1981)").wait_for(state="detached")
    page.screenshot(path=SCREENSHOTS / "liked.png")
    page.get_by_role("button", name="Forget Heartbeeps (1981)").click()
    heading(page, "Heartbeeps (1981)").wait_for()


def test_more_like_this_starts_from_a_film_and_goes_back(page: Page) -> None:
    page.get_by_role("button", name="More like this").first.click()
    page.get_by_text("More like Heartbeeps (1981)").wait_for()
    heading(page, "Heartbeeps (1981)").wait_for(state="detached")
    page.get_by_role("button", name="Back to the sentence").click()
    heading(page, "Heartbeeps (1981)").wait_for()


def test_without_words_there_is_nothing_marked(page: Page) -> None:
    page.get_by_text("Rank by words as well").click()
    expect(page.locator("mark")).to_have_count(0, timeout=WAIT_MS)
    expect(page.locator(".reasons").filter(has_text="by words")).to_have_count(0, timeout=WAIT_MS)
    expect(page.locator(".reasons")).to_have_count(9, timeout=WAIT_MS)


def test_a_model_that_is_down_is_said_and_found_again(
    browser: Browser, server: Server, database: FilmDatabase, tmp_path: pathlib.Path
) -> None:
    with running_embedder() as model:
        model.stop()
        variables = {"FILMS_EMBEDDINGS_URL": model.base_url, "FILMS_EMBEDDINGS_MODEL": "all-MiniLM-L6-v2"}
        with running_app(server.host, server.cql_port, tmp_path / "page.log", **variables) as url:
            visitor = browser.new_page()
            visitor.set_default_timeout(WAIT_MS)
            visitor.goto(url)
            visitor.get_by_text(f"No embedding server at {model.base_url}").wait_for()
            model.start()
            visitor.get_by_role("button", name="Try again").click()
            heading(visitor, "Heartbeeps (1981)").wait_for()
            visitor.close()


def test_a_database_that_is_down_is_said_and_found_again(
    browser: Browser, embedder: Embedder, tmp_path: pathlib.Path
) -> None:
    port = free_port()
    down = f"No database answers at 127.0.0.1:{port}. Start one with: make run"
    with running_app("127.0.0.1", port, tmp_path / "page.log") as url:
        visitor = browser.new_page()
        visitor.set_default_timeout(WAIT_MS)
        visitor.goto(url)
        visitor.get_by_text(down).wait_for()
        with Server(tmp_path / "data", cql_port=port) as own_server:
            visitor.get_by_role("button", name="Try again").click()
            visitor.get_by_text("python -m annulus_films migrate").wait_for()
            with FilmDatabase(settings_of(own_server)) as own_database:
                migrate(own_database, embedder, lambda done, all: None)
            visitor.get_by_role("button", name="Try again").click()
            heading(visitor, "Heartbeeps (1981)").wait_for()
            # Away once more, while the page is connected.
            own_server.stop()
            write(visitor, "astronauts travel to Mars")
            visitor.get_by_text(down).wait_for()
            own_server.start()
            marks = itertools.count(1)

            def is_answered() -> bool:
                visitor.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
                if heading(visitor, "Mission to Mars (2000)").count() == 0:
                    # The page's driver looks for the database once a second. Another text is another search.
                    write(visitor, "astronauts travel to Mars" + "!" * next(marks))
                return heading(visitor, "Mission to Mars (2000)").count() == 1

            eventually(is_answered, seconds=WAIT_MS / 1_000, every=0.5)
        visitor.close()
