"""The report page in a real browser: every view, keyboard, themes, phone width, and text that attacks."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pypdf import PdfReader

from eval.export import export_run
from eval.report.__main__ import main
from eval.runs.signing import sign_folder
from eval.scoring.verdicts.store import FOLDER, input_checksums
from tests.support.browser import Page, chromium
from tests.support.fake_run import FakeRun, rewrite
from tests.support.report_page import data_in

VIEWS = ("results", "questions", "compare", "tables", "runs")
ATTACKS = (
    "</script><img src=x onerror=\"document.title='taken'\">",
    "<svg onload=alert(1)><style>*{display:none}</style>",
    "<!--<script>alert(2)</script>--> \u2028 ${alert(3)} \u202e javascript:alert(4)",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three answering runs, whose every text attacks, and one that only retrieves."""
    root = tmp_path_factory.mktemp("runs")
    attack = lambda number: ATTACKS[number % len(ATTACKS)]  # noqa: E731
    for memory, share in (("rag", 0.75), ("amem", 0.25), ("clag", 0.5)):
        path = FakeRun(memory=memory, values=lambda n, metric, share=share: share).write(root)  # type: ignore[misc]
        rewrite(
            path,
            "answers.jsonl",
            lambda n, row, name=memory: row.update(  # type: ignore[misc]
                question=f"question {n} {attack(n)}", prediction=f"{name} says {attack(n)}", raw=attack(n)
            ),
        )
        rewrite(path, "retrievals.jsonl", lambda n, row: row["hits"][0].update(text=f"memory {n} {attack(n)}"))
        rewrite(path, "calls.jsonl", lambda n, row: row.update(item=f"conv-26:{row['item']}"))
        rewrite(path, "references.jsonl", lambda n, row: row.update(answers=[f"gold {attack(n)}"]))
    judge(path)
    FakeRun(memory="oracle", mode="retrieval_only", dataset="hotpotqa20", data_sha256="2" * 64).write(root)
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert main(["--runs", str(root), "--out", str(out), "--unmeasured-judges"]) == 0
    return out


def judge(path: Path) -> None:
    """Give a run verdicts, with reasons that attack."""
    rows = [json.loads(line) for line in (path / "answers.jsonl").read_text().splitlines()]
    verdicts = [
        {"question_id": row["question_id"], "repeat": 0, "verdict": "WRONG", "reason": ATTACKS[0], "input_sha256": ""}
        for row in rows
    ]
    probe = {"items": 2, "verdicts": 2, "unscored": 0, "accuracy": 0.5, "always": 0.5, "false_accept": 0.0,
             "false_reject": 1.0, "by_kind": {}}  # fmt: skip
    meta = {"status": "complete", "column": "judge_x_y", "judge": "x", "backbone": "y", "probe": probe,
            "identity": {}, "inputs": input_checksums(path)}  # fmt: skip
    (path / FOLDER).mkdir()
    (path / FOLDER / "x-y.jsonl").write_text("".join(json.dumps(row) + "\n" for row in verdicts))
    (path / FOLDER / "x-y.json").write_text(json.dumps(meta))
    sign_folder(path)
    from eval.scoring.summary import summarise

    summarise(path)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    browser.problems.clear()
    browser.requests.clear()
    browser.size(1280)
    browser.prefer("light")
    return browser


def go(page: Page, report: Path, route: str = "") -> None:
    page.open(f"{report.as_uri()}#/{route}")
    page.wait("document.querySelector('main h2') !== null")


def text(page: Page, selector: str = "main") -> str:
    return str(page.run(f"document.querySelector({selector!r}).innerText"))


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_without_error_or_request(page: Page, report: Path, view: str) -> None:
    go(page, report, view)
    assert page.problems == []
    assert [address for address in page.requests if not address.startswith(("file:", "about:"))] == []
    assert page.run("document.querySelector('nav [aria-current]').dataset.view") == view
    assert page.run("document.querySelectorAll('main img, main style, main script, main iframe').length") == 0


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_a_phone_in_light_and_dark(page: Page, report: Path, view: str, scheme: str) -> None:
    page.prefer(scheme)
    page.size(360, 740, mobile=True)
    go(page, report, view)
    assert page.run("document.documentElement.scrollWidth") == 360
    light = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is (scheme == "light")
    # Nothing is cut off for good: what is wider than the screen scrolls in a region of its own.
    outside = """[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > 361
        && !node.closest('.scroll') && !node.closest('svg')).map((node) => node.outerHTML.slice(0, 80))"""
    assert page.run(outside) == []


