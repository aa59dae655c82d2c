"""Experiment files, checked across their parts (names, moments, deadlines), with the overrides of a game day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from chaos.core.action import AnyAction, Scope, UndoKind
from chaos.core.duration import FACTS, parse_requirement
from chaos.core.errors import BadInput
from chaos.core.experiment import Experiment, parse_moment
from chaos.core.registry import PluginRegistry
from chaos.core.store.run_directory import stored_workload
from chaos.core.target_spec import WORKLOAD
from chaos.documents.document import open_document, read_document
from chaos.documents.expectations import DeclaredNames, check_expectations, find_plugin, report_duplicates
from chaos.documents.manifests import load_manifests
from chaos.documents.problems import Cursor, check_document
from chaos.documents.wording import did_you_mean
from chaos.documents.yaml_tree import MappingEntry, MappingNode, Mark, Node, ScalarNode, SequenceNode

T = TypeVar("T")


def load_stored_experiment(path: Path) -> Experiment:
    """The experiment that a run has stored, whose manifests are elsewhere. Raises BadInput."""
    root = open_document(path, "Experiment", is_stored=True)
    return root.errors.require(check_document(Experiment, root))


def load_experiment(path: Path, registry: PluginRegistry) -> Experiment:
    """The experiment in ``path``. Raises BadInput with all problems, those of its manifests included."""
    root = open_document(path, "Experiment")
    experiment = check_document(Experiment, root)
    check_experiment(root, registry, path)
    return registry.bind(root.errors.require(experiment))


def check_experiment(root: Cursor, registry: PluginRegistry, path: Path) -> None:
    """Report problems to the cursor's collector; parts may have any shape."""
    spec = root.get("spec")
    steps = list(spec.get("method").items())
    targets = spec.get("targets").keys()
    _check_steps(steps, targets, registry, allow=_texts(spec.get("allow")))
    report_duplicates((probe.get("name") for probe in spec.get("probes").items()), "probe")
    report_duplicates((query.get("name") for query in spec.get("queries").items()), "query")
    _check_requires(spec.get("requires"))
    _check_workload(spec.get("workload", "manifests"), path)
    for _, target in spec.get("targets").entries():
        runs = target.get("runs")
        if runs and runs.get("namespace").text in (None, WORKLOAD) and not spec.get("workload"):
            hint = "add spec.workload, name the namespace of pods that exist already, or remove runs"
            runs.report("the experiment has no workload", hint)
    names = DeclaredNames(
        targets=targets,
        steps=[name for step in steps if (name := step.get("name").text)],
        hypotheses=[name for h in spec.get("hypothesis").items() if (name := h.get("name").text)],
        measurements={
            "probe": [name for probe in spec.get("probes").items() if (name := probe.get("name").text)],
            "query": [name for query in spec.get("queries").items() if (name := query.get("name").text)],
        },
    )
    check_expectations(spec, names, registry)


def _texts(cursor: Cursor) -> list[str]:
    return [text for item in cursor.items() if (text := item.text)]


def _check_steps(steps: list[Cursor], targets: list[str], registry: PluginRegistry, allow: list[str]) -> None:
    report_duplicates((step.get("name") for step in steps), "step")
    names = [step.get("name").text for step in steps]
    for index, step in enumerate(steps):
        target = step.get("target")
        if target.text and target.text not in targets:
            node = f"for a node of this name add {target.text}: {{nodes: [{target.text}]}} to spec.targets"
            target.report(f"unknown target {target.text!r}", did_you_mean(target.text, targets, otherwise=node))
        _check_action(step, registry, allow)
        _check_after(step.get("after"), names, index)
        _check_later_step(step, steps[index + 1 :], registry)


def _check_action(step: Cursor, registry: PluginRegistry, allow: list[str]) -> None:
    action = find_plugin(step, "action", "action", registry.actions)
    if action is None:
        return
    _check_scope(step, action)
    if action.allowance and action.allowance not in allow:
        hint = f"if that is intended, write allow: [{action.allowance}] in spec"
        step.get("action").report(f"{action.name} must be allowed", hint)
    if "irreversible" not in allow:
        _check_undo(step, action)


