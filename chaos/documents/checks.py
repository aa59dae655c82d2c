"""Checks across the parts of an experiment: names, moments, deadlines."""

from __future__ import annotations

from pathlib import Path

from chaos.core.action import AnyAction, Scope, UndoKind
from chaos.core.bound import FACTS
from chaos.core.errors import BadInput
from chaos.core.experiment import parse_moment
from chaos.core.registry import PluginRegistry
from chaos.core.requirement import parse_requirement
from chaos.documents.error_collector import Cursor, did_you_mean
from chaos.documents.expectations import DeclaredNames, check_expectations
from chaos.documents.manifests import load_manifests
from chaos.documents.plugin_lookup import find_plugin, report_duplicates


def check_experiment(root: Cursor, registry: PluginRegistry, folder: Path) -> None:
    """Report problems to the cursor's collector; parts may have any shape."""
    spec = root.get("spec")
    steps = list(spec.get("method").items())
    targets = spec.get("targets").keys()
    _check_steps(steps, targets, registry, allow=_texts(spec.get("allow")))
    report_duplicates((probe.get("name") for probe in spec.get("probes").items()), "probe")
    report_duplicates((query.get("name") for query in spec.get("queries").items()), "query")
    _check_requires(spec.get("requires"))
    _check_workload(spec.get("workload", "manifests"), folder)
    for _, target in spec.get("targets").entries():
        if target.get("runs") and not spec.get("workload"):
            target.get("runs").report("the experiment has no workload", "add spec.workload, or remove runs")
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
            target.report(f"unknown target {target.text!r}", did_you_mean(target.text, targets))
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


def _check_workload(manifests: Cursor, folder: Path) -> None:
    for item in manifests.items():
        if not item.text:
            continue
        path = folder / item.text
        if "\0" in item.text or not path.is_file():
            item.report(f"file not found: {item.text!r}", "paths are relative to this file")
            continue
        try:
            load_manifests([path])
        except BadInput as error:
            item.errors.problems += error.problems
