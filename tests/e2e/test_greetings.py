"""Text that a login shell adds to the answers of a host: nothing is proven by it, and no one is accused.

A relay greets before each command, and intercepts a reboot, so that the machine never reboots.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import lab, nodefall, result_of, verdicts, write_experiment
from tests.kit.relay import relayed
from tests.kit.sshd import SSHD
from tests.kit.wrong_machines import boots

pytestmark = pytest.mark.lab
_INTERCEPT = """case "$SSH_ORIGINAL_COMMAND" in
  *systemctl*reboot*) touch pending; echo ready; read x; exit 0;;
esac
"""
# The host answers as if it had carried out the command, and does nothing.
_SWALLOW = """case "$SSH_ORIGINAL_COMMAND" in
  *"systemctl reboot"*)
    touch pending
    SSH_ORIGINAL_COMMAND=$(printf '%s' "$SSH_ORIGINAL_COMMAND" | sed 's/systemctl reboot/true/')
    ;;
esac
"""
_ONCE_PENDING = '[ -e pending ] && echo "*** reboot of this host was intercepted by policy ***"\n'
_FOR_SIX_SECONDS = (
    """[ -n "$(find pending -newermt '-6 seconds' 2>/dev/null)" ] && echo "Broadcast: the system will reboot now"\n"""
)
_NO_LINE_END = "printf 'the system will reboot now'; printf 'warning' >&2\n"
READY = {"assert": "nodes-ready", "with": {"nodes": "all"}}
NO_POD_DELETED = {
    "name": "no pod is deleted",
    "assert": "pods",
    "with": {"node": "victim", "namespace": "default", "at": "reboot", "none": {"deleting": True}},
    "after": "reboot",
    "always": {"for": "60s"},
}
REBOOTED = {
    "name": "it reboots",
    "assert": "node-rebooted",
    "with": {"node": "victim"},
    "after": "reboot",
    "within": "2m",
}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with lab(tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def relay(inventory: Path, tmp_path: Path) -> Iterator[Path]:
    with relayed(inventory, tmp_path) as made:
        yield made


def experiment(folder: Path, name: str, action: str, *hypothesis: dict[str, Any]) -> Path:
    spec = {
        "title": "t",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [READY],
        "method": [{"name": name, "action": action, "target": "victim"}],
        "hypothesis": list(hypothesis),
    }
    return write_experiment(folder / "greeting.yaml", spec)


GREETINGS = {
    "intercepted": _INTERCEPT + _ONCE_PENDING,
    "broadcast": _INTERCEPT + _FOR_SIX_SECONDS,
    "swallowed": _SWALLOW + _NO_LINE_END + _ONCE_PENDING,
}


@pytest.mark.parametrize("greet", GREETINGS.values(), ids=GREETINGS)
def test_a_reboot_that_never_happened_is_not_proven(inventory: Path, relay: Path, tmp_path: Path, greet: str) -> None:
    before = boots(inventory)
    (tmp_path / "greet").write_text(greet, encoding="utf-8")
    made = experiment(tmp_path, "reboot", "reboot", NO_POD_DELETED, REBOOTED)
    done = nodefall("run", made, "-i", relay, "--yes", "--json", cwd=tmp_path)
    result = result_of(done)
    assert (tmp_path / "pending").exists(), done.stderr
    assert verdicts(result)["no pod is deleted"]["status"] == "inconclusive"
    assert verdicts(result)["it reboots"]["status"] != "held"
    assert [step["proof_status"] for step in result["steps"]] == ["unproven"]
    assert done.returncode != 0, done.stderr
    assert boots(inventory) == before


def test_a_greeting_accuses_no_one(inventory: Path, relay: Path, tmp_path: Path) -> None:
    """It appears during the run: with the first restart of the kubelet."""
    greet = 'case "$SSH_ORIGINAL_COMMAND" in *restart*kubelet*) touch pending;; esac\n' + _ONCE_PENDING
    (tmp_path / "greet").write_text(greet, encoding="utf-8")
    never = {"name": "never", "assert": "node-rebooted", "with": {"node": "victim"}, "after": "restart"}
    locked = {"name": "locked", "assert": "inhibitor-held", "with": {"node": "victim"}, "after": "restart"}
    made = experiment(
        tmp_path, "restart", "kubelet-restart", never | {"never": {"for": "90s"}}, locked | {"within": "60s"}
    )
    done = nodefall("run", made, "-i", relay, "--yes", "--json", cwd=tmp_path)
    result = result_of(done)
    assert (tmp_path / "pending").exists(), done.stderr
    assert "rebooted by" not in done.stdout + done.stderr
    assert [verdict["status"] for verdict in verdicts(result).values()] == ["held", "held"]
    assert done.returncode == 0, done.stderr
