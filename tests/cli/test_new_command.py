"""``nodefall new``: every skeleton is a valid experiment, files are not overwritten, a terminal is asked."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.cli.app import main
from chaos.cli.setup import new as new_impl
from chaos.cli.setup.commands import new_command
from chaos.cli.setup.new_faults import BEFORE, EFFECTS, MENU, SUGGESTED, suggestions
from chaos.cli.setup.new_skeleton import SAMPLE_WORKLOAD, Request, skeleton
from chaos.core.experiment import Experiment
from chaos.core.target_spec import TargetPods
from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry

REGISTRY = load_registry()
LINE = "# yaml-language-server: $schema=nodefall.schema.json\n"


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Request], Experiment]:
    """Write the skeleton and load it; every problem of the loader is an error."""

    def write_and_load(request: Request) -> Experiment:
        for name, text in (("e.yaml", skeleton(request)), ("w.yaml", SAMPLE_WORKLOAD)):
            (tmp_path / name).write_text(text, encoding="utf-8")
            (tmp_path / name).chmod(0o644)
        return load_experiment(tmp_path / "e.yaml", REGISTRY)

    return write_and_load


def request(actions: tuple[str, ...], expectations: tuple[str, ...], **others: str) -> Request:
    return Request("e", actions, expectations, **({"workload": "w.yaml"} | others))


@pytest.mark.parametrize("action", sorted(REGISTRY.actions))
def test_every_action_with_its_usual_expectations(action: str, load: Callable[[Request], Experiment]) -> None:
    spec = load(request((action,), suggestions(action))).spec
    assert [e.assert_ for e in spec.hypothesis] == list(suggestions(action))
    assert [step.action for step in spec.method] == [*([BEFORE[action]] if action in BEFORE else []), action]
    fault = spec.method[-1].name
    assert all(e.after and e.after.split(" + ")[0] == fault for e in spec.hypothesis)


@pytest.mark.parametrize("assertion", sorted(REGISTRY.assertions))
@pytest.mark.parametrize("action", ["poweroff", "scale"])  # on a node; without one
def test_every_assertion(action: str, assertion: str, load: Callable[[Request], Experiment]) -> None:
    (expectation,) = load(request((action,), (assertion,))).spec.hypothesis
    assert expectation.assert_ == assertion


def test_all_assertions_at_once(load: Callable[[Request], Experiment]) -> None:
    spec = load(request(("partition",), tuple(REGISTRY.assertions))).spec
    assert len(spec.hypothesis) == len(REGISTRY.assertions)
    assert (len(spec.probes), len(spec.queries)) == (1, 1)


def test_pods_that_exist_are_observed_without_a_workload(load: Callable[[Request], Experiment]) -> None:
    spec = load(request(("kubelet-stop",), ("pods-rescheduled",), workload="", namespace="shop")).spec
    assert spec.workload is None
    assert spec.targets["victim"].runs is None
    assert spec.hypothesis[0].with_["namespace"] == spec.steady_state[1].with_["namespace"] == "shop"


@pytest.mark.parametrize(
    ("action", "owner", "expected"),
    [
        ("power-cut", "Deployment/web", {"node-condition", "node-taint", "pods-rescheduled", "workload-available"}),
        ("power-cut", "StatefulSet/db", {"node-condition", "node-taint", "pods-stuck", "workload-available"}),
        ("power-cut", "DaemonSet/agent", {"node-condition", "node-taint", "workload-available"}),
        ("drain", "StatefulSet/db", {"workload-available", "pods-evicted", "budget-respected", "pods-rescheduled"}),
        ("drain", "DaemonSet/agent", {"workload-available", "budget-respected"}),
    ],
)
def test_the_workload_decides_what_can_hold(
    action: str, owner: str, expected: set[str], load: Callable[[Request], Experiment]
) -> None:
    names = suggestions(action, owner.partition("/")[0])
    spec = load(request((action,), names, workload="", namespace="shop", owner=owner)).spec
    assert {e.assert_ for e in spec.hypothesis} == expected
    runs = spec.targets["victim"].runs
    assert isinstance(runs, TargetPods)
    assert (runs.namespace, runs.owner) == ("shop", owner)
    assert spec.steady_state[1].with_ == {"namespace": "shop", "owner": owner}
    available = next(e for e in spec.hypothesis if e.assert_ == "workload-available")
    assert available.with_["owner"] == owner
    assert all(e.after == spec.method[-1].name for e in spec.hypothesis)
    stays = action == "power-cut" and not owner.startswith("Deployment")
    assert available.with_.get("unavailable-at-most") == (1 if stays else None)
    assert bool(available.always) == stays, "without a replacement it does not get whole again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--owner", "StatefulSet/db"), "--owner needs --namespace"),
        (("--owner", "db", "--namespace", "shop"), "--owner: 'db' is not a workload"),
    ],
)
def test_an_owner_that_is_none(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    code, _, err = nodefall("new", str(tmp_path / "e.yaml"), "--action", "drain", *options)
    assert code == 64
    assert message in err


def test_several_steps_in_order_with_unique_names(load: Callable[[Request], Experiment]) -> None:
    method = load(request(("drain", "drain", "uncordon"), ("pods-evicted",))).spec.method
    assert [step.name for step in method] == ["drain", "drain-2", "cordon", "uncordon"]
    assert method[0].after is None
    assert method[1].after == "drain + 60s"


def test_what_cannot_be_undone_is_allowed_by_name(load: Callable[[Request], Experiment]) -> None:
    assert load(request(("delete-pod",), ("workload-available",))).spec.allow == ["irreversible"]
    assert load(request(("command",), ("workload-available",))).spec.allow == ["custom"]
    assert load(request(("cordon",), ("workload-available",))).spec.allow == []


def test_comments_name_what_belongs_to_a_cluster_and_nothing_else() -> None:
    text = skeleton(request(("poweroff",), ("at-most-one", "pods-rescheduled")))
    assert text.startswith(LINE)
    assert text.count("# CHANGE: name\n") == 1
    titled = skeleton(request(("command",), ("workload-available",), title="A: b"))
    assert "# CHANGE: inject, undo, proof\n" in titled
    assert "  title: 'A: b'\n" in titled


def test_the_tables_name_only_what_exists() -> None:
    actions = {*MENU, *EFFECTS, *BEFORE, *BEFORE.values()}
    assert actions <= set(REGISTRY.actions)
    assert {name for names in SUGGESTED.values() for name in names} <= set(REGISTRY.assertions)


def nodefall(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


def test_the_command_writes_a_valid_experiment_and_prints_what_is_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = nodefall("new", "Shop Test.yaml", "--action", "poweroff", "--expect", "pods-rescheduled")
    assert (code, err) == (0, "")
    assert "next:\n  nodefall validate 'Shop Test.yaml'\n" in out
    assert {path.name for path in tmp_path.iterdir()} == {
        "Shop Test.yaml", "shop-test-workload.yaml", "nodefall.schema.json"
    }  # fmt: skip
    assert nodefall("validate", "Shop Test.yaml") == (0, "Shop Test.yaml: Experiment shop-test is valid\n", "")


def test_files_are_overwritten_only_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "drain.yaml"
    file.write_text("mine")
    code, out, err = nodefall("new", "--action", "drain")
    assert (code, out) == (64, "")
    assert err == "error: not overwritten: drain.yaml\nhint: give another FILE, or --force\n"
    assert (file.read_text(), len(list(tmp_path.iterdir()))) == ("mine", 1)
    assert nodefall("new", "--action", "drain", "--force")[0] == 0
    assert file.read_text().startswith(LINE)


def test_a_workload_elsewhere_is_named_relative_to_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("shop", "experiments"):
        (tmp_path / folder).mkdir(mode=0o755)
    manifest = tmp_path / "shop" / "web.yaml"
    manifest.write_text(SAMPLE_WORKLOAD)
    manifest.chmod(0o644)
    assert nodefall("new", "experiments/e.yaml", "--action", "drain", "--workload", "shop/web.yaml")[0] == 0
    assert "workload: {manifests: [../shop/web.yaml]}" in (tmp_path / "experiments" / "e.yaml").read_text()
    assert nodefall("validate", "experiments/e.yaml")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--action", "powerof"], "--action: unknown name 'powerof'", "did you mean 'poweroff'?"),
        (["--action", "drain", "--expect", "xyzzy"], "--expect: unknown name 'xyzzy'", "nodefall new --list"),
        (["--action", "drain", "--workload", "none.yaml"], "--workload: no file none.yaml", "give a manifest"),
        (["--action", "drain", "--workload", "x", "--namespace", "y"], "exclude each other", "a workload has"),
        (["--action", "drain", "--namespace", "a, b: c"], "is not a valid namespace name", "kubectl get namespaces"),
        (["e.yaml", "--from", "last", "--action", "drain"], "--from excludes what makes", "give FILE"),
        (["--from", "last"], "--from needs FILE", "name the file to write"),
        (["e.yaml", "--from", "last"], "no run 'last'", "run an experiment first"),
        (["-i", "lab.json", "--action", "drain", "--workload", __file__], "exclude each other", "a workload is not"),
        ([], "--action is missing, and there is no terminal to ask", "nodefall new --list"),
        (["--action", "drain", "--", "---.yaml"], "---.yaml gives no name for the experiment", "use letters"),
        (["no/such/e.yaml", "--action", "drain"], "cannot write no/such/e.yaml: No such file", "give another file"),
    ],
)
def test_bad_input(
    arguments: list[str], message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = nodefall("new", *arguments)
    assert (code, out) == (64, "")
    assert message in err
    assert f"hint: {hint}" in err
    assert not list(tmp_path.iterdir())


def test_list_names_every_action_and_assertion() -> None:
    code, out, _ = nodefall("new", "--list")
    assert code == 0
    assert all(f"  {name} " in out for name in (*REGISTRY.actions, *REGISTRY.assertions))


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, Any]]:
    """Run the command as on a terminal, with these lines typed; exit code, output, and spec of e.yaml if it exists."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new_impl, "_on_terminal", lambda: True)

    def run(typed: str, *arguments: str) -> tuple[int, str, Any]:
        result = CliRunner().invoke(new_command, ["e.yaml", *arguments], input=typed)
        file = tmp_path / "e.yaml"
        return result.exit_code, result.output, load_experiment(file, REGISTRY).spec if file.exists() else None

    return run


