"""Clouds for tests: what a power control of a cloud gets to know of a host, and moto's server, which plays AWS."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from chaos.core.inventory import Inventory
from chaos.machines.driver import HostContext
from chaos.machines.local import SecretContext
from chaos.machines.sessions.settings import LocalUser
from tests.kit.bmcs import within
from tests.kit.processes import free_port

_AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


def host_context(
    power: Mapping[str, Any], provider_id: str = "", *, environ: Mapping[str, str] = os.environ
) -> HostContext:
    """The host n1 with this power control, whose Node has ``provider_id``."""
    inventory = Inventory.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Inventory",
            "metadata": {"name": "clouds"},
            "cluster": {"kubeconfig": "kubeconfig", "context": "c"},
            "hosts": {"n1": {"power": dict(power)}},
        }
    )
    secrets = SecretContext(environ, Path("/nowhere"))
    return HostContext(
        inventory, "n1", "n1", LocalUser("ops", Path("/")), secrets, find_provider_id=lambda: provider_id
    )


@contextmanager
def server(argv: list[str], port: int, log: Path) -> Iterator[str]:
    """URL of a server that ``argv`` starts on ``port`` of loopback."""

    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out) as process:
        try:
            within(60, lambda: _listens(port), f"{argv[2]} to listen")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def aws(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which the SDK speaks to a separate moto server."""
    port = free_port()
    code = "import sys; from moto.server import main; main(sys.argv[1:])"
    argv = [sys.executable, "-c", code, "-H", "127.0.0.1", "-p", str(port)]
    read_once = cache(JSONFileLoader().load_file)  # each session would read megabytes of models again
    with server(argv, port, folder / "moto.log") as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: read_once(path))
        yield _AWS | {
            "AWS_ENDPOINT_URL": url,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }


def forget(environ: Mapping[str, str]) -> None:
    """Empty the moto server."""
    url = f"{environ['AWS_ENDPOINT_URL']}/moto-api/reset"
    urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=20).close()  # noqa: S310
