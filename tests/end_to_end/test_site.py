"""The site in a real browser, from a disk: pages, links, permalinks, what is withheld, text that attacks."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eval.export import export_run
from eval.pack import main as pack
from eval.report.site.__main__ import main as site
from eval.report.site.pages import MOST
from eval.runs.exports import ExportedRun
from eval.runs.load import checksums
from eval.runs.signing import sign_folder
from tests.support.browser import Page, chromium
from tests.support.fake_run import FakeRun
from tests.support.sample_run import retrieval_run
from tests.unit.eval.audit.packs.test_packs import with_run

TEN = tuple(f"conv-{number}" for number in range(10))
VIEWS = ("results", "systems", "by-question", "submissions", "tables")
ATTACK = "</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of three summaries, one of a hostile name, and of a pack."""
    root = tmp_path_factory.mktemp("places")
    for memory, share in (("rag", 0.7), ("clag", 0.3), (f"x{ATTACK}", 0.68)):
        values = lambda number, metric, share=share: min(1.0, share + (number % 3) / 30)  # noqa: E731
        run = FakeRun(memory="rag", conversations=TEN, values=values, seed=len(memory))
        path = FakeRun.write(run, root / "runs" / str(len(memory)))
        _rename(path, memory)
        export_run(path, root / "summaries")
    packs = root / "packs"
    packs.mkdir()
    assert pack([str(retrieval_run(root, "rag")), "--out", str(packs / "rag-sample.zip")]) == 0
    assert site([str(root / "summaries"), str(packs), "--out", str(root / "site")]) == 0
    return root / "site"


def _rename(path: Path, memory: str) -> None:
    """Give the memory of a run another name, and the run an id of its own."""
    record = json.loads((path / "run.json").read_text())
    record["config"]["memory"]["name"] = memory
    record["run_id"] = f"fake/{len(memory)}"
    (path / "run.json").write_text(json.dumps(record))
    meta = json.loads((path / "scores_meta.json").read_text())
    (path / "scores_meta.json").write_text(json.dumps({**meta, "inputs": checksums(path)}))
    sign_folder(path)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


def go(page: Page, file: Path, route: str = "") -> None:
    page.problems.clear()
    page.requests.clear()
    page.open(f"{file.as_uri()}{route}")
    page.wait("document.querySelector('main h2') !== null")


def text(page: Page, selector: str = "main") -> str:
    return str(page.run(f"document.querySelector({selector!r}).innerText"))


def test_pages_are_small_and_hold_no_text_that_may_not_be_passed_on(built: Path) -> None:
    pages = sorted(path.relative_to(built).as_posix() for path in built.rglob("*.html"))
    assert {"index.html", "systems/rag.html", "systems/clag.html"} <= set(pages)
    assert len([name for name in pages if name.startswith("systems/")]) == 3
    for path in built.rglob("*.html"):
        assert path.stat().st_size < MOST
        assert "secret" not in path.read_text()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1000, "light")])
def test_every_view_works_from_a_disk_and_fits(page: Page, built: Path, view: str, width: int, scheme: str) -> None:
    page.prefer(scheme)
    page.size(width, 800, mobile=width < 760)
    go(page, built / "index.html", f"#/{view}")
    assert page.problems == []
    assert [one for one in page.requests if not one.startswith(("file:", "about:"))] == []
    assert page.run("document.querySelector('nav [aria-current]').dataset.view") == view
    assert page.run("document.documentElement.scrollWidth") == width


def test_tiers_and_the_way_from_a_comparison_to_a_system_and_back(page: Page, built: Path) -> None:
    page.size(1280)
    go(page, built / "index.html")
    assert "tier" in text(page, "table.board thead")
    tier = """[...document.querySelectorAll('table.board tbody tr')].map((row) =>
        row.querySelector('[data-label=tier]').innerText)"""
    assert page.run(tier) == ["1", "1", "2"] or page.run(tier) == ["1", "2", "3"]
    page.run("[...document.querySelectorAll('table.board tbody a')].find((one) => one.innerText === 'clag').click()")
    page.wait("location.pathname.endsWith('systems/clag.html') && document.querySelector('main table') !== null")
    assert text(page, "main h2") == "clag" and "3 of 3" in text(page)
    page.run("document.querySelector('main table a').click()")
    page.wait("location.pathname.endsWith('index.html') && document.querySelector('table.board') !== null")
    assert page.problems == []


def test_the_chart_has_every_cost_that_is_known(page: Page, built: Path) -> None:
    page.size(1280)
    go(page, built / "index.html")
    label = "document.querySelector('svg.chart')?.getAttribute('aria-label')"
    if page.run("document.getElementById('filter-axis') === null"):
        assert page.run(label) in (None, "F1 (A-Mem, mem0) against tokens per question")
        return
    names = page.run("[...document.getElementById('filter-axis').options].map((one) => one.value)")
    for name in names:
        page.run(f"""(() => {{ const box = document.getElementById('filter-axis'); box.value = {name!r};
            box.dispatchEvent(new Event('change')); }})()""")
        page.wait(f"location.hash.includes('axis={name}') && document.querySelector('svg.chart') !== null")
    assert page.problems == []


def test_a_question_has_an_address_and_its_texts_only_where_a_pack_may_show_them(page: Page, built: Path) -> None:
    sets = {path.name: path for path in (built / "questions").iterdir()}
    sample = next(path for name, path in sets.items() if "sample" in name)
    other = next(path for name, path in sets.items() if "sample" not in name)
    go(page, other, "#/questions?q=conv-3:1")
    shown = text(page, "#question")
    assert "conv-3:1" in shown and "Only ids and scores are here" in shown and "rag" in shown
    go(page, sample, "#/questions")
    page.wait("document.querySelector('#question table') !== null")
    assert "Should be" in text(page, "#question")
    assert page.problems == []


def test_a_submission_says_what_was_checked(page: Page, built: Path) -> None:
    go(page, built / "index.html", "#/submissions")
    page.run("document.querySelectorAll('main details').forEach((node) => { node.open = true; })")
    shown = text(page)
    assert "rag-sample.zip" in shown and "all that can be checked fits" in shown
    assert "scored again from turn ids" in shown and "that this memory, model and code gave" in shown


def test_a_forged_pack_is_left_out_by_name(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def forge(run: ExportedRun) -> ExportedRun:
        first = run.rows[0]
        return replace(run, rows=[replace(first, metrics={**first.metrics, "hits": 99.0}), *run.rows[1:]])

    with_run(built.parent / "packs" / "rag-sample.zip", tmp_path / "forged.zip", forge)
    assert site([str(tmp_path / "forged.zip"), str(built.parent / "summaries"), "--out", str(tmp_path / "site")]) == 0
    said = capsys.readouterr().out
    assert "left out:" in said and "hits is printed as 99" in said
    assert "99" in (tmp_path / "site" / "index.html").read_text()