def test_the_questions_in_order_with_their_defaults(answer: Callable[..., tuple[int, str, Any]]) -> None:
    code, output, spec = answer("\n\n\n")
    assert code == 0
    positions = [output.index(text) for text in ("What fails?", "What must hold?", "For which pods?", "next:")]
    assert positions == sorted(positions)
    assert spec.method[0].action == "poweroff"
    assert [e.assert_ for e in spec.hypothesis] == list(suggestions("poweroff"))
    assert spec.workload.manifests == ["e-workload.yaml"]


def test_numbers_and_names_are_answers(answer: Callable[..., tuple[int, str, Any]]) -> None:
    code, _, spec = answer("8\n2, pods-rescheduled,2\nnamespace/shop\n")
    assert (code, spec.method[0].action, spec.workload) == (0, "drain", None)
    assert [e.assert_ for e in spec.hypothesis] == ["pods-evicted", "pods-rescheduled"]


def test_an_answer_that_is_not_understood_leads_to_the_same_question(
    answer: Callable[..., tuple[int, str, Any]],
) -> None:
    code, output, spec = answer("99\ndrian\ndrain\nx\n1\nnone.yaml\nnamespace/\nsample\n")
    assert (code, spec.method[0].action) == (0, "drain")
    for message in (
        "'99' is not in the list",
        "did you mean 'drain'?",
        "'x' is not in the list",
        "no file none.yaml",
        "is not a valid namespace name",
    ):
        assert message in output


def test_options_replace_questions(answer: Callable[..., tuple[int, str, Any]]) -> None:
    code, output, spec = answer("cordon\n", "--expect", "pods-started", "--namespace", "shop")
    assert (code, spec.method[0].action) == (0, "cordon")
    assert "What must hold?" not in output
    assert "For which pods?" not in output


def test_the_end_of_the_input_writes_nothing(answer: Callable[..., tuple[int, str, Any]], tmp_path: Path) -> None:
    code, _, spec = answer("8\n")
    assert (code, spec) == (1, None)
    assert not list(tmp_path.iterdir())
