"""A saved plan is read like an experiment: nothing of it is trusted that another user may write, or that is a path."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from chaos.cli.app import main
from chaos.core.plan import Plan

INVENTORY = Path(__file__).parents[2] / "hosts" / "lab.yaml"


def saved(folder: Path, run: str, mode: int = 0o600) -> Path:
    path = folder / "plan.json"
    path.write_bytes(msgspec.json.encode(Plan(run, "x", "hash", "cluster-1", 1000.0, 7, (), (), source="none.yaml")))
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("run", "mode", "message"),
    [
        ("../elsewhere", 0o600, "'../elsewhere' is not a valid run ID"),
        ("a/b", 0o600, "'a/b' is not a valid run ID"),
        ("", 0o600, "'' is not a valid run ID"),
        ("r-1", 0o602, "not trusted: any user may write this file"),
        ("r-1", 0o600, "none.yaml: file not found"),
    ],
)
def test_a_saved_plan_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, mode: int, message: str
) -> None:
    assert main(["run", "--plan", str(saved(tmp_path, run, mode)), "-i", str(INVENTORY)]) == 64
    assert message in capsys.readouterr().err