def test_text_of_models_is_shown_as_it_is_and_does_nothing(page: Page, report: Path) -> None:
    for number, attack in enumerate(ATTACKS):
        go(page, report, f"questions?q=conv-26:{number}")
        page.run("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        shown = page.run("document.querySelector('#question').textContent")
        for start in ("question", "gold", "rag says", "memory"):
            assert start in shown
        assert shown.count(attack) >= 8  # question, gold, three answers, three memories
        assert page.run("document.querySelectorAll('#question img, #question svg, #question style').length") == 0
    assert page.problems == []
    assert page.run("document.title") == "Questions - memsys report"


def test_the_conclusion_comes_first_and_its_switches_change_it(page: Page, report: Path) -> None:
    go(page, report)
    assert page.run("document.querySelector('nav [aria-current]').dataset.view") == "results"
    assert text(page, "main h2") == "LoCoMo clag · smollm2_135m"
    first = text(page, "#verdict")
    assert first.startswith("On 16 questions of 2 conversations rag leads clag by 25.0 points F1 answerable;")
    assert "16 of 20 questions, those that all 3 runs answered, without those" in text(page, "#same-questions")
    assert page.run(SYSTEMS) == ["rag", "clag", "amem"]
    assert "75.0" in page.run("document.querySelector('table.board tbody td').innerText")
    choose(page, "five", "paper_trap")
    page.wait("document.querySelector('#verdict').innerText.includes('20 questions')")
    assert "against rag" in text(page, "table.board thead")
    row = page.run("document.querySelectorAll('table.board tbody tr')[2].innerText")
    assert "−50.0" in row and "not confirmed" in row
    assert "By category" in text(page)


#: Systems of the first view's table, in its order.
SYSTEMS = "[...document.querySelectorAll('table.board tbody th[scope=row]')].map((node) => node.innerText)"


def test_the_first_view_shows_neither_hash_nor_run_id_and_decodes_one_part(page: Page, report: Path) -> None:
    page.open("about:blank")
    page.send("Page.addScriptToEvaluateOnNewDocument", source="window.decoded = 0; const old = window.atob;"
              "window.atob = (text) => { window.decoded += 1; return old(text); };")  # fmt: skip
    go(page, report)
    assert page.run("window.decoded") == 1
    shown = text(page)
    ids = page.run("[...document.querySelectorAll('main a')].map((node) => node.getAttribute('href'))")
    assert "fake/" not in shown and not re.search(r"[0-9a-f]{8}", shown)
    assert len(set(ids)) == 3 and all(re.fullmatch(r"#/runs\?run=\d", one) for one in ids)


def test_the_table_is_sorted_filtered_and_saved(page: Page, report: Path) -> None:
    go(page, report)
    page.run("[...document.querySelectorAll('table.board thead button')].at(0).click()")
    assert page.run(SYSTEMS) == ["amem", "clag", "rag"]
    page.run("[...document.querySelectorAll('table.board thead button')].at(1).click()")
    assert page.run(SYSTEMS) == ["rag", "clag", "amem"]
    page.run("[...document.querySelectorAll('table.board thead button')].at(1).click()")
    assert page.run(SYSTEMS) == ["amem", "clag", "rag"]
    page.send("Page.reload")
    page.wait("document.readyState === 'complete' && document.querySelector('table.board tbody') !== null")
    assert page.run(SYSTEMS) == ["amem", "clag", "rag"]  # the address keeps it
    columns = "[...document.querySelectorAll('table.board thead th')].map((node) => node.innerText.trim())"
    assert "ROUGE-L" not in page.run(columns)
    page.run("[...document.querySelectorAll('.picker input')].find((box) => box.value === 'rougeL').click()")
    assert "ROUGE-L" in page.run(columns)
    page.run("""(() => { const field = document.getElementById('filter-filter') ?? null;
        if (field) { field.value = 'clag'; field.dispatchEvent(new Event('input')); } })()""")
    page.run("""window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; };
        [...document.querySelectorAll('.tools button')].find((node) => node.innerText === 'CSV').click()""")
    page.send("Page.navigate", url=f"{report.as_uri()}#/results")
    saved = page.run("window.saved[0].text()")
    lines = list(csv.reader(io.StringIO(saved)))
    assert lines[0][:4] == ["system", "F1 answerable", "low", "high"] and "ROUGE-L" in lines[0]
    assert {line[0] for line in lines[1:]} <= {"rag", "clag", "amem"} and float(lines[1][1]) == 25.0


def test_a_judge_no_better_than_a_constant_is_never_green(page: Page, report: Path) -> None:
    go(page, report, "results?metric=judge_x_y")
    assert text(page, "#verdict").startswith("These scores cannot tell which memory is better: x on y is not better")
    assert "Not a ranking" in text(page)
    assert "not confirmed" not in text(page, "main table")
    go(page, report, "questions?q=conv-26:0")
    assert "Verdict not to be relied on: x on y is not better than a constant" in text(page, "#question")
    assert page.run("document.querySelectorAll('.worthless .chip').length") == 0


def test_a_judge_that_is_left_out_is_named_with_the_way_to_measure_it(page: Page, report: Path, tmp_path: Path) -> None:
    line = "left out: x on y; memsys judge --people 200 measures it"
    shown = report.read_text(encoding="utf-8").replace('"judgesLeftOut":[]', f'"judgesLeftOut":["{line}"]')
    (tmp_path / "other.html").write_text(shown, encoding="utf-8")
    go(page, tmp_path / "other.html")
    assert f"L{line[1:]}." in text(page)


def test_tables_of_every_kind_can_be_chosen(page: Page, report: Path) -> None:
    go(page, report, "tables")
    kinds = page.run("[...document.querySelectorAll('#filter-table optgroup')].map((group) => group.label)")
    assert kinds[:3] == ["Costs and evidence", "Calls by role", "What memories hold"]
    assert {"Other definitions", "Published answers"} <= set(kinds)
    systems = "[...document.querySelectorAll('main tbody th')].map((cell) => cell.innerText)"
    listed = page.run("[...document.querySelector('#filter-table optgroup').children].map((one) => one.value)")
    choose(page, "table", listed[-1])
    page.wait(f"({systems}).length === 3")
    choose(page, "table", page.run("document.querySelectorAll('#filter-table optgroup')[1].children[0].value"))
    page.wait("document.querySelector('main h2').innerText === 'Calls by role'")
    assert {"system", "calls", "malformed"} <= set(text(page, "main thead").split())


def test_two_runs_side_by_side_lead_to_a_question_and_its_first_other_call(page: Page, report: Path) -> None:
    go(page, report, "compare")
    assert "20" not in text(page, "#pair").split("over")[0]
    assert "over 16 questions" in text(page, "#pair")
    assert "95 % interval [" in text(page, "#pair")
    assert "not confirmed" in text(page, "#pair")
    assert page.run("document.querySelectorAll('.changes li').length") == 16
    choose(page, "five", "paper_trap")
    page.wait("document.querySelector('#pair').innerText.includes('over 20 questions')")
    page.run("document.querySelector('.changes a').click()")
    page.wait("document.querySelector('#question .ways > section') !== null")
    assert page.run("document.querySelectorAll('#question .ways > section').length") == 2
    assert "calls about this question" in text(page, "#question .note")


def test_a_question_shows_the_whole_way_of_an_answer(page: Page, report: Path) -> None:
    go(page, report, "questions?q=conv-26:1")
    parts = page.run("[...new Set([...document.querySelectorAll('#question [data-part]')].map((n) => n.dataset.part))]")
    assert parts == ["hits", "prompt", "reply", "calls", "scores"]  # these runs keep no memory
    page.run("document.querySelectorAll('#question details').forEach((node) => { node.open = true; })")
    shown = text(page, "#question")
    assert "null" not in shown.split()
    for word in ("secret evidence", "secret context", "memories retrieved", "Stored", "Retrieved", "Answered", "gold"):
        assert word in shown


#: Tables that are wider than their place, and so have to be scrolled to be read.
CUT = """[...document.querySelectorAll('main .scroll')].filter((node) => node.scrollWidth > node.clientWidth + 1)
    .map((node) => node.getAttribute('aria-label'))"""


@pytest.mark.parametrize("width", [390, 800, 1000, 1280, 1600])
def test_no_table_has_to_be_scrolled_sideways(page: Page, report: Path, width: int) -> None:
    page.size(width, 800, mobile=width < 760)
    for view in ("results", "questions?q=conv-26:1", "compare"):
        go(page, report, view)
        page.run("document.querySelectorAll('main details').forEach((node) => { node.open = true; })")
        assert page.run(CUT) == [], view


#: What is wider than A4 without its margins.
WIDER = """[...document.querySelectorAll('main td, main th, main pre, main p, main svg')].filter((node) =>
    node.getBoundingClientRect().width && node.getBoundingClientRect().right > 719)
    .map((node) => node.textContent)"""


def test_paper_has_tables_and_nothing_is_wider_than_it(page: Page, report: Path) -> None:
    """A4 without its margins; prices are known to no run here, so their column is left out."""
    page.size(718, 1000)
    page.send("Emulation.setEmulatedMedia", media="print")
    for view in ("results", "questions?q=conv-26:1", "compare", "tables"):
        go(page, report, view)
        page.run("window.dispatchEvent(new Event('beforeprint'))")
        assert page.run(WIDER) == [], view
        rows = "[...document.querySelectorAll('main tr')].map((node) => getComputedStyle(node).display)"
        assert set(page.run(rows)) <= {"table-row"}, view
    page.send("Emulation.setEmulatedMedia", media="")


def test_the_definitions_of_many_systems_are_whole_on_paper(page: Page, tmp_path: Path) -> None:
    """Eight systems side by side were wider than A4, with figures beyond its edge."""
    for memory in ("rag", "amem", "clag", "gam", "memoryos", "sage_recommended", "memorybank", "full_context"):
        FakeRun(memory=memory, conversations=("conv-26",)).write(tmp_path / "runs")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "report.html")]) == 0
    page.size(718, 1000)
    page.send("Emulation.setEmulatedMedia", media="print")
    titles = data_in((tmp_path / "report.html").read_text())["tables"]
    view = f"tables?table={[one['kind'] for one in titles].index('Other definitions')}"
    go(page, tmp_path / "report.html", view)
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run(WIDER) == []
    written = page.run("[...document.querySelectorAll('main p, main li, main th, main td')].map((n) => n.innerText)")
    page.send("Emulation.setEmulatedMedia", media="")
    pages = PdfReader(io.BytesIO(page.pdf(width=8.27, height=11.69))).pages
    # A font may have one letter for `fi`.
    printed = "".join(unicodedata.normalize("NFKC", "".join(one.extract_text() for one in pages)).split())
    lost = [text for text in written if "".join(text.split()) not in printed]
    assert lost == []
    assert len(pages) <= 6
    page.size(390, 844, mobile=True)  # the tables that are lists on paper were not shown at all on a phone
    go(page, tmp_path / "report.html", view)
    heights = page.run(
        "[...document.querySelectorAll('main table')].map((node) => node.getBoundingClientRect().height)"
    )
    assert len(heights) == 5
    assert min(heights) > 100


