"""Assertion ``expression``: a CEL expression is true."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View
from chaos.core.field_types import Model
from chaos.core.kube import Node, Pod, controller_of, is_ready, node_condition, phase, pod_condition
from chaos.core.recording import BlindWindow
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Timeline, Version
from chaos.verdicts.judge.pods import KINDS, container_statuses, counts, disruption, node_of
from chaos.verdicts.judge.signals import mask, mask_late

OBJECT_LISTS = ("nodes", "pods", "workloads")
VARIABLES = (*OBJECT_LISTS, "targets", "before")
Row = dict[str, Any]
Evaluate = Callable[[dict[str, list[Row]]], tuple[bool | None, str]]
Change = tuple[Version[Any], str, str, Row]  # what changed, in which list, its key, its new row
_NODE_INFO = ("kernel_version", "os_image", "container_runtime_version", "kubelet_version")
_STRING = re.compile(r"""'[^']*'|"[^"]*\"""")
_ERROR_POSITION = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


def _check_expression(text: str) -> str:
    Cel(text, VARIABLES)
    if not _referenced_lists(text):
        raise ValueError(f"expression {text!r} uses none of {', '.join(OBJECT_LISTS)}")
    return text


def _referenced_lists(text: str) -> list[str]:
    """Lists that an expression uses."""
    return [name for name in OBJECT_LISTS if _references(text, name)]


