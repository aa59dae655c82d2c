"""The JSON Schema accepts what ``nodefall validate`` accepts, and refuses what that refuses for one value alone."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from chaos.documents.problems import _flags_as_numbers
from chaos.documents.schema import _DOCUMENTS, json_schema
from chaos.documents.yaml_tree import compose, to_builtins
from tests.kit.command import command
from tests.kit.story import plugin_registry
from tests.kit.suite import others_nightly

ROOT = Path(__file__).parents[2]
FIELD = ROOT / "tests" / "consumers" / "field"
MODELS: dict[str, type[BaseModel]] = {model.__name__: model for model in _DOCUMENTS}
REGISTRY = plugin_registry()
SCHEMA = json_schema(REGISTRY)
Path_ = tuple[str | int, ...]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3.5, 101, 70000, "", "x", "A B", "Ω", "a" * 300, "a\n", " x", [], ["x"], [1], {}),
    *("10s", "-3s", "10", "10 s", "5m", "1h30m", "0s", "10s\n", "kubelet.shutdownGracePeriod + 10s", "step + 10s"),
    *("true", "yes", "v1.36", ">=v1.32, <v1.36", ">0", "2x", "25%", "101%", "0.1/s", "strict", "loose", {"a": 1}),
    *("* * * * *", "0 10 * * 1", "10 * *", "09:00", "25:00", "2026-12-24", "12-24", "UTC", "Europe/Berlin", "8080"),
    *("http", "http://x", "ftp://x", "http://u:p@x", "/", "/data", "HTTPS://x/y"),
]
# What a pattern cannot say: an expression, a name of a list, a date that is not in the calendar, a program's path.
_BEYOND = ("expression", "zone")


def _pattern(validator: Any, pattern: str, text: Any, _: Any) -> Iterator[jsonschema.ValidationError]:
    """As in ECMAScript, where $ is the end of the text and not before a line break."""
    ends = re.sub(r"(?<!\\)\$", r"\\Z", pattern)
    if validator.is_type(text, "string") and not re.search(ends, text):
        yield jsonschema.ValidationError(f"{text!r} does not match {pattern!r}")


_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})
VALIDATORS = {kind: _Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{kind}"}) for kind in MODELS}


def _documents() -> dict[Path, dict[str, Any]]:
    found = {}
    for pattern in (
        "experiments/**/*.yaml",
        "hosts/**/*.yaml",
        "deploy/example/*.yaml",
        "tests/consumers/field/*.yaml",
    ):
        for path in sorted(ROOT.glob(pattern)):
            (document, *_) = map(to_builtins, compose(str(path), path.read_text(encoding="utf-8")))
            if document.get("apiVersion") == "nodefall.dev/v1alpha1":
                found[path] = document
    return found


DOCUMENTS = _documents()


def refusals(document: dict[str, Any]) -> list[str]:
    return [f"{list(e.absolute_path)}: {e.message}" for e in VALIDATORS[document["kind"]].iter_errors(document)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_bundled_documents_and_those_of_users_pass(path: Path) -> None:
    assert refusals(DOCUMENTS[path]) == []


def _in_pages() -> Iterator[tuple[str, dict[str, Any]]]:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            if text.startswith("apiVersion: nodefall.dev/"):
                yield f"{page.name} {number}", to_builtins(compose(page.name, text)[0])


@pytest.mark.parametrize(
    ("name", "document"), list(_in_pages()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_documents_of_the_documentation_pass(name: str, document: dict[str, Any]) -> None:
    assert refusals(document) == [], name


@pytest.mark.parametrize(
    ("base", "place", "good", "bad"),
    [
        ("experiments/two-phases.yaml", "spec.hypothesis.1.with.each.phase", ["Failed", ["Failed"]], ["failed", [], 1]),
        ("experiments/two-phases.yaml", "spec.hypothesis.1.within", ["10s", "1m30s"], ["10", 10, "10 s", "x + 1s"]),
        ("experiments/two-phases.yaml", "spec.maxDuration", ["10m"], ["10", "ten minutes", 600]),
        ("experiments/two-phases.yaml", "spec.targets.victim.count", [1, "2", "25%"], [0, "0%", "101%", 1.5, True]),
        ("experiments/graceful-poweroff.yaml", "spec.abort.0.always", [True, False, None], ["yes", "false", 1]),
        ("tests/consumers/field/schema-port.yaml", "spec.probes.0.service.port", [8080, "http"], [0, 70000, True]),
        ("tests/consumers/field/schema-freeze.yaml", "spec.window.not.0", ["2026-12-24", "12-24"], ["24.12.", 1224]),
        ("tests/consumers/field/schema-freeze.yaml", "spec.window.zone", ["UTC", "Europe/Berlin"], ["+02:00", "a b"]),
        ("tests/consumers/field/schema-freeze.yaml", "spec.schedule.cron", ["0 10 * * 1"], ["0 10 *", "", 5]),
        ("tests/consumers/field/schema-freeze.yaml", "spec.window.open.0.from", ["09:00"], ["9:00", "25:00", 540]),
        ("tests/consumers/field/schema-port.yaml", "spec.probes.0",
            [{"name": "a", "tcp": "db:1"}, {"name": "a", "tcp": "db:1", "http": None}],
            [{"name": "a"}, {"name": "a", "tcp": "db:1", "http": "http://db"}, {"name": "a", "tcp": None}]),
        ("experiments/graceful-poweroff.yaml", "spec.abort.0",
            [{"assert": "nodes-ready", "always": True, "with": {"nodes": "all", "not-ready-at-most": None}}],
            [{"always": True}, {"assert": "nodes-ready", "order": ["a", "b"]},
                {"assert": "nodes-ready", "always": True, "with": {"nodes": "all", "not-ready-at-most": 1}}]),
        ("hosts/lab.yaml", "lab", [{}], [None]),
        ("hosts/lab.yaml", "prometheus",
            [{"url": url} for url in ("http://p", "https://p:443/x?y", "http://[::1]:9090/", "HTTP://p:65535")],
            [{"url": url} for url in ("ftp://p", "p:9090", "p", "http://", "http://p:0", "http://p:65536",
                "http://p:99999/", "http://a b/", "http://p:x", "http://ada:secret@p/")]),
        ("hosts/example.yaml", "hosts", [{"w": {"power": {"kind": "redfish", "url": "https://bmc/redfish/v1/Systems/1"}}}],
            [{"w": {"power": {"kind": "redfish", "url": url}}} for url in ("ftp://b", "b:443", "https://b:99999")]),
        ("experiments/two-phases.yaml", "spec.targets.victim.nodes",
            [["worker-1"], ["a.example.com"]], [["Worker"], ["a/b"], [""], ["a_b"], []]),
        ("experiments/two-phases.yaml", "spec.targets.victim.except", [["worker-1"]], [["a b"], [""]]),
        ("experiments/two-phases.yaml", "spec.targets.victim.zone", ["a", "Zone_1.b"], ["a b", "x" * 64]),
        ("experiments/two-phases.yaml", "spec.targets.victim.matchLabels",
            [{"example.com/pool": "gpu_A.1"}, {"a": ""}, {"a": None}],
            [{"a": "b c"}, {"a": "-b"}, {"a": "x" * 64}, {"a b": "c"}, {"/a": "b"}, {"A.example/a": "b"}, {"": "a"}]),
        ("experiments/two-phases.yaml", "spec.targets.victim.matchExpressions",
            [[{"key": "a/b", "operator": "In", "values": ["c", ""]}]],
            [[{"key": "a b", "operator": "Exists"}], [{"key": "", "operator": "Exists"}],
                [{"key": "a", "operator": "In", "values": ["c d"]}]]),
        ("hosts/lab.yaml", "prometheus", [{"url": "http://p:1", "credentials": {"env": "A", "file": None}}],
            [{"url": "http://p:1", "credentials": {}},
                {"url": "http://p:1", "credentials": {"env": "A", "file": "b"}}]),
        ("hosts/lab.yaml", "lab.workers", [3], [0, True, "3", 1.5]),
        ("hosts/lab.yaml", "lab.systemd", [252, "252"], [True, "two", 1.5, []]),
    ],
)  # fmt: skip
def test_forms_of_one_value(base: str, place: str, good: list[Any], bad: list[Any]) -> None:
    *parts, last = (int(part) if part.isdigit() else part for part in place.split("."))
    for values, is_good in ((good, True), (bad, False)):
        for value in values:
            document = copy.deepcopy(DOCUMENTS[ROOT / base])
            parent: Any = document
            for part in parts:
                parent = parent[part]
            parent[last] = value
            assert (refusals(document) == []) is is_good, f"{place}: {value!r}"
            assert (details(document) == []) is is_good, f"{place}: {value!r}"


def details(document: dict[str, Any]) -> list[tuple[Path_, Any, str]]:
    """Place, value and message of what the models refuse; parameters of plug-ins included."""
    found = _details(MODELS[document["kind"]], document)
    spec = document.get("spec")
    if document["kind"] != "Experiment" or not isinstance(spec, dict):
        return found
    for part in ("method", "steadyState", "hypothesis", "abort"):
        key, plugins = ("action", REGISTRY.actions) if part == "method" else ("assert", REGISTRY.assertions)
        items = spec.get(part)
        for item in items if isinstance(items, list) else ():
            name = item.get(key) if isinstance(item, dict) else None
            if isinstance(name, str) and name not in plugins:
                found.append(((part, key), name, "unknown"))
            elif isinstance(name, str) and isinstance(item.get("with") or {}, dict):
                found += _details(plugins[name].params, item.get("with") or {})
    return found


def _details(model: type[BaseModel], value: Any) -> list[tuple[Path_, Any, str]]:
    try:
        made = model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return [(each["loc"], each["input"], each["msg"]) for each in error.errors(include_url=False)]
    return [(path, True, "a number") for path in _flags_as_numbers(made, value, ())]


def mutated(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """A copy in which one value is another, gone, wrapped, unwrapped, or has a stranger beside it."""
    changed = copy.deepcopy(document)
    *parts, last = rng.choice([place for place in _places(changed, ()) if place not in ((), ("kind",))])
    parent: Any = changed
    for part in parts:
        parent = parent[part]
    way = rng.randrange(6)
    if way == 0 and isinstance(parent, dict):
        del parent[last]
    elif way == 1 and isinstance(parent, dict):
        parent[rng.choice(["stranger", f"{last}s", "name", "with"])] = rng.choice(VALUES)
    elif way == 2:
        parent[last] = [parent[last]]
    elif way == 3 and isinstance(parent[last], list) and parent[last]:
        parent[last] = parent[last][0]
    else:
        parent[last] = copy.deepcopy(rng.choice(VALUES))
    return changed


def _places(value: Any, path: Path_) -> Iterator[Path_]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of the documents, so that paths in a changed one still lead somewhere."""
    folder = tmp_path_factory.mktemp("copies")
    for name in ("experiments", "hosts", "deploy/example", "tests/consumers/field"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


# 2,000 documents: the first 160 in every run, the others at night.
@pytest.mark.parametrize("part", others_nightly(range(25), [0, 1]))
def test_what_the_schema_refuses_is_refused_and_the_other_way_round(part: int, copies: Path) -> None:
    rng = random.Random(part)  # noqa: S311 - the same documents in every run
    for _ in range(80):
        path = rng.choice(list(DOCUMENTS))
        document = mutated(rng, DOCUMENTS[path])
        by_schema, by_models = refusals(document), details(document)
        where = f"part {part}, {path.relative_to(ROOT)}"
        if by_schema and not by_models:
            file = copies / path.relative_to(ROOT).parent / "changed.yaml"
            file.write_text(json.dumps(document))
            assert command("validate", file).returncode == 64, f"{where}: only the schema refuses it: {by_schema}"
        if not by_schema:
            single = [each for each in by_models if not isinstance(each[1], dict | list) and each[0][-1] not in _BEYOND]
            assert single == [], f"{where}: the schema accepts it"
