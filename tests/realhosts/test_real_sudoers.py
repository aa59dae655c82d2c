"""The file that ``nodefall sudoers`` prints: sudo accepts it, and with it alone a host is nodefall's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.reference.commands import sudoers_command
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
EXPERIMENT = Path(__file__).parents[2] / "experiments" / "graceful-poweroff.yaml"


def test_sudo_takes_it(three: list[RealHost], tmp_path: Path) -> None:
    host = three[2]
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "i"},
        "cluster": {"kubeconfig": "/nowhere"},
        "hosts": {host.name: {"user": "chaos"}},
    }
    (tmp_path / "i.json").write_text(json.dumps(document))
    (tmp_path / "i.json").chmod(0o600)
    done = CliRunner().invoke(
        sudoers_command, [str(EXPERIMENT), "-i", str(tmp_path / "i.json")], catch_exceptions=False
    )
    installed = host.run("cat /etc/sudoers.d/chaos")
    try:
        host.run("rm /etc/sudoers.d/chaos; ! su chaos -c 'sudo -n true' 2>/dev/null")
        host.docker("exec", "-i", host.name, "sh", "-c", "cat > /etc/sudoers.d/nodefall", stdin=done.output.encode())
        host.run("chmod 440 /etc/sudoers.d/nodefall; visudo -c")
        assert host.run("su chaos -c 'sudo -n -- sh -c \"id -u\"'") == "0"
    finally:
        host.run(
            f"rm -f /etc/sudoers.d/nodefall; echo '{installed}' > /etc/sudoers.d/chaos; chmod 440 /etc/sudoers.d/chaos"
        )
