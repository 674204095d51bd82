"""The data of a report page as one tree, from runs or out of the page's file."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from eval.report.cache import Cache
from eval.report.config import load_config
from eval.report.data import collect, page_data


def data_of(*roots: Path, cache: Cache | None = None) -> Any:
    """What the page of some runs holds: its first data and its parts, groups with what is said of them in the menu."""
    page = page_data(collect(roots), load_config(), cache=cache)
    return whole(page.first, page.parts)


def data_in(page: str) -> Any:
    """What the page's script reads, every part unpacked."""
    first = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.S)
    assert first is not None
    packed = re.findall(r'<script type="text/plain" id="part-([^"]+)">([^<]*)</script>', page)
    parts = {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in packed}
    return whole(json.loads(first[1]), parts)


def whole(first: Any, parts: Any) -> Any:
    groups = [{**head, **parts[f"group-{place}"]} for place, head in enumerate(first["groups"])]
    questions = [parts.get(f"questions-{place}") for place in range(len(groups))]
    texts = [[parts[f"texts-{place}-{index}"] for index in range(len(own["parts"]))] for place, own in
             enumerate(questions) if own]  # fmt: skip
    tables = [parts[f"table-{place}"] for place in range(len(first["tables"]))]
    found = [own for own in questions if own]
    return {**first, "cards": parts["runs"], "groups": groups, "questions": found, "texts": texts, "tables": tables}
