"""Stand-ins that imitate servers as ``tests/support/servers/*.yaml`` describe them, and the table of all."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.stub_server import StubServer, digest, example, prompt_of, schema_of

FOLDER = Path(__file__).parent / "servers"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
_ANSWER = "Pixel"


@dataclass(frozen=True)
class StandIn:
    """A server with its address."""

    name: str
    url: str
    server: StubServer


class Behaviour:
    """What a server does with a request."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.told, self.asked = described, 0

    def reply(self, body: Mapping[str, Any]) -> tuple[Any, ...]:
        self.asked += 1
        busy = self.told.get("busy", {})
        if self.asked == busy.get("at"):
            return 429, busy["body"]
        if not body["path"].startswith(self.told["path"]):
            return 404, {"error": {"message": f"no such page: {body['path']}"}}
        if "prompt" in body and not self.told.get("completions", True):
            said = self.told.get("completions_say")
            return (400 if said else 404), {"error": {"message": said or "unknown URL: /completions"}}
        for rule in self.told["refuse"]:
            if _fits(rule, body):
                return rule.get("status", 400), _error(rule), {}
        return 200, {**self._completion(body), **self.told.get("reply", {})}, self.told.get("headers", {})

    def _completion(self, body: Mapping[str, Any]) -> dict[str, Any]:
        limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or 10_000)
        thinks = self._thinks(body)
        tokens = self.told["thoughts"]["tokens"] if thinks else 0
        cut = tokens >= limit
        text = "" if cut else self._text(body)
        used = min(limit, tokens + len(text.split()))
        message = self._message(text, thinks, cut)
        usage = self._usage(len(prompt_of(body).split()), used, min(tokens, limit))
        choice = {"index": 0, "finish_reason": "length" if cut else "stop"}
        choice |= {"text": text} if "prompt" in body else {"message": {"role": "assistant", **message}}
        return {"id": "x", "object": "chat.completion", "model": "stub", "choices": [choice], **usage}

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        off = (self.told.get("thoughts") or {}).get("switch")
        return "thoughts" in self.told and not (off and all(body.get(name) == value for name, value in off.items()))

    def _text(self, body: Mapping[str, Any]) -> str:
        form = (body.get("response_format") or {}).get("type", "")
        if self.told["forms"].get(form) == "followed":
            schema = schema_of(body)
            value = (
                example(schema, digest(prompt_of(body))) if schema and form == "json_schema" else {"answer": _ANSWER}
            )
            return json.dumps(value)
        asks_for_json = "json" in prompt_of(body).lower()
        return f'```json\n{{"answer": "{_ANSWER}"}}\n```' if asks_for_json else _ANSWER

    def _message(self, text: str, thinks: bool, cut: bool) -> dict[str, Any]:
        if not thinks:
            return {"content": text}
        place, thought = self.told["thoughts"]["place"], "Rex? No."
        if place == "hidden":
            return {"content": text}
        if place == "parts":
            said = [] if cut else [{"type": "text", "text": text}]
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}, *said]}
        if "|" in place:
            opens, _, closes = place.partition("|")
            return {"content": f"{opens}{thought}" if cut else f"{opens}{thought}{closes}\n{text}"}
        return {"content": text or None, place: thought}

    def _usage(self, prompt: int, used: int, thought: int) -> dict[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": used, "total_tokens": prompt + used}
        kind = self.told["usage"]
        if kind == "none":
            return {}
        if kind == "full":
            usage["prompt_tokens_details"] = {"cached_tokens": 1024 if prompt > 1024 else 0}
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        if kind == "deepseek":
            hit = 1024 if prompt > 1024 else 0
            usage |= {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": prompt - hit}
        return {"usage": usage}


def _fits(rule: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    if "form" in rule:
        return (body.get("response_format") or {}).get("type") == rule["form"]
    if rule["field"] not in body:
        return False
    return body[rule["field"]] == rule["value"] if "value" in rule else body[rule["field"]] != rule.get("but")


def _error(rule: Mapping[str, Any]) -> Any:
    said, field = rule["says"], rule.get("field", "response_format")
    match rule.get("shape", "object"):
        case "list":
            return [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
        case "detail":
            found = {"type": "extra_forbidden", "loc": ["body", field], "msg": said, "input": 1}
            return {"object": "error", "message": {"detail": [found]}, "type": "invalid_request_error", "code": None}
        case "message":
            return {"message": said}
        case "text":
            return {"error": said}
        case "raw":
            return said.encode()
    return {
        "error": {"message": said, "type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
    }


@contextmanager
def standin(name: str, delay: float = 0.0) -> Iterator[StandIn]:
    """Serve one for the length of a ``with`` block."""
    told = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    with StubServer(delay=delay) as server:
        server.state.bodies = Behaviour(told).reply
        server.state.pages = dict(told.get("pages", {}))
        server.state.missing_page = told.get("missing_page")
        server.state.most_allowed = told.get("at_once")
        yield StandIn(name, f"http://127.0.0.1:{server.port}{told['path']}", server)


def settings_of(one: StandIn, folder: Path) -> list[str]:
    """What a user must say to run the two-question sample on it, and where files go."""
    return [
        "memory=bm25_turn", "embedder=hashing", "dataset=custom", f"dataset.data_dir={FOLDER / 'two_questions'}",
        "backbone=endpoint", "backbone.model=stub", f"backbone.engine.base_urls=[{one.url}]",
        f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", "score=false",
    ]  # fmt: skip


def run_on(one: StandIn, folder: Path, *more: str) -> dict[str, Any]:
    """Run the sample on it; returns ``run.json``."""
    from eval.running.composed import compose_plan
    from eval.running.experiment import run_experiment

    run_experiment(compose_plan([*settings_of(one, folder), *more]))
    return dict(json.loads((folder / "run" / "run.json").read_text("utf-8")))


def row(name: str, folder: Path) -> list[str]:
    """One row of the table: what is found, what is chosen, and whether a run completes."""
    with standin(name) as one, contextlib.redirect_stdout(sys.stderr):
        record = run_on(one, folder)
    servers = record.get("servers") or [{"found": {}, "chosen": []}]
    found, chosen = servers[0]["found"], servers[0]["chosen"]
    forms = "; ".join(f"{form} {state}" for form, state in found.get("forms", {}).items())
    settings = "; ".join(f"{one['name']}={json.dumps(one['chosen'])}" for one in chosen)
    refused = ", ".join(sorted(set(found.get("refused", {})) - {"json_schema", "json_object"})) or "–"
    window = str(found.get("window") or "–")
    return [name, refused, forms, found.get("thoughts", ""), window, settings or "–", record.get("status", "failed")]


def main() -> None:
    """Print the table, or serve one until interrupted."""
    if len(sys.argv) > 1:
        with standin(sys.argv[1]) as one:
            sys.stdout.write(one.url + "\n")
            sys.stdout.flush()
            asyncio.run(asyncio.sleep(10**6))
    sys.stdout.write("| server | refused | forms | thoughts | window | chosen | run |\n|---|---|---|---|---|---|---|\n")
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write("| " + " | ".join(row(name, Path(folder))) + " |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
