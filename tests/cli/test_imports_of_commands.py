"""What commands import: only what they use, as imports are most of the time of a short command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit.processes import ROOT

EXPERIMENT, INVENTORY = "experiments/graceful-poweroff.yaml", "hosts/lab.yaml"


def imported(*arguments: str) -> set[str]:
    """The modules that a successful command has imported at its end."""
    code = (
        "import sys\nfrom chaos.cli import app\ncode = app.main(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("file", "used", "unused"),
    [
        (
            EXPERIMENT,
            {
                "chaos.faults.actions.power",
                "chaos.verdicts.assertions.pods",
                "chaos.verdicts.assertions.workload_available",
            },
            {"chaos.faults.actions.partition", "chaos.verdicts.assertions.volume_attached", "chaos.core.inventory"},
        ),
        (
            INVENTORY,
            {"chaos.core.inventory"},
            {"chaos.faults.actions", "chaos.verdicts.assertions", "chaos.engine.registry"},
        ),
    ],
)
def test_validate_imports_only_the_plugins_of_the_file(file: str, used: set[str], unused: set[str]) -> None:
    modules = imported("validate", file)
    assert used <= modules
    assert not modules & (
        unused | {"kubernetes", "paramiko", "urllib3", "requests", "winrm", "aiohttp", "rich", "jinja2"}
    )


@pytest.mark.lab
@pytest.mark.parametrize(("experiment", "connects"), [("cordon", False), ("graceful-poweroff", True)])
def test_plan_imports_paramiko_only_for_ssh(experiment: str, connects: bool) -> None:
    modules = imported("plan", f"experiments/{experiment}.yaml", "-i", INVENTORY)
    assert "urllib3" in modules
    assert ("paramiko" in modules) is connects
