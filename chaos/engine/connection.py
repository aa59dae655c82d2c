"""An open connection to a cluster, and the identity of the cluster, its hosts and this machine."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chaos.core.errors import Exit, NodefallError, Refused, UsageError
from chaos.core.ports import Clock

if TYPE_CHECKING:
    from chaos.cluster.api import ClusterApi
    from chaos.core.inventory import Inventory
    from chaos.machines.pod.helpers import HelperPods
    from chaos.machines.pool import Hosts

POD, OPENSSH = "pod", "openssh"  # the transports that a lab can have instead of paramiko's
MACHINE_ID = Path("/etc/machine-id")


class ClusterClock(Clock, Protocol):
    """The clock of a cluster; a lab's clock is simulated."""

    def participant(self) -> AbstractContextManager[None]:
        """Stop simulated time inside the block while the calling thread is not sleeping."""


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """An open connection to a cluster. ``lab_pid``: the process of the lab that was started for it.

    ``helpers``: the pods that transport pod creates; they are removed when the connection is closed.
    """

    inventory: Inventory
    clock: ClusterClock
    kube: ClusterApi
    hosts: Hosts
    uid: str
    version: str
    lab_pid: int | None = None
    helpers: HelperPods | None = None

    def label_helpers(self, run: str) -> None:
        """Label the pods that are created from now on with the ID of the run, so that its undo finds them."""
        if self.helpers:
            self.helpers.run = run


def cluster_identity(connection: ClusterConnection) -> str:
    """The identity of the cluster: its UID, however its address is written.

    Labs with the same seed share a UID, but each lab has its own certificate authority.
    """
    cluster = connection.inventory.cluster
    lab = f"-{connection.kube.ca_digest[:16]}" if cluster and cluster.simulated else ""
    return f"{connection.uid}{lab}"


def lock_namespace(connection: ClusterConnection) -> str:
    """The namespace of the lock's Lease and of the journals of runs. Raises UsageError."""
    if connection.inventory.cluster is None:
        raise UsageError("the inventory has no cluster")
    return connection.inventory.cluster.namespace


@contextmanager
def refuse_before_side_effects() -> Iterator[None]:
    """Turn inconclusive errors into Refused: in this block nothing has had a side effect yet."""
    try:
        yield
    except NodefallError as error:
        if error.code is not Exit.INCONCLUSIVE:
            raise
        raise Refused(error.message, hint=error.hint) from error


def login() -> str:
    """The login user of this machine; the numeric user ID if it has no name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def local_machine_id() -> str:
    """The machine-id(5) of the machine that nodefall runs on, "" if it has none."""
    try:
        return MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
