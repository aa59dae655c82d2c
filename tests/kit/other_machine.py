"""Commands on a lab whose API server is not on loopback; run in a separate network namespace.

Writes a line of JSON for each case: exit code and stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.kit.processes import EXPERIMENTS, lab, nodefall
from tests.kit.proxy import Proxy

ADDRESS = "192.0.2.1"  # reserved for documentation: RFC 5737


def main(folder: Path) -> None:
    with lab(folder) as made:
        inventory = json.loads(made.read_text())
        cluster = inventory["cluster"]
        known = yaml.safe_load(Path(cluster["kubeconfig"]).read_text())
        (server,) = (each["cluster"] for each in known["clusters"])
        proxy = Proxy(("127.0.0.1", urlsplit(server["server"]).port or 0), ADDRESS)
        server |= {"server": f"https://{ADDRESS}:{proxy.port}", "tls-server-name": "localhost"}
        (folder / "kubeconfig").write_text(json.dumps(known))
        cluster["kubeconfig"] = str(folder / "kubeconfig")
        uid = check_output("plan", folder, inventory, simulated=False).partition("expectUID: ")[2].split()[0]
        check_output("plan", folder, inventory, simulated=False, expectUID="other")
        check_output("plan", folder, inventory, simulated=True, expectUID=uid)
        check_output("plan", folder, inventory, simulated=False, expectUID=uid)
        check_output("run", folder, inventory, simulated=False, expectUID=uid)
        proxy.close()


def check_output(word: str, folder: Path, inventory: dict[str, Any], **changes: Any) -> str:
    """The same, for further use."""
    (folder / "elsewhere.json").write_text(json.dumps(inventory | {"cluster": inventory["cluster"] | changes}))
    done = nodefall(word, EXPERIMENTS / "cordon.yaml", "-i", "elsewhere.json", cwd=folder)
    sys.stdout.write(json.dumps([done.returncode, done.stderr]) + "\n")
    return done.stderr


if __name__ == "__main__":
    main(Path(sys.argv[1]))
