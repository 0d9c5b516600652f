"""The page in a real browser. Screenshots: target/apps/films."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import pytest
from annulus_films.database import FilmDatabase
from conftest import ROOT, ServerAt
from pages import free_port, running_app
from playwright.sync_api import Browser, Page, expect
from server import Server

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


def heading(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.get_by_role("heading", name=name, exact=True)


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
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    visitor.screenshot(path=SCREENSHOTS / f"page-{scheme}.png")
    visitor.locator("canvas").scroll_into_view_if_needed()
    expect(visitor.locator("canvas")).to_be_in_viewport()
    visitor.screenshot(path=SCREENSHOTS / f"map-{scheme}.png")
    visitor.close()
    assert problems == []


def test_a_sentence_is_answered(page: Page) -> None:
    page.get_by_label("A film about").fill("astronauts travel to Mars")
    page.get_by_label("A film about").press("Enter")
    heading(page, "Mission to Mars (2000)").wait_for()


def test_an_empty_sentence_says_what_is_missing(page: Page) -> None:
    page.get_by_label("A film about").fill("")
    page.get_by_label("A film about").press("Enter")
    page.get_by_text("Say what the film should be about").wait_for()


def test_tags_in_a_sentence_are_text(page: Page) -> None:
    page.get_by_label("A film about").fill("<img src=x onerror=document.title='broken'> robot")
    page.get_by_label("A film about").press("Enter")
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


def test_a_database_that_is_down_is_said_and_tried_again(browser: Browser, tmp_path: pathlib.Path) -> None:
    port = free_port()
    with running_app("127.0.0.1", port, tmp_path / "page.log") as url:
        visitor = browser.new_page()
        visitor.set_default_timeout(WAIT_MS)
        visitor.goto(url)
        visitor.get_by_text(f"No database answers at 127.0.0.1:{port}. Start one with: make run").wait_for()
        with ServerAt(tmp_path / "data", port):
            visitor.get_by_role("button", name="Try again").click()
            visitor.get_by_text("python -m annulus_films migrate").wait_for()
        visitor.close()
