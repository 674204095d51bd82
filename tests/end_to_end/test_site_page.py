"""The built site in a real browser, opened from the disk: nothing is asked of a server, and the search finds."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Page, chromium

SITE = Path(__file__).resolve().parents[2] / "build" / "site"

pytestmark = pytest.mark.skipif(not (SITE / "search.js").is_file(), reason="the site is not built: make docs")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.size(1400)
        yield page


@pytest.mark.parametrize("name", ["index.html", "reference/settings/memory.html", "docs/decisions/index.html"])
def test_pages_of_every_depth_need_no_server_and_fit_a_phone(page: Page, name: str) -> None:
    page.requests.clear()
    page.problems.clear()
    page.size(390, mobile=True)
    page.open((SITE / name).as_uri())
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.problems == [] and [each for each in page.requests if each.startswith("http")] == []


#: All that is shown, in shadow trees too, where the search has its results.
SHOWN = """(() => {
  const shown = (node) => [...node.childNodes].map((child) =>
    (child.data ?? "") + (child.shadowRoot ? shown(child.shadowRoot) : "") + shown(child)).join("");
  return shown(document.body).includes("tokens of passages");
})()"""


def test_the_search_finds_a_setting_by_its_name(page: Page) -> None:
    page.size(1400)
    page.open((SITE / "docs" / "quickstart.html").as_uri())
    page.run("document.querySelector('.md-search__button').click()")
    time.sleep(0.5)
    assert not page.run(SHOWN)
    page.send("Input.insertText", text="budget_tokens")
    page.wait(SHOWN)
