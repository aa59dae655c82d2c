"""What people write first says what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.errors import BadInput
from chaos.documents.experiment import load_experiment
from tests.kit.story import plugin_registry

EXPERIMENT = """\
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: shop}
spec:
  title: The shop stays available
  targets:
    victim: {role: worker, count: 1}
  steadyState: [{assert: nodes-ready, with: {nodes: all}}]
  method:
    - {name: cut, action: power-cut, target: victim}
  hypothesis:
    - name: a replica is ready
      assert: pods
      with: {namespace: shop, node: victim, each: {ready: true}}
      after: cut
      within: 90s
"""
CONDITION = "{node: victim, type: Ready, status: true}"
MISTAKES = [
    ("within: 90s", "always: 90s", "write always: {for: 90s}"),
    ("within: 90s", "never: power-on", "write never: {until: power-on}"),
    ("within: 90s", "within: 90", "90 has no unit; write 90s for seconds"),
    ("with: {namespace", "with: {labels: app=db, namespace", "write labels: {app: db}"),
    ("count: 1", "count: 1, matchLabels: node-role=", "write matchLabels: {node-role: ''}"),
    ("  method:", "  steps:", "unknown key 'steps' (did you mean 'method'?)"),
    ("  hypothesis:", "  expect:", "unknown key 'expect' (did you mean 'hypothesis'?)"),
    ("target: victim", "node: victim", "unknown key 'node' (did you mean 'target'?)"),
    ("target: victim", "target: worker-2", "for a node of this name add worker-2: {nodes: [worker-2]} to spec.targets"),
    ("    victim: {role", "    - {name: victim, role", "got a list (write targets: {NAME: {...}})"),
    ("ready: true", 'ready: "True"', "expected true or false, got the text 'True' (remove the quotes)"),
    ("ready: true", "ready: 1", "expected true or false, got the number 1"),
    ("assert: pods", "assert: pod", "did you mean 'pods'?"),
]


def _problems(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "shop.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        load_experiment(path, plugin_registry())
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(("right", "wrong", "hint"), MISTAKES, ids=[row[1] for row in MISTAKES])
def test_it_says_what_to_write(right: str, wrong: str, hint: str, tmp_path: Path) -> None:
    assert right in EXPERIMENT
    problems = _problems(EXPERIMENT.replace(right, wrong), tmp_path)
    assert any(hint in problem for problem in problems), problems


def test_a_key_with_another_name_is_not_missing_as_well(tmp_path: Path) -> None:
    (problem,) = _problems(EXPERIMENT.replace("  method:", "  steps:").replace("      after: cut\n", ""), tmp_path)
    assert "unknown key 'steps'" in problem


def test_a_boolean_for_a_status_is_to_be_quoted(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("assert: pods", "assert: node-condition")
    text = text.replace("{namespace: shop, node: victim, each: {ready: true}}", CONDITION)
    (problem,) = _problems(text, tmp_path)
    assert problem.endswith("""expected 'True', 'False' or 'Unknown', got true (quote it: "True")""")


def test_a_missing_part_is_shown(tmp_path: Path) -> None:
    text = "".join(line for line in EXPERIMENT.splitlines(keepends=True) if "steadyState" not in line)
    (problem,) = _problems(text, tmp_path)
    assert "add steadyState: [{assert: nodes-ready, with: {nodes: all}}]" in problem


@pytest.mark.parametrize("moment", ["cut+30s", "cut + 30s", "end(cut)+30s"])
def test_the_plus_of_a_moment_needs_no_spaces(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(EXPERIMENT.replace("after: cut", f"after: {moment}"), encoding="utf-8")
    assert load_experiment(path, plugin_registry()).spec.hypothesis[0].after == moment
