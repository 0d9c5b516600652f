"""The page in a real browser. Screenshots: target/apps/rag_bench."""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterator

import pytest
from annulus_embedder.testing import running_scripted_server, running_stub_model
from conftest import ROOT, Library
from pages import running_page
from playwright.sync_api import Browser, Locator, Page, expect
from server import Server, eventually
from serving import free_port

SCREENSHOTS = ROOT / "target/apps/rag_bench"
WAIT_MS = 90_000
FOUND = "Heartbeeps is a 1981 American romantic science fiction comedy film about two robots"
SIZE = {"width": 1280, "height": 1500}


@pytest.fixture(scope="module")
def url(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_page(server.cql_port, tmp_path_factory.mktemp("page") / "log") as url:
        yield url


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A visitor of the page, with an answer on it, and without a request to another place."""
    visitor = opened(browser, url)
    elsewhere: list[str] = []
    visitor.on(
        "request",
        lambda request: (
            elsewhere.append(request.url) if "127.0.0.1" not in request.url and request.url.startswith("http") else None
        ),
    )
    expect(answer(visitor)).to_contain_text(FOUND)
    settled(visitor)
    yield visitor
    visitor.close()
    assert elsewhere == []


def opened(browser: Browser, url: str, scheme: str = "light") -> Page:
    visitor = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
    visitor.set_default_timeout(WAIT_MS)
    expect.set_options(timeout=WAIT_MS)
    visitor.goto(url)
    return visitor


def settled(page: Page) -> None:
    """Waits until the page is drawn: a click before may miss what it was meant for."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def answer(page: Page) -> Locator:
    return page.locator(".answer")


def ask(page: Page, question: str) -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_label("Question").press("Enter")


def try_again(page: Page) -> None:
    page.get_by_role("button", name="Try again").click()


def ask_and_wait(page: Page, question: str) -> None:
    """Asks, and waits until the page has a new answer, whose steps took other times than those of the last one."""
    before = page.locator(".steps").text_content() or ""
    ask(page, question)
    expect(page.locator(".steps")).not_to_have_text(before)
    settled(page)


def enter_date(page: Page, label: str, year: str, month: str, day: str) -> None:
    """Types a date. Streamlit's field has a spinbutton for each part, and takes the date when it loses the focus."""
    field = page.get_by_test_id("stDateInput").filter(has_text=label)
    for part, digits in (("year", year), ("month", month), ("day", day)):
        field.locator(f"[data-type={part}]").press_sequentially(digits)
    page.get_by_role("heading", name="Answers from articles").click()


def shoot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_example_is_answered_with_a_citation_sources_and_times(browser: Browser, url: str, scheme: str) -> None:
    visitor = opened(browser, url, scheme)
    problems: list[str] = []
    visitor.on("pageerror", lambda error: problems.append(str(error)))
    expect(answer(visitor)).to_contain_text(FOUND)
    citation = answer(visitor).get_by_role("link", name="[1]")
    expect(citation).to_have_attribute("href", "https://en.wikipedia.org/wiki/Heartbeeps")
    expect(citation).to_have_attribute("rel", "noopener noreferrer")
    expect(visitor.locator(".source h4").first).to_have_text("[1] Heartbeeps")
    expect(visitor.locator(".source .facts").first).to_contain_text(
        re.compile(r"1981-12-18 · distance 0\.3\d\d · cited")
    )
    steps = visitor.locator(".steps")
    for step in ("embed", "check", "search", "grade", "answer"):
        expect(steps).to_contain_text(re.compile(rf"{step}\s*\d+\.\d ms"))
    settled(visitor)
    # What is written can be read on what is below it.
    assert contrast(visitor, ".answer") > 7 and contrast(visitor, ".answer a") > 7
    shoot(visitor, f"ask-{scheme}")
    visitor.close()
    assert problems == []


def contrast(page: Page, selector: str) -> float:
    """The contrast of a text with the page, as WCAG has it: 1 to 21, of which 7 is good."""
    found = page.locator(selector).first.evaluate(
        """element => {
            const below = getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor;
            const luminance = colour => {
                const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
                const [r, g, b] = parts.map(p => p <= 0.03928 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const [a, b] = [luminance(getComputedStyle(element).color), luminance(below)].sort((a, b) => b - a);
            return (a + 0.05) / (b + 0.05);
        }"""
    )
    return float(found)


def test_a_question_is_answered(page: Page) -> None:
    ask(page, "Which mission goes to Mars?")
    expect(page.locator(".source h4").first).to_have_text("[1] Mission to Mars")
    expect(answer(page)).to_contain_text("Mars")


def test_a_question_that_no_article_answers_is_declined(page: Page) -> None:
    ask(page, "How do I prune roses in spring?")
    expect(answer(page)).to_have_text("Not in the documents.")
    page.get_by_text("and one helps up to 0.6.").wait_for()
    page.get_by_text("Found and left out, as they do not help: 5").click()
    expect(page.locator(".source")).to_have_count(5)
    settled(page)
    shoot(page, "not-in-the-documents")


def test_an_empty_question_says_what_is_missing(page: Page) -> None:
    ask(page, " ")
    page.get_by_text("The question is empty").wait_for()
    expect(answer(page)).to_have_count(0)


@pytest.mark.parametrize("question", ["ロボットの恋", "🤖❤️🤖", "Zwei Roboter verlieben sich", "روبوتات في الحب"])
def test_any_language_and_any_sign_is_a_question(page: Page, question: str) -> None:
    ask_and_wait(page, question)
    expect(page.locator("[data-testid=stException]")).to_have_count(0)
    expect(answer(page)).to_have_count(1)


def test_a_question_of_100_kb_is_read_in_part_and_says_so(page: Page) -> None:
    ask(page, "Which film has two robots that fall in love? " * 2_300)
    page.get_by_text("Of the question's 103,500 characters the first 2,000 were read.").wait_for()
    expect(answer(page)).to_contain_text(FOUND)


def test_tags_in_a_question_are_text(page: Page) -> None:
    title = page.title()
    ask_and_wait(
        page, "<img src=x onerror=document.title='broken'> [1](http://elsewhere.example) two robots fall in love"
    )
    assert page.title() == title and page.locator("img[src=x]").count() == 0


def test_dates_narrow_the_sources(page: Page) -> None:
    enter_date(page, "Published from", "1999", "01", "01")
    expect(page.locator(".source h4", has_text="Heartbeeps")).to_have_count(0)
    ask(page, "Which mission goes to Mars?")
    expect(page.locator(".source h4").first).to_have_text("[1] Mission to Mars")
    settled(page)
    facts = page.locator(".source .facts")
    expect(facts).to_have_count(5)
    assert all(date[:4] >= "1999" for date in facts.all_text_contents())
    enter_date(page, "Published until", "1999", "12", "31")
    # "The 4th Floor" is the one of that year among the tests' articles.
    expect(facts).to_have_count(1)
    expect(facts).to_contain_text("1999-01-01")


def test_dates_in_the_wrong_order_are_said(page: Page) -> None:
    enter_date(page, "Published from", "2000", "01", "01")
    expect(page.locator(".source h4", has_text="Heartbeeps")).to_have_count(0)
    enter_date(page, "Published until", "1999", "12", "31")
    page.get_by_text("No date is both after 2000-01-01 and before 1999-12-31.").wait_for()
    expect(answer(page)).to_have_count(0)


def test_without_words_the_order_is_that_of_distances(page: Page) -> None:
    page.get_by_text("Search by words as well").click()

    def ascends() -> bool:
        facts = page.locator(".source .facts").all_text_contents()
        distances = re.findall(r"distance ([\d.]+)", " ".join(facts))
        return len(distances) == 5 and distances == sorted(distances)

    assert eventually(ascends, seconds=WAIT_MS / 1_000, every=0.1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_evaluation_has_the_quality_and_says_why_the_stub_is_not_judged(
    browser: Browser, url: str, scheme: str
) -> None:
    visitor = opened(browser, url, scheme)
    expect(answer(visitor)).to_contain_text(FOUND)
    visitor.get_by_role("link", name="Evaluation").click()
    visitor.get_by_text("Faithfulness is measured with a real model alone.").wait_for()
    table = visitor.get_by_test_id("stTable")
    for row in ("by vectors", "by vectors and words"):
        expect(
            table.get_by_role("row", name=re.compile(rf"^{row} [01]\.\d{{3}} [01]\.\d{{3}} [01]\.\d{{3}}$"))
        ).to_be_visible()
    visitor.get_by_text(re.compile(r"Within the largest distance of 0\.6, \d+% of the \d+ judged questions")).wait_for()
    chart = visitor.locator("[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas").first
    chart.scroll_into_view_if_needed()
    expect(chart).to_be_visible()
    settled(visitor)
    shoot(visitor, f"evaluation-{scheme}")
    visitor.close()


def test_a_real_model_is_asked_and_judged(browser: Browser, server: Server, tmp_path: pathlib.Path) -> None:
    with running_scripted_server() as model:
        refusal = "![x](http://elsewhere.example/x.png) **No**"
        model.status, model.answer = 429, refusal.encode()
        with running_page(server.cql_port, tmp_path / "page.log", RAG_MODEL_URL=model.base_url) as url:
            visitor = opened(browser, url)
            # What a model says of its trouble is text.
            visitor.get_by_text(f"answers 429: {refusal}").wait_for()
            settled(visitor)
            # An answer, a judgement, and what lists no stub: all in one.
            model.say("Two robots do <b>so</b>. [1] And more. [9] yes\nno\nyes")
            try_again(visitor)
            expect(answer(visitor)).to_contain_text("Two robots do <b>so</b>. [1] And more. [9]")
            visitor.get_by_text("It cites [9], which is no source.").wait_for()
            settled(visitor)
            visitor.get_by_role("link", name="Evaluation").click()
            visitor.get_by_role("button", name="Measure faithfulness").click()
            expect(visitor.get_by_test_id("stMetric").first).to_contain_text("%")
            settled(visitor)
            shoot(visitor, "faithfulness")
            visitor.close()


def test_a_model_that_is_down_is_said_with_the_articles(
    browser: Browser, server: Server, tmp_path: pathlib.Path
) -> None:
    with running_stub_model() as model:
        model.stop()
        with running_page(server.cql_port, tmp_path / "page.log", RAG_MODEL_URL=model.base_url) as url:
            visitor = opened(browser, url)
            visitor.get_by_text(f"No model answers at {model.base_url}").wait_for()
            expect(visitor.locator(".source h4").first).to_have_text("[1] Heartbeeps")
            settled(visitor)
            shoot(visitor, "model-down")
            model.start()
            try_again(visitor)
            expect(answer(visitor)).to_contain_text(FOUND)
            visitor.close()


def test_a_database_that_is_down_is_said_and_found_again(
    browser: Browser, library: Library, tmp_path: pathlib.Path
) -> None:
    port = free_port()
    down = f"No Annulus answers at 127.0.0.1:{port}. Start one with: make run"
    with running_page(port, tmp_path / "page.log") as url:
        visitor = opened(browser, url)
        visitor.get_by_text(down).wait_for()
        settled(visitor)
        shoot(visitor, "database-down")
        with Server(tmp_path / "data", cql_port=port) as database:
            try_again(visitor)
            visitor.get_by_text("annulus_rag_bench load --store annulus").wait_for()
            library.load_server("127.0.0.1", port)
            settled(visitor)
            try_again(visitor)
            expect(answer(visitor)).to_contain_text(FOUND)
            settled(visitor)
            # Away once more, while the page is connected.
            database.stop()
            ask(visitor, "Which mission goes to Mars?")
            visitor.get_by_text(down).wait_for()
            settled(visitor)
            database.start()

            marks = itertools.count(2)

            def is_answered() -> bool:
                settled(visitor)
                if answer(visitor).count() == 0:
                    # The page's driver looks for the database once a second. Another text is another question.
                    ask(visitor, "Which mission goes to Mars" + "?" * next(marks))
                return answer(visitor).count() == 1

            eventually(is_answered, seconds=WAIT_MS / 1_000, every=0.5)
            expect(visitor.locator(".source h4").first).to_have_text("[1] Mission to Mars")
        visitor.close()
