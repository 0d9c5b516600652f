"""Pastes what the pages show, in the order of reading: every SQL statement into cqlsh, every curl into a shell.

All pages share the shop of README's five minutes, and README has the films of the sample, too."""

import pathlib
import re
import subprocess
import sys

import pytest
from server import Server
from shell import shows

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = "README.md"
FENCED = r"^```(?:sql|bash|python)\n.*?^```$"
CURL = r"^    curl (?:[^\n]*\\\n)*[^\n]*$"
BLOCK = re.compile(f"{FENCED}|{CURL}", re.MULTILINE | re.DOTALL)
LOCAL = re.compile(r"(localhost|127\.0\.0\.1):6080")

# The answers that a reader sees, in their order.
ANSWERS = {
    README: [
        *["tea", "cocoa", "spade", "'Chappie', 'Heartbeeps'"],
        *["products_v", "SERVING", r'"primary_keys":\{"id":\[1,2\]\}'],
    ],
    "docs/text.md": ["tea", "cocoa", "tea", "cocoa", "tea", "cocoa", r"\b3\b", "cocoa", "tea", "green <b>tea</b>"],
    "docs/hybrid.md": ["cocoa", "tea", "spade", "cocoa", "tea", "tea", "cocoa", "spade"],
    "docs/http.md": [
        *[r'"id":\[1,2\]', r'"id":\[1,2\]', r"\[Tea\] &amp; cocoa", r'"id":\[3\]', r'"colour":\["red"\]', r'"id":\[2,3\]'],
        *["SERVING", '"kind":"repair"'],
    ],
    "docs/http-binary.md": [r'"id":\[1\]'],
    "docs/search.md": [r"3 \| *spade", r"3 \| *spade"],
    "docs/indexes.md": ["tea", r"1 \| *Mellow"],
    "docs/tables.md": [],
    "docs/gateway.md": [],
    "docs/gateway-queries.md": ["spade"],
    "docs/security.md": ["SELECT", "MODIFY"],
}

# Pages whose blocks have servers and files of their own: test_cookbook.py, tests/clients/test_docs_of_drivers.py,
# apps/films/tests.
ELSEWHERE = ["docs/cookbook.md", "docs/drivers.md", "docs/films.md", "docs/tutorial-films.md"]

# A block with this is for a cluster of Cassandra with users (tests/cluster).
OF_A_CLUSTER = "CREATE ROLE gateway"


def in_the_order_of_reading():
    """README, then the pages in the order of docs/README.md."""
    _, _, all_pages = (ROOT / "docs/README.md").read_text().partition("All pages")
    links = re.findall(r"\]\(([a-z-]+\.md)\)", all_pages)
    pages = dict.fromkeys(f"docs/{link}" for link in links)
    return [README, *(page for page in pages if page not in ELSEWHERE)]


def blocks(page):
    """The blocks of a page, each with its language, without requests to the servers of others and statements for a
    cluster. README's first statement shows no table that is there."""
    text = (ROOT / page).read_text()
    if page == README:
        text = text[text.index("## Five minutes") :]
    for block in BLOCK.findall(text):
        language, _, body = block.removesuffix("```").partition("\n")
        if OF_A_CLUSTER in block:
            continue
        if block.startswith("```"):
            yield language.removeprefix("```"), body
        elif LOCAL.search(block):
            yield "bash", block


def paste(server, language, text, *options):
    """What a reader sees who pastes a block of a page, whose server has other ports."""
    if language == "sql":
        return shows(server, text.strip(), *options)
    text = LOCAL.sub(f"{server.host}:{server.http_port}", text)
    text = text.replace('Cluster(["127.0.0.1"])', f'Cluster(["{server.host}"], port={server.cql_port})')
    # A curl that is refused fails.
    command = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text.replace("curl ", "curl -sf ")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, ""), text + result.stdout + result.stderr
    return result.stdout + "\n"


def read(server, page, *options):
    """Pastes a page, and looks at its answers."""
    seen = "".join(paste(server, language, text, *options) for language, text in blocks(page))
    assert re.search(".*".join(ANSWERS[page]), seen, re.DOTALL), seen


@pytest.fixture
def shop(tmp_path):
    with Server(tmp_path / "data", "--sample", "movies") as server:
        yield server


@pytest.fixture
def login(tmp_path):
    """A server that asks for logins, with the options of cqlsh for a superuser."""
    file = tmp_path / "superuser"
    file.write_text("boss\nsesame-open\n")
    file.chmod(0o600)
    with Server(tmp_path / "data", "--login", "--superuser-file", file) as server:
        # A password among the arguments is warned of.
        credentials = tmp_path / "credentials"
        credentials.write_text("[PlainTextAuthProvider]\nusername = boss\npassword = sesame-open\n")
        credentials.chmod(0o600)
        yield server, ("--credentials", str(credentials))


def test_the_pages_are_pasted_in_the_order_of_reading(shop):
    pages = [page for page in in_the_order_of_reading() if any(blocks(page))]
    assert set(pages) == set(ANSWERS)
    for page in pages:
        if page != "docs/security.md":
            read(shop, page)


def test_the_page_on_security_is_pasted_after_the_readme(login):
    server, options = login
    for language, text in blocks(README):
        if language == "sql":
            paste(server, language, text, *options)
    read(server, "docs/security.md", *options)
