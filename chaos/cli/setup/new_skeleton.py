"""The text of an experiment, from the examples of the actions and assertions that were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.cli.setup.new_faults import BEFORE, LATER, STEP_PARAMS, WORKLOAD, expectation_keys
from chaos.core.action import AnyAction, UndoKind
from chaos.core.experiment import OPERATORS, parse_moment
from chaos.documents.yaml_text import flow, parse_flow
from chaos.engine.registry import load_registry

_DEFAULT_WITHIN = "2m"
SCHEMA_LINE = "# yaml-language-server: $schema={schema}"
# Values of examples that belong to someone's cluster: a comment asks to change them.
_YOURS = ("namespace", "name", "names", "selector", "labels", "probe", "query", "expression", "key", "message", "node")
_PROGRAMS = ("inject", "undo", "proof")
_UNDO = {
    UndoKind.RESTORES: "nodefall undoes it when all expectations are decided",
    UndoKind.SELF_RESTORING: "it ends by itself",
    UndoKind.IRREVERSIBLE: "it cannot be undone, which spec.allow accepts",
}

SAMPLE_WORKLOAD = """\
# A sample: three web servers, of which a voluntary disruption may stop one. Replace them by manifests of yours.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.k8s.io/pause:3.10
          resources: {requests: {cpu: 10m, memory: 8Mi}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: web}}
"""


@dataclass(frozen=True, slots=True)
class Request:
    """What fails and what must hold. ``workload``: path of manifests relative to the experiment, "" to observe the
    pods of ``namespace`` instead, or only those of the ``owner`` in it, as Kind/name."""

    name: str
    actions: tuple[str, ...]
    expectations: tuple[str, ...]
    workload: str = ""
    namespace: str = WORKLOAD
    title: str = ""
    schema: str = "nodefall.schema.json"
    owner: str = ""

    @property
    def kind(self) -> str:
        """Kind of the owner, or ""."""
        return self.owner.partition("/")[0]


@dataclass(frozen=True, slots=True)
class _Step:
    action: AnyAction
    keys: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.keys["name"])


def skeleton(request: Request) -> str:
    """The experiment as YAML with comments. Raises KeyError for an action or assertion that does not exist."""
    steps = list(_steps(request))
    fault = next(step for step in steps if step.action.name == request.actions[0])
    hypotheses = [_hypothesis(request, name, fault.name) for name in dict.fromkeys(request.expectations)]
    title = request.title or f"{', '.join(request.actions)}: {', '.join(dict.fromkeys(request.expectations))}"
    blocks = (
        _head(request, title),
        _allow(steps),
        _workload(request),
        _targets(request, steps, hypotheses),
        _measured(hypotheses),
        _steady_state(request),
        _method(steps),
        _expectations(request, hypotheses),
        _safety(),
    )
    return "\n".join(line for block in blocks for line in block) + "\n"


def _steps(request: Request) -> Iterator[_Step]:
    """The steps asked for, each after the one that it needs; names are unique."""
    wanted: list[str] = []
    for name in request.actions:
        needed = BEFORE.get(name)
        wanted += [needed, name] if needed and needed not in wanted else [name]
    names: list[str] = []
    previous = ""
    for wanted_name in wanted:
        action = load_registry().actions[wanted_name]
        keys = parse_flow(action.example)
        keys["name"] = _unique(str(keys["name"]), names)
        if wanted_name in STEP_PARAMS:
            keys["with"] = dict(STEP_PARAMS[wanted_name])
        if "with" in keys:
            keys["with"] = _in_namespace(keys["with"], request.namespace)
        keys.pop("after", None) if not previous else keys.update(after=_later(keys.get("after"), previous))
        names.append(keys["name"])
        previous = keys["name"]
        yield _Step(action, keys)


def _unique(name: str, taken: Sequence[str]) -> str:
    count = sum(
        each.partition(".")[0] == name or re.fullmatch(rf"{re.escape(name)}-\d+", each) is not None for each in taken
    )
    return f"{name}-{count + 1}" if count else name


def _later(example: str | None, previous: str) -> str:
    """The moment of a step: as long after the one before it as in the example."""
    offset = example.partition(" + ")[2] if example else ""
    return f"{previous} + {offset or LATER}"


def _in_namespace(params: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The parameters with the namespace that is observed instead of the example's."""
    return {key: namespace if key == "namespace" else value for key, value in params.items()}


def _hypothesis(request: Request, name: str, fault: str) -> dict[str, Any]:
    """One expectation, with every moment at the fault."""
    example = parse_flow(load_registry().assertions[name].example)
    own = expectation_keys(request.actions[0], name, request.kind)
    if any(operator in own for operator in OPERATORS):
        example = {key: value for key, value in example.items() if key not in (*OPERATORS, "for", "timing")}
    keys = {**example, **own}
    params = _in_namespace(dict(keys.get("with", {})), request.namespace)
    if request.owner and "owner" in load_registry().assertions[name].params.model_fields:
        params = {key: value for key, value in params.items() if key not in ("labels", "names", "kinds", "except")}
        params |= {"namespace": request.namespace, "owner": request.owner}
        if "except_" in load_registry().assertions[name].params.model_fields:
            params["except"] = ["finished"]  # pods that an earlier shutdown left behind
    moments = load_registry().assertions[name].moment_fields
    keys["with"] = {key: fault if key in moments else value for key, value in params.items()}
    keys["after"] = _moved(keys.get("after", fault), fault)
    for operator in ("never", "always"):
        if isinstance(keys.get(operator), dict) and "until" in keys[operator]:
            keys[operator] = {"for": _DEFAULT_WITHIN}
    if not any(operator in keys for operator in OPERATORS):
        keys["within"] = _DEFAULT_WITHIN
    summary = load_registry().assertions[name].summary
    order = ("name", "assert", "with", "after", *OPERATORS, "for", "timing", "baseline")
    keys.setdefault("name", f"never: {summary}" if "never" in keys else summary)
    return {key: keys[key] for key in order if key in keys}


