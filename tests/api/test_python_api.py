"""chaos.api: its functions, and the types that it exports."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import chaos.api
from chaos.api import Lab, judge, kube, load, plan, run
from chaos.app.labs import RunningLab
from chaos.core import errors
from chaos.core.errors import BadInput, Refused, UsageError
from chaos.core.registry import PluginRegistry
from chaos.engine.progress import NullProgress

ROOT = Path(__file__).parents[2]
EXPERIMENTS, RECORDINGS = ROOT / "experiments", ROOT / "tests" / "recordings"
CORDON = EXPERIMENTS / "cordon.yaml"
SLOW = ("kubernetes", "pydantic", "msgspec", "yaml", "paramiko", "click", "chaos.app")


FUNCTIONS = ("Lab", "compare", "judge", "load", "plan", "rehearse", "run")


def test_every_name_is_exported_and_documented() -> None:
    assert sorted(chaos.api.__all__) == sorted((*FUNCTIONS, *chaos.api._exports())) == sorted(dir(chaos.api))
    assert all(getattr(chaos.api, name).__doc__ for name in FUNCTIONS)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in chaos.api.__all__ if f"`{name}`" not in page and f"`{name}(" not in page] == []


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Laboratory'"):
        _ = chaos.api.Laboratory


def _hints(owner: Any, names: dict[str, Any]) -> list[Any]:
    is_lazy = owner.__module__ in ("chaos.api", "chaos.rehearsal")  # they import types for type checkers only
    return list(typing.get_type_hints(owner, localns=names if is_lazy else None).values())


def _annotated(cls: type, names: dict[str, Any]) -> Iterator[Any]:
    """The types of a class' public fields, properties and methods."""
    yield from _hints(cls, names)
    for name, member in dict(vars(cls)).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        constructor = name == "__init__" and not is_dataclass(cls)  # that of a dataclass takes its fields
        is_ours = inspect.isfunction(function) and function.__module__.startswith("chaos.")  # pydantic adds its own
        if is_ours and (constructor or not name.startswith("_")):
            yield from _hints(function, names)


def _classes(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and hint.__module__.startswith("chaos."):
        yield hint
    for argument in [hint] if isinstance(hint, list) else typing.get_args(hint):
        for each in argument if isinstance(argument, list) else [argument]:
            yield from _classes(each)


def test_every_public_type_is_exported() -> None:
    names = {name: getattr(chaos.api, name) for name in chaos.api.__all__} | {"RunningLab": RunningLab}
    exported = {id(getattr(chaos.api, name)) for name in chaos.api.__all__} | set(map(id, vars(kube).values()))
    pending = [hint for name in FUNCTIONS[1:] for hint in _hints(names[name], names)]
    pending += [names[name] for name in chaos.api.__all__ if inspect.isclass(names[name])]
    pending += typing.get_args(names["Confirm"])
    seen: set[type] = set()
    while pending:
        for cls in set(_classes(pending.pop())) - seen - {PluginRegistry}:  # plug-ins are described in plugins.md
            seen.add(cls)
            pending += _annotated(cls, names)
    assert len(seen) > 100, "types of types are followed"
    assert sorted(f"{cls.__module__}.{cls.__name__}" for cls in seen if id(cls) not in exported) == []


def test_every_error_is_exported() -> None:
    classes = [each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__]
    assert [each.__name__ for each in classes if each.__name__ not in chaos.api.__all__] == []


def test_importing_it_costs_nothing() -> None:
    code = f"import sys, chaos.api; sys.exit([n for n in {SLOW} if n in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_load_reports_all_problems(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: nodefall.dev/v1alpha1\nkind: Experiment\nmetadata: {name: X}\nspec: {titel: y}\n")
    with pytest.raises(BadInput) as caught:
        load(path)
    assert len(caught.value.problems) > 1
    assert load(str(CORDON)).experiment.metadata.name == "cordon"


@pytest.mark.parametrize("as_loaded", [False, True])
def test_judge(as_loaded: bool) -> None:
    path = EXPERIMENTS / "graceful-poweroff.yaml"
    judged = judge(
        RECORDINGS / "01-graceful-poweroff.jsonl.gz",
        load(path) if as_loaded else str(path),
        bind={"victim": ["ra-worker"], "workload": "demo"},
    )
    assert (judged.result.status, judged.result.exit_code) == ("held", 0)
    assert judged.timeline.nodes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bind": {"victm": ["ra-worker"]}}, "bind: unknown target 'victm'"),
        ({"steps": {"poweroff": "power-cut"}}, "map: unknown step 'poweroff'"),
        ({"facts": {"kubelet.shutdownGracePeriod": "-5"}}, "fact kubelet.shutdownGracePeriod=-5: "),
    ],
)
def test_judge_rejects_unknown_names(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        judge(RECORDINGS / "01-graceful-poweroff.jsonl.gz", EXPERIMENTS / "graceful-poweroff.yaml", **given)


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        (None, {"wrokers": 5}, "wrokers: Extra inputs are not permitted"),
        (None, {"workers": 0}, "workers: .* greater than or equal to 1"),
        (ROOT / "hosts" / "example.yaml", {}, "staging describes a cluster, not a lab"),
    ],
)
def test_invalid_labs_are_refused(given: Path | None, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Lab(given, **settings)


def test_a_misspelt_setting_of_a_lab_is_suggested() -> None:
    with pytest.raises(UsageError) as refused:
        Lab(wrokers=5)
    assert refused.value.hint == "did you mean 'workers'?"


def test_a_stopped_lab_has_no_inventory() -> None:
    lab = Lab(ROOT / "hosts" / "lab.yaml", workers=5)
    for _ in range(2):
        with pytest.raises(UsageError, match="the lab is not running"):
            _ = lab.inventory
        lab.stop()


@pytest.mark.lab
def test_a_plan_is_executed_on_a_lab(tmp_path: Path) -> None:
    with Lab(ROOT / "hosts" / "lab.yaml", workers=3, seed=3) as lab:
        kubeconfig = lab.kubeconfig
        assert kubeconfig.is_file()
        assert lab.inventory.limits.min_ready_nodes == 2, "as hosts/lab.yaml says"
        planned = plan(CORDON, lab.inventory, seed=7)
        assert (planned.experiment, planned.seed) == ("cordon", 7)
        handlers: dict[str, Any] = {}

        class Phases(NullProgress):
            def phase(self, name: str) -> None:
                handlers[name] = signal.getsignal(signal.SIGINT)

        done = run(planned, lab.inventory, reports=tmp_path, progress=Phases())
        own = signal.getsignal(signal.SIGINT)
        assert handlers["arm"] is handlers["report"] is not own, "q stops the run from arm to report"
        assert (done.result.status, done.result.exit_code) == ("held", 0), done.result.headline
        assert done.report.is_file()
        assert done.directory.is_relative_to(tmp_path)
        real = lab.inventory.cluster
        assert real is not None
        unmarked = lab.inventory.model_copy(update={"cluster": real.model_copy(update={"simulated": False})})
        with pytest.raises(Refused, match="not confirmed: the run takes down"):
            run(EXPERIMENTS / "power-cut.yaml", unmarked, reports=tmp_path)
    assert not kubeconfig.exists(), "a lab removes its files"