def _references(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", _STRING.sub("", text)) is not None


class Params(Model):
    """Condition, and the namespace of pods and workloads."""

    expression: Annotated[str, AfterValidator(_check_expression)] = Field(
        description="A CEL expression over nodes, pods, workloads, targets and before (docs/assertions.md)."
    )
    namespace: str | None = Field(None, description="A namespace, or workload. By default, all namespaces.")
    node: str | None = Field(None, description="A target, or all. targets contains the names of its nodes.")
    at: str | None = Field(None, description="A step. before contains the nodes as they were when the step began.")

    @model_validator(mode="after")
    def _check_at(self) -> Self:
        if self.at is None and _references(self.expression, "before"):
            raise ValueError("before has the nodes at a step: give the step (at)")
        return self


def _node_row(node: Node) -> Row:
    spec, ready = node.spec, node_condition(node, "Ready")
    info = node.status.node_info if node.status else None
    return {
        "name": node.metadata.name,
        "uid": node.metadata.uid,
        "labels": node.metadata.labels or {},
        "ready": is_ready(node),
        "status": ready.status if ready else "",
        "heartbeat": (ready.last_heartbeat_time if ready else None) or "",
        "addresses": {a.type: a.address for a in reversed((node.status.addresses if node.status else None) or ())},
        "info": {name: getattr(info, name) if info else "" for name in _NODE_INFO},
        "podCIDR": (spec.pod_cidr if spec else None) or "",
        "unschedulable": bool(spec and spec.unschedulable),
        "capacity": (node.status.capacity if node.status else None) or {},
        "swap": _swap_bytes(node),
        "allocatable": (node.status.allocatable if node.status else None) or {},
        "taints": [f"{t.key}:{t.effect}" for t in (spec.taints if spec else None) or ()],
    }


def _swap_bytes(node: Node) -> int:
    """Swap in bytes as kubelets of v1.33 or later report it, otherwise 0."""
    info = node.status.node_info if node.status else None
    return (info.swap.capacity if info and info.swap else None) or 0


def _nodes_before(timeline: Timeline, moment: float) -> list[Row]:
    """Rows of the nodes at a moment. Raises Undecidable."""
    versions = [history.at(moment) for history in timeline.nodes.values()]
    rows = [_node_row(version.object) for version in versions if version is not None and not version.is_deleted]
    if not rows:
        raise Undecidable("no nodes were observed at that moment")
    return rows


def _pod_row(pod: Pod) -> Row:
    owner, ready = controller_of(pod), pod_condition(pod, "Ready")
    return {
        "name": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "labels": pod.metadata.labels or {},
        "node": node_of(pod),
        "owner": f"{owner.kind}/{owner.name}" if owner else "",
        "priority": (pod.spec.priority if pod.spec else None) or 0,
        "phase": phase(pod),
        "reason": (pod.status.reason if pod.status else None) or "",
        "ready": ready is not None and ready.status == "True",
        "deleting": pod.metadata.deletion_timestamp is not None,
        "disruption": disruption(pod),
        "restarts": sum(c.restart_count or 0 for c in container_statuses(pod)),
    }


def _without_unused(row: Row, text: str) -> Row:
    """The row with only those fields that an expression may use: each one takes time to convert."""
    return {name: value for name, value in row.items() if name in text}


def _changes(timeline: Timeline, namespace: str | None) -> Iterator[Change]:
    for name, nodes in timeline.nodes.items():
        yield from ((v, "nodes", name, _node_row(v.object)) for v in nodes)
    for uid, pods in timeline.pods.items():
        if namespace in (None, pods.last.object.metadata.namespace):
            yield from ((v, "pods", uid, _pod_row(v.object)) for v in pods)
    for (plural, its_namespace, name), workloads in timeline.workloads.items():
        if plural in KINDS and namespace in (None, its_namespace):
            key = f"{plural}/{its_namespace}/{name}"
            for v in workloads:
                ready, desired = counts(plural, v.object)
                row = {"kind": KINDS[plural], "namespace": its_namespace, "name": name}
                yield v, "workloads", key, {**row, "ready": ready, "wanted": desired}


def _samples(changes: Iterable[Change], anchor: float, evaluate: Evaluate) -> Iterator[Sample]:
    """Samples of the value at the anchor, and at each later change."""
    rows: dict[str, dict[str, Row]] = {name: {} for name in OBJECT_LISTS}
    unknown: set[str] = set()
    ordered = sorted(changes, key=lambda change: change[0].seq)
    for position, (version, which, key, row) in enumerate(ordered):
        unknown.discard(key)
        if version.final_state_unknown and not version.is_deleted:
            unknown.add(key)
        if version.is_deleted:
            rows[which].pop(key, None)
        else:
            rows[which][key] = row
        following = ordered[position + 1][0].t if position + 1 < len(ordered) else float("inf")
        if following > max(version.t, anchor):
            result, reason = evaluate({name: list(found.values()) for name, found in rows.items()})
            if unknown:
                result, reason = None, "the last state of an object was not observed"
            yield Sample(version.t, result, version.seq, reason or f"the expression is {str(result).lower()}")


class Expression:
    """A CEL expression over observed objects is true. The expression is evaluated whenever an object in its lists
    changes. The lists contain the current nodes, pods and workloads with a few fields each. ``targets`` contains the
    names of the nodes of ``node``, and ``before`` the nodes as they were when ``at`` began. Prefer the
    other assertions if they are sufficient.
    """

    name = "expression"
    summary = "a CEL expression over nodes, pods and workloads is true"
    example = (
        "{assert: expression, with: {namespace: workload, node: victim, "
        'expression: "pods.filter(p, p.ready && !(p.node in targets)).size() >= 6"}, after: power-off, within: 2m}'
    )
    needs = "all objects of the lists in the expression, watched without a gap, with the fields in the expression"
    params = Params
    node_fields = ("node",)
    moment_fields = ("at",)
    masks_itself = True
    sources = ("nodes", "pods", "deployments", "statefulsets", "daemonsets")

    def claim(self, params: Params, names: Names) -> Claim:
        lists = " and ".join(_referenced_lists(params.expression))
        return Noun(f"condition {names.title!r}" if names.title else f"the condition on {lists}").is_("true")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        timeline = view.timeline
        namespace = view.namespace(params.namespace) if params.namespace else None
        targets = list(view.nodes(params.node)) if params.node else []
        text = params.expression
        before = _nodes_before(timeline, view.moment(params.at)) if params.at else []
        before = [_without_unused(row, text) for row in before]
        names = _referenced_lists(text)
        changes = [
            (version, which, key, _without_unused(row, text))
            for version, which, key, row in _changes(timeline, namespace)
            if which in names
        ]
        for name in names:
            if not any(which == name for _, which, _, _ in changes):
                raise Undecidable(f"no {name} were observed" + (f" in {namespace}" if namespace else ""))
        cel = Cel(params.expression, VARIABLES)
        samples = _samples(
            changes, view.anchor, lambda rows: cel.evaluate({**rows, "targets": targets, "before": before})
        )
        signal = Signal(tuple(samples))
        first = max((min(v.t for v, which, _, _ in changes if which == name) for name in names), default=view.anchor)
        unwatched = BlindWindow(float("-inf"), first, "not watched yet", "the lists of the expression")
        sources = [source for name in names for source in (KINDS if name == "workloads" else (name,))]
        return SubjectSet(
            params.expression,
            (Subject("", mask(mask_late(signal, timeline, *sources).mask([unwatched]), timeline, *sources)),),
        )


ASSERTION = Expression()


class Cel:
    """A compiled condition over lists. Raises ValueError if the text is no condition."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        from cel_expr_python import cel  # noqa: PLC0415 - large, and few experiments need it

        types = cel.Type
        environment = cel.NewEnv(variables={name: types.List(types.DYN) for name in variables})
        try:
            self._compiled = environment.compile(text)
        except RuntimeError as error:
            raise ValueError(f"invalid CEL expression {text!r}: {_first_error(str(error))}") from error
        if self._compiled.return_type() not in (types.BOOL, types.DYN):
            raise ValueError(f"invalid CEL expression {text!r}: its type is {self._compiled.return_type()}, not bool")
        self._bool = types.BOOL

    def evaluate(self, data: Mapping[str, list[Any]]) -> tuple[bool | None, str]:
        """Return the value and "", or None and the reason why the expression has no value."""
        result = self._compiled.eval(data=data)
        if result.type() == self._bool:
            return bool(result.value()), ""
        return None, str(result.value()).split(" [", maxsplit=1)[0]


def _first_error(message: str) -> str:
    """Return the first error of the compiler, with line and column."""
    found = _ERROR_POSITION.search(message)
    return f"line {found[1]}, column {found[2]}: {found[3]}" if found else message.split("\n", maxsplit=1)[0]
