"""A whole run on the lab with secrets behind every kind of reference: none of them is in anything that it leaves."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.reports.run.page.page_data import unpack
from tests.kit.processes import EXPERIMENTS, WALL, environment, lab
from tests.kit.staying_processes import get

pytestmark = pytest.mark.lab
IN_CLUSTER = ("/api/v1/configmaps", "/api/v1/events", "/apis/coordination.k8s.io/v1/leases")


def planted(inventory: Path, folder: Path) -> tuple[Path, dict[str, str], list[str]]:
    """The inventory with passwords by environment, file and command; the environment; and all secrets."""
    document = json.loads(inventory.read_text())
    config = json.loads(Path(document["cluster"]["kubeconfig"]).read_text())
    secrets = [config["users"][0]["user"]["token"]]
    for number, host in enumerate(document["hosts"].values()):
        path = host["power"]["password"]["file"]
        secrets.append(Path(path).read_text())
        ways: list[dict[str, Any]] = [{"env": "PLANTED"}, {"file": path}, {"command": ["cat", path]}]
        host["power"]["password"] = ways[number % len(ways)]
    made = folder / "planted.json"
    made.write_text(json.dumps(document))
    made.chmod(0o600)
    (folder / "tmp").mkdir()
    return made, {"PLANTED": secrets[1], "TMPDIR": str(folder / "tmp")}, secrets


@contextmanager
def listening(kubeconfig: str) -> Iterator[set[str]]:
    """What every process's command line and the cluster say meanwhile."""
    heard: set[str] = set()
    over = threading.Event()

    def processes() -> None:
        while not over.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    heard.add(path.read_bytes().decode(errors="replace"))
                except OSError:  # it has just ended
                    continue

    def cluster() -> None:
        while not over.wait(0.2):
            heard.update(json.dumps(get({"kubeconfig": kubeconfig}, path)) for path in IN_CLUSTER)

    threads = [threading.Thread(target=work) for work in (processes, cluster)]
    for thread in threads:
        thread.start()
    try:
        yield heard
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_a_whole_run_leaves_no_secret(tmp_path: Path) -> None:
    with lab(tmp_path) as inventory:
        path, more, secrets = planted(inventory, tmp_path)
        kubeconfig = json.loads(inventory.read_text())["cluster"]["kubeconfig"]
        arguments = ["run", EXPERIMENTS / "graceful-poweroff.yaml", "-i", path, "--plain", "--json"]
        with listening(kubeconfig) as heard:
            done = subprocess.run(
                [sys.executable, "-m", "chaos", *map(str, arguments)],
                cwd=tmp_path,
                env=environment(tmp_path) | more,
                capture_output=True,
                text=True,
                timeout=WALL,
                check=False,
            )
    assert done.returncode == 0, done.stderr
    assert any("nodefall-run-graceful-poweroff" in text for text in heard), "the config map was not seen"
    heard |= {done.stdout, done.stderr}
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"recording.jsonl.gz", "journal.jsonl", "report.html"} <= {file.name for file in written}
    for file in written:
        data = file.read_bytes()
        heard.add((gzip.decompress(data) if file.suffix == ".gz" else data).decode(errors="replace"))
        if file.name == "report.html":
            packed = data.decode().split('id="data">')[1].split("<")[0]
            heard.add(json.dumps(unpack(packed), ensure_ascii=False))
    for secret in secrets:
        assert len(secret.strip()) > 8
        assert not [text[:200] for text in heard if secret.strip() in text]