def _moved(moment: str, fault: str) -> str:
    """The moment at the fault instead of at a step of the example."""
    step = parse_moment(moment).step
    return moment.replace(step, fault, 1) if step else fault


def _head(request: Request, title: str) -> Iterator[str]:
    yield SCHEMA_LINE.format(schema=request.schema)
    yield "# CHANGE marks what to adapt. nodefall explain NAME explains every action, assertion and time word."
    yield "apiVersion: nodefall.dev/v1alpha1"
    yield "kind: Experiment"
    yield f"metadata: {{name: {request.name}}}"
    yield "spec:"
    yield "  # CHANGE: what this proves, in one sentence. Reports show it."
    yield f"  title: {flow(title)}"


def _allow(steps: Iterable[_Step]) -> Iterator[str]:
    allowed = {step.action.allowance for step in steps if step.action.allowance}
    if any(_is_irreversible(step) for step in steps):
        allowed.add("irreversible")
    if allowed:
        yield f"  allow: {flow(sorted(allowed))}"


def _is_irreversible(step: _Step) -> bool:
    given = step.keys.get("with", {})
    action = step.action
    return (
        action.undo_kind is UndoKind.IRREVERSIBLE
        or any(given.get(param) is True for param in action.irreversible_params)
        or bool(action.undo_param and given.get(action.undo_param) is None)
    )


def _workload(request: Request) -> Iterator[str]:
    if request.workload:
        yield "  # Applied in a namespace made for the run, and removed after it. Paths are relative to this file."
        yield f"  workload: {{manifests: {flow([request.workload])}}}"


def _targets(request: Request, steps: Iterable[_Step], hypotheses: Iterable[dict[str, Any]]) -> Iterator[str]:
    used = any("target" in step.keys for step in steps)
    if used or any("victim" in flow(hypothesis) for hypothesis in hypotheses):
        yield "  # One node at random (--seed); by nodes or except: [NAME], matchLabels: {KEY: VALUE}, zone: ZONE."
        runs = ", runs: workload" if request.workload else ""
        if request.owner:
            runs = f", runs: {flow({'namespace': request.namespace, 'owner': request.owner})}"
        yield "  targets:"
        yield f"    victim: {{role: worker, count: 1{runs}}}"


def _measured(hypotheses: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The probe and the query that expectations refer to."""
    params = [hypothesis["with"] for hypothesis in hypotheses]
    for probe in (given["probe"] for given in params if "probe" in given):
        yield "  # CHANGE: what is asked, and how often."
        yield f"  probes: [{{name: {probe}, http: 'http://shop.example/healthz', every: 1s}}]"
    for query in (given["query"] for given in params if "query" in given):
        yield "  # CHANGE: a query to the Prometheus of the inventory."
        yield f"  queries: [{{name: {query}, query: 'sum(rate(http_requests_total{{code=~\"5..\"}}[1m]))'}}]"


def _steady_state(request: Request) -> Iterator[str]:
    yield "  # Without this there is no run; recovery requires it again."
    yield "  steadyState:"
    yield "    - {assert: nodes-ready, with: {nodes: all}}"
    owner = f", owner: {request.owner}" if request.owner else ""
    yield f"    - {{assert: workload-available, with: {{namespace: {request.namespace}{owner}}}}}"


def _method(steps: Iterable[_Step]) -> Iterator[str]:
    yield "  method:"
    for step in steps:
        yield f"    # {step.action.summary}; {_UNDO[step.action.undo_kind]}"
        yield from _ask_to_change(step.keys.get("with", {}), "    ")
        yield f"    - {flow(step.keys)}"


def _expectations(request: Request, hypotheses: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "  # within: true at some moment up to the bound. always, never: throughout. Time counts from after."
    yield "  hypothesis:"
    for keys in hypotheses:
        if (summary := load_registry().assertions[keys["assert"]].summary) not in keys["name"]:
            yield f"    # {keys['assert']}: {summary}"
        if not expectation_keys(request.actions[0], keys["assert"], request.kind):
            yield from _ask_to_change(keys["with"], "    ")
        for index, (key, value) in enumerate(keys.items()):
            yield f"    {'  ' if index else '- '}{key}: {flow(value)}"


def _ask_to_change(params: dict[str, Any], indent: str) -> Iterator[str]:
    """A comment that names the values that belong to a cluster; none are those that the skeleton itself defines."""
    own = (WORKLOAD, "victim", "app=web", "web")
    yours = [key for key, value in params.items() if key in (*_YOURS, *_PROGRAMS) and value not in own]
    if yours:
        yield f"{indent}# CHANGE: {', '.join(yours)}"


def _safety() -> Iterator[str]:
    yield "  # Stops the run and undoes the fault at once."
    yield "  abort:"
    yield "    - {assert: nodes-ready, with: {not-ready-at-most: 1}}"
    yield "  # The steady state must hold again within this time after the undo."
    yield "  recovery: {within: 5m, timing: loose}"
    yield "  maxDuration: 15m"