def test_numbers_are_not_cut_on_a_phone_and_all_is_open_on_paper(page: Page, report: Path) -> None:
    page.size(390, 800, mobile=True)
    go(page, report)
    cut = """[...document.querySelectorAll('main td, #verdict')].filter((node) => node.textContent
        && (node.getBoundingClientRect().right > 391 || node.getBoundingClientRect().left < -1
        || node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0)).map((node) => node.textContent)"""
    assert page.run(cut) == []
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("[...document.querySelectorAll('main details:not(.menu)')].every((node) => node.open)") is True
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.querySelector('.top')).display") == "none"
    page.send("Emulation.setEmulatedMedia", media="")


def test_a_link_to_a_question_shows_it_at_once_on_a_phone(page: Page, report: Path) -> None:
    """It stood below the filters and the list of questions."""
    page.size(390, 844, mobile=True)
    go(page, report, "questions?q=conv-26:1")
    page.wait("document.querySelector('#question h3, #question h2').getBoundingClientRect().top < 300")
    page.run("window.scrollTo(0, 0); document.querySelectorAll('#question-list li')[3].click()")
    page.wait("document.querySelector('#question h3, #question h2').getBoundingClientRect().top < 300")
    assert "question 3" in text(page, "#question")
    go(page, report, "questions")  # no question was asked for
    assert page.run("window.scrollY") == 0


