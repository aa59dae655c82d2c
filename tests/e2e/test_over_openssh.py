"""A run over transport openssh on a lab: through a ProxyCommand that has a secret, and after the death of nodefall."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.kit.openssh import RELAY
from tests.kit.processes import EXPERIMENTS, lab, nodefall, result_of, start, wait_for

pytestmark = pytest.mark.lab
SECRET = "planted-tunnel-token-5b1f"


def over_openssh(inventory: Path, folder: Path) -> Path:
    """The inventory of a lab with transport openssh, whose configuration reaches each host through a program."""
    (folder / "relay.py").write_text(RELAY, encoding="utf-8")
    (folder / "ssh_config").write_text(
        f"Host 127.0.0.1\n  ProxyCommand {sys.executable} {folder}/relay.py %h %p --token {SECRET}\n", encoding="utf-8"
    )
    (folder / "ssh_config").chmod(0o600)
    document = json.loads(inventory.read_text(encoding="utf-8"))
    options = {"configFile": str(folder / "ssh_config")}
    document["defaults"] |= {"transport": "openssh", "options": options}
    changed = inventory.with_name("openssh.json")
    changed.write_text(json.dumps(document), encoding="utf-8")
    changed.chmod(0o600)
    return changed


def masters(folder: Path) -> list[str]:
    """Command lines of ssh that use the configuration."""
    found = [path.read_bytes().decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in found if line.startswith("ssh\0") and f"{folder}/ssh_config" in line]


@pytest.mark.smoke  # over transport openssh
def test_a_run_leaves_no_connection_and_no_secret(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        inventory = over_openssh(made, tmp_path)
        experiment = EXPERIMENTS / "graceful-poweroff.yaml"
        done = nodefall("run", experiment, "-i", inventory, "--yes", "--json", "-vv", cwd=tmp_path)
        assert result_of(done)["status"] == "held", done.stderr
        assert masters(tmp_path) == []
    left = [path.read_bytes() for path in (tmp_path / "reports").rglob("*") if path.is_file()]
    texts = [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in left]
    assert any(b"preparing-for-shutdown" in text for text in texts)
    assert not any(SECRET.encode() in text for text in texts)
    assert SECRET not in done.stdout + done.stderr


def test_a_run_that_dies_is_undone(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        inventory = over_openssh(made, tmp_path)
        run = start("run", EXPERIMENTS / "partition-ridden-out.yaml", "-i", inventory, "--yes", cwd=tmp_path)
        wait_for(run, "phase: observe")
        assert masters(tmp_path)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        undone = nodefall("undo", "last", cwd=tmp_path)
        assert undone.returncode == 0, undone.stderr
        assert SECRET not in undone.stdout + undone.stderr