def _check_undo(step: Cursor, action: AnyAction) -> None:
    hint = "if that is intended, write allow: [irreversible] in spec"
    if action.undo_kind is UndoKind.IRREVERSIBLE:
        step.get("action").report(f"{action.name} cannot be undone", hint)
    for name in action.irreversible_params:
        if step.get("with", name).value is True:
            step.get("with", name).report(f"{action.name} with {name} cannot be undone", hint)
    if action.undo_param and step.get("with", action.undo_param).value is None:
        step.get("action").report(f"{action.name} without {action.undo_param} cannot be undone", hint)


def _check_scope(step: Cursor, action: AnyAction) -> None:
    if action.scope is Scope.NODE and not step.get("target"):
        step.report(f"{action.name} acts on nodes: target is missing", "set it to a name in spec.targets")
    if action.scope is Scope.CLUSTER and step.get("target"):
        step.get("target").report(f"{action.name} has no target node", "remove target")


def _check_later_step(step: Cursor, later: list[Cursor], registry: PluginRegistry) -> None:
    action = registry.actions.get(step.get("action").text or "")
    later_actions = {other.get("action").text for other in later if other.get("target").text == step.get("target").text}
    if action and action.requires_later_step[0] in later_actions and action.requires_later_step[1] not in later_actions:
        follows, ends = action.requires_later_step
        step.report(f"{action.name} is still in effect after {follows}", f"add a step {ends} before or after it")


def _check_after(after: Cursor, names: list[str | None], index: int) -> None:
    """A step may only wait for earlier steps."""
    if after.text is None:
        return
    try:
        moment = parse_moment(after.text)
    except ValueError as error:
        after.report(str(error))
        return
    earlier = [name for name in names[:index] if name]
    if not moment.step or moment.step in earlier:
        return
    if moment.step in names:
        itself = moment.step == names[index]
        after.report("a step cannot wait for itself" if itself else f"the step {moment.step!r} comes later")
    else:
        after.report(f"unknown step {moment.step!r}", did_you_mean(moment.step, earlier))


def _check_requires(requires: Cursor) -> None:
    for source, facts in requires.entries():
        for name, requirement in facts.entries():
            fact = f"{source}.{name}"
            if fact not in FACTS:
                requirement.report_key(f"unknown fact {fact!r}", did_you_mean(fact, FACTS))
            elif requirement.text is not None:
                try:
                    parse_requirement(requirement.text)
                except ValueError:
                    requirement.report(f"invalid requirement {requirement.text!r}", "write it like '>0' or '>= 30s'")


def _check_workload(manifests: Cursor, experiment: Path) -> None:
    if stored_workload(experiment):
        return  # one file instead of all these
    for item in manifests.items():
        load_referenced(item, experiment.parent, lambda path: load_manifests([path]))


def load_referenced(place: Cursor, folder: Path, load: Callable[[Path], T]) -> T | None:
    """The file that ``place`` names, None after its problems were reported."""
    if not place.text:
        return None
    path = folder / place.text
    if "\0" in place.text or not path.is_file():
        place.report(f"file not found: {place.text!r}", "paths are relative to this file")
        return None
    try:
        return load(path)
    except BadInput as error:
        place.errors.problems += error.problems
        return None


def load_with_overrides(entry: Cursor, path: Path, registry: PluginRegistry) -> Experiment | None:
    """The valid experiment in ``path`` with ``targets``, ``with`` and ``maxDuration`` of ``entry``.

    None if there are none, or after their problems were reported, each at its position in the game day's file.
    """
    place = entry.get("experiment")
    if not place.node or not any(entry.get(key) for key in ("targets", "with", "maxDuration")):
        return None
    problems_before = len(entry.errors.problems)
    root = Cursor.of(entry.errors, _at(read_document(path), place.node.mark))
    spec = root.get("spec")
    _replace_in_targets(spec, entry.get("targets"))
    _replace_in_steps(spec, entry.get("with"))
    if entry.get("maxDuration").text:
        _set(spec, "maxDuration", entry.get("maxDuration"))
    experiment = check_document(Experiment, root)
    check_experiment(root, registry, path)
    is_valid = len(entry.errors.problems) == problems_before
    return registry.bind(experiment) if experiment and is_valid else None


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
