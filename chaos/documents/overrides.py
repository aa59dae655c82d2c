"""An experiment with the overrides of a game day's entry: checked as if it were written so in its file."""

from __future__ import annotations

from pathlib import Path

from chaos.core.experiment import Experiment
from chaos.core.registry import PluginRegistry
from chaos.documents.checks import check_experiment
from chaos.documents.document import read_document
from chaos.documents.error_collector import Cursor, did_you_mean
from chaos.documents.pydantic_errors import check_model
from chaos.documents.tree import MappingEntry, MappingNode, Mark, Node, ScalarNode, SequenceNode, to_builtins


def load_with_overrides(entry: Cursor, path: Path, registry: PluginRegistry) -> Experiment | None:
    """The valid experiment in ``path`` with ``targets``, ``with`` and ``maxDuration`` of ``entry``.

    None if there are none, or after their problems were reported, each at its position in the game day's file.
    """
    place = entry.get("experiment")
    if not place.node or not any(entry.get(key) for key in ("targets", "with", "maxDuration")):
        return None
    problems_before = len(entry.errors.problems)
    root = _at(read_document(path), place.node.mark)
    spec = Cursor(entry.errors, MappingEntry(root.mark, root)).get("spec")
    _replace_in_targets(spec, entry.get("targets"))
    _replace_in_steps(spec, entry.get("with"))
    if entry.get("maxDuration").text:
        _set(spec, "maxDuration", entry.get("maxDuration"))
    experiment = check_model(Experiment, root, to_builtins(root), entry.errors)
    check_experiment(Cursor(entry.errors, MappingEntry(root.mark, root)), registry, path.parent)
    is_valid = len(entry.errors.problems) == problems_before
    return registry.bind(experiment) if is_valid and isinstance(experiment, Experiment) else None


def _replace_in_targets(spec: Cursor, overrides: Cursor) -> None:
    targets = spec.get("targets")
    for name, keys in overrides.entries():
        if not targets.get(name):
            keys.report_key(f"the experiment has no target {name!r}", did_you_mean(name, targets.keys()))
            continue
        for key, value in keys.entries():
            _set(targets.get(name), key, value)


def _replace_in_steps(spec: Cursor, overrides: Cursor) -> None:
    steps = {name: step for step in spec.get("method").items() if (name := step.get("name").text)}
    for name, parameters in overrides.entries():
        step = steps.get(name)
        if step is None or step.node is None:
            parameters.report_key(f"the experiment has no step {name!r}", did_you_mean(name, steps))
            continue
        if not step.get("with") and isinstance(step.node, MappingNode):
            step.node.items["with"] = MappingEntry(step.node.mark, MappingNode(step.node.mark))
        for key, value in parameters.entries():
            _set(step.get("with"), key, value)


def _set(parent: Cursor, key: str, value: Cursor) -> None:
    if isinstance(parent.node, MappingNode) and value.entry:
        parent.node.items[key] = value.entry


def _at(node: Node, mark: Mark) -> Node:
    """A copy of ``node`` whose parts all have this position: a problem that an override causes in them is there."""
    if isinstance(node, MappingNode):
        return MappingNode(mark, {key: MappingEntry(mark, _at(entry.node, mark)) for key, entry in node.items.items()})
    if isinstance(node, SequenceNode):
        return SequenceNode(mark, [_at(item, mark) for item in node.items])
    return ScalarNode(mark, node.value)