@pytest.mark.parametrize("width", [360, 390])
def test_words_are_not_broken_on_a_phone(page: Page, report: Path, width: int) -> None:
    """`tokens` and `write` stood there as `token s` and `writ e`."""
    page.size(width, 844, mobile=True)
    go(page, report)
    heights = page.run(
        """[...document.querySelectorAll('table.board td:not(.wide)')]
        .filter((node) => node.innerText && node.offsetParent).map((node) => node.getBoundingClientRect().height)"""
    )
    assert heights and max(heights) < 40


def test_the_choices_above_the_table_share_one_line_where_there_is_room(page: Page, report: Path) -> None:
    page.size(1600, 900)
    go(page, report)
    tops = page.run("[...document.querySelectorAll('.filters label')].map((node) => node.getBoundingClientRect().top)")
    assert len(tops) >= 2 and len(set(tops)) == 1


def test_runs_that_have_not_ended_are_shown_with_their_progress(page: Page, tmp_path: Path) -> None:
    FakeRun(status="running").write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out), "--no-cache"]) == 0
    go(page, out)
    assert "rag, smollm2_135m" in text(page, ".live")
    assert "20 of 20 questions, running" in text(page, ".live")
    newest = page.run("[...document.querySelectorAll('.newest li')].map((node) => node.innerText)")
    assert len(newest) == 8 and all("secret answer" in one and "secret gold" in one for one in newest)
    assert page.run("document.querySelectorAll('nav a').length") == 1
    assert page.problems == []


