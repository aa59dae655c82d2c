"""A real sshd in front of the hosts of a lab: a ForceCommand greets, and then passes each command on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.processes import free_port
from tests.kit.sshd import USER, public, serving

# The login is root's, so that sudo is added here: the lab's login is another one. The shell of sshd sources `greet`.
_RELAY = """#!/bin/sh
cd "{folder}"
[ -r greet ] && . ./greet
exec ssh -q -F /dev/null -i "{key}" -o IdentitiesOnly=yes -o UserKnownHostsFile=/dev/null \\
  -o StrictHostKeyChecking=no -p "$1" {user}@127.0.0.1 -- "sudo -n -- ${{SSH_ORIGINAL_COMMAND#exec }}"
"""


@contextmanager
def relayed(inventory: Path, folder: Path) -> Iterator[Path]:
    """The inventory of a lab, with its hosts behind the relay, whose file ``greet`` is in ``folder``."""
    document = json.loads(inventory.read_text(encoding="utf-8"))
    hosts: dict[str, Any] = document["hosts"]
    ports = {name: free_port() for name in hosts}
    key = document["defaults"].get("identityFile") or next(iter(hosts.values()))["identityFile"]
    user = document["defaults"].get("user") or next(iter(hosts.values()))["user"]
    script = folder / "relay.sh"
    script.write_text(_RELAY.format(folder=folder, key=inventory.parent / key, user=user), encoding="utf-8")
    script.chmod(0o755)
    lines = [f"ListenAddress 127.0.0.1:{port}" for port in ports.values()]
    lines += [f"Match LocalPort {port}\n  ForceCommand {script} {hosts[name]['port']}" for name, port in ports.items()]
    with serving(folder / "relay", more_settings="\n".join(lines) + "\n") as server:
        known = "\n".join(f"[127.0.0.1]:{port} {public(server.host_key)}" for port in ports.values())
        server.know(known)
        for name, port in ports.items():
            hosts[name] |= {
                "address": "127.0.0.1",
                "port": port,
                "user": USER,
                "identityFile": str(folder / "relay" / "user"),
                "knownHosts": str(folder / "relay" / "known_hosts"),
            }
        changed = folder / "relayed.json"
        changed.write_text(json.dumps(document), encoding="utf-8")
        changed.chmod(0o600)
        yield changed
