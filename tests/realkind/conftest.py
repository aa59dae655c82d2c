"""One kind cluster for all tests: a given one, or one that ``nodefall kind up`` makes.

NODEFALL_KIND_INVENTORY names an inventory; NODEFALL_KIND_CLUSTER a cluster (X of X-control-plane), whose inventory is
made here, by docker or podman alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cli.kind.tools import PROVIDER, find_tools
from chaos.cli.kind.up import UpOptions, down, up
from chaos.core.errors import NodefallError
from chaos.documents.inventory import load_inventory
from chaos.machines.transports.docker import find_engine
from tests.kit.kindcluster import KindCluster, described


@pytest.fixture(scope="session")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KindCluster]:
    folder = tmp_path_factory.mktemp("kind")
    if given := os.environ.get("NODEFALL_KIND_INVENTORY"):
        yield KindCluster(load_inventory(Path(given)), folder)
        return
    if name := os.environ.get("NODEFALL_KIND_CLUSTER"):
        yield KindCluster(described(name, find_engine(os.environ.get(PROVIDER) or None), folder), folder)
        return
    try:
        tools = find_tools(os.environ)
        tools.check_engine()
    except NodefallError as missing:
        pytest.skip(f"no kind cluster: {missing.message} (or name one: NODEFALL_KIND_INVENTORY, NODEFALL_KIND_CLUSTER)")
    options = UpOptions(f"nodefall-test-{os.getpid()}", folder / "kind.yaml")
    up(options, tools, print)
    try:
        yield KindCluster(load_inventory(options.out), folder)
    finally:
        down(options, tools)


@pytest.fixture(params=["docker", "ssh"])
def transport(request: pytest.FixtureRequest, kind: KindCluster) -> str:
    """Both, where the nodes have an sshd that a key can be given to."""
    if request.param == "ssh" and (why := kind.no_ssh()):
        pytest.skip(why)
    return str(request.param)


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("ssh-keygen"):
        pytest.skip("there is no ssh-keygen")
    file = tmp_path_factory.mktemp("key") / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True, timeout=60)
    return file