def test_systems_are_ranked_by_the_metrics_direction(page: Page, report: Path, tmp_path: Path) -> None:
    """The system with the most overruled facts in its context was the first, and marked as the best."""
    shown = report.read_text(encoding="utf-8").replace('"heading":"F1 (A-Mem, mem0)"', '"heading":"stale"')
    lower = re.sub(r'("heading":"stale"[^}]*"lower":)false', r"\1true", shown)
    (tmp_path / "other.html").write_text(lower, encoding="utf-8")
    go(page, tmp_path / "other.html")
    assert page.run(SYSTEMS) == ["amem", "clag", "rag"]
    assert "lower is better" in page.run("document.querySelector('main').textContent")


def test_an_interval_of_a_share_begins_at_zero_inside_the_figure(page: Page, tmp_path: Path) -> None:
    """Few questions gave F1 an interval from below 0, which no F1 can be."""
    values = lambda n, metric: float(n == 0)  # noqa: E731
    FakeRun(conversations=("conv-26",), questions_each=5, values=values).write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out), "--no-cache"]) == 0
    go(page, out)
    assert "[0.0," in text(page, "table.board")
    begin = """[...document.querySelectorAll('table.board .track .range')].map((line) =>
        line.getBoundingClientRect().left - line.parentNode.getBoundingClientRect().left)"""
    assert min(page.run(begin)) >= 0


def test_questions_without_an_answer_are_known_by_their_kind(page: Page, tmp_path: Path) -> None:
    """Of LongMemEval, whose category of them is 27, nobody could choose how they count, or leave them out of a pair."""
    for memory, share in (("rag", 0.75), ("amem", 0.25)):
        fake = FakeRun(memory=memory, categories=(21, 27), values=lambda n, metric, share=share: share)  # type: ignore[misc]
        path = fake.write(tmp_path / "runs")
        for name in ("scores.jsonl", "references.jsonl"):
            rewrite(path, name, lambda n, row: row.update(kind="adversarial" if row["category"] == 27 else "other"))
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out), "--no-cache"]) == 0
    go(page, out)
    assert page.run("document.getElementById('filter-five').value") == "exclude"
    go(page, out, "compare")
    assert "over 10 questions" in text(page, "#pair") and "not confirmed" in text(page, "#pair")


def choose(page: Page, key: str, value: str) -> None:
    page.run(
        f"(() => {{ const node = document.getElementById('filter-{key}'); node.value = {value!r}; "
        "node.dispatchEvent(new Event('change')); })()"
    )


def test_questions_work_by_keyboard(page: Page, report: Path) -> None:
    go(page, report, "questions")
    selected = "document.querySelector('[aria-selected=true]').innerText.split('\\n')[0].split(' <')[0]"
    assert page.run(selected).startswith("question 0")
    for _ in range(40):
        page.press("Tab")
        if page.run("document.activeElement.id") == "question-list":
            break
    assert page.run("document.activeElement.id") == "question-list"
    page.press("ArrowDown")
    page.press("j", "j")
    assert page.run(selected).startswith("question 2")
    page.press("k", "k")
    assert page.run(selected).startswith("question 1")
    assert "q=conv-26%3A1" in page.run("location.hash")
    active = page.run("document.getElementById('question-list').getAttribute('aria-activedescendant')")
    assert page.run(f"document.getElementById({active!r}).getAttribute('aria-selected')") == "true"
    page.press("End")
    assert page.run(selected).startswith("question 19")
    page.press("/", "/")
    assert page.run("document.activeElement.id") == "filter-search"
    for letter in "question 7":
        page.press(letter, letter)
    page.wait("document.querySelectorAll('#question-list li').length === 1")
    assert page.run("document.activeElement.id") == "filter-search"
    assert page.run("document.activeElement.value") == "question 7"


def test_questions_are_filtered_and_ordered(page: Page, report: Path) -> None:
    go(page, report, "questions?show=differ")
    count = "document.querySelectorAll('#question-list li').length"
    assert page.run(count) == 20
    choose(page, "category", "5")
    page.wait(f"{count} === 4")
    choose(page, "show", "missed")
    page.wait(f"{count} === 0")
    page.wait("document.querySelector('#question').innerText.includes('No question fits.')")
    choose(page, "show", "malformed")
    choose(page, "category", "")
    page.wait(f"{count} === 3")


def test_keyboard_reaches_views_and_skips_navigation(page: Page, report: Path) -> None:
    go(page, report)
    page.press("Tab")
    assert page.run("document.activeElement.id") == "skip"
    page.press("Enter")
    assert page.run("document.activeElement.id") == "content"
    go(page, report)
    for _ in range(3):  # skip, the first view, the second
        page.press("Tab")
    page.press("Enter")
    page.wait("document.querySelector('main h2').innerText === 'Questions'")


def test_theme_can_be_chosen(page: Page, report: Path) -> None:
    page.prefer("dark")
    go(page, report)
    colours = []
    for _ in range(3):
        colours.append(page.run("getComputedStyle(document.body).backgroundColor"))
        page.run("document.getElementById('theme').click()")
    assert colours == ["rgb(20, 23, 27)", "rgb(255, 255, 255)", "rgb(20, 23, 27)"]


def test_a_measured_cell_leads_to_its_run(page: Page, tmp_path: Path) -> None:
    FakeRun(backbone="qwen3_06b").write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    tables = data_in(out.read_text())["tables"]
    place = next(number for number, one in enumerate(tables) if one["kind"] == "Printed and measured")
    go(page, out, f"tables?table={place}")
    page.run("document.querySelector('table td a').click()")
    page.wait("document.querySelector('main h2').innerText === 'Runs'")
    assert "abcdef0123456789" in text(page, "[data-wanted]")


def test_the_chart_names_what_it_shows(page: Page, report: Path) -> None:
    go(page, report)
    labels = page.run("[...document.querySelectorAll('svg[role=img]')].map((node) => node.getAttribute('aria-label'))")
    assert labels in ([], ["F1 (A-Mem, mem0) against tokens per question"])


def test_a_question_is_saved_as_one_picture(page: Page, report: Path, tmp_path: Path) -> None:
    go(page, report, "questions?q=conv-26:1")
    page.run("""window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; };
        document.querySelector('button.save').click()""")
    drawn = page.run("window.saved[0].text()")
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert "memory not kept" in drawn and "<script" not in drawn and "<button" not in drawn
    assert 'class="short"' in drawn, "the first memory that was found"
    (tmp_path / "question.svg").write_text(drawn, encoding="utf-8")
    page.open((tmp_path / "question.svg").as_uri())
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    for scheme, ground in grounds.items():  # README's was white in the dark
        page.prefer(scheme)
        assert page.run("getComputedStyle(document.querySelector('.picture')).backgroundColor") == ground
    height = page.run("document.documentElement.height.baseVal.value")
    assert height - 40 < page.run("document.querySelector('.picture').scrollHeight") <= height


def test_runs_that_look_alike_are_listed_with_the_end_of_their_ids(page: Page, tmp_path: Path) -> None:
    fakes = [FakeRun(memory=memory, seed=seed) for seed, memory in ((0, "rag"), (1, "rag"), (0, "amem"))]
    for fake in fakes:
        fake.write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    go(page, out, "runs")
    listed = page.run("[...document.querySelectorAll('tbody th')].map((cell) => cell.textContent)")
    ends = ["-".join(fake.name.split("-")[-2:]) for fake in fakes[:2]]
    assert sorted(listed) == sorted(["amem", *(f"rag {end}" for end in ends)])


def test_a_page_of_summaries_alone_has_every_view(page: Page, tmp_path: Path) -> None:
    export_run(FakeRun().write(tmp_path / "runs"), tmp_path / "summaries")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "summaries"), "--out", str(out)]) == 0
    for view in VIEWS:
        go(page, out, view)
    assert page.problems == []
    go(page, out, "questions")
    assert "memsys report --runs results/runs shows the questions of your own runs" in text(page)
