"""What is to be deployed: a game day with its files, and all that its pod needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.core.labels import FLEET_LABEL
from chaos.core.permission import Permission

DAY_ROOT = "/etc/nodefall"  # of the day's files in the container
HOME = "/home/nodefall"  # what ~ means there
REPORTS = "/reports"
USER = 65532  # uid and gid of the image
MAX_NAME = 52  # of a CronJob: its Jobs have eleven characters more
_PREFIX = "nodefall-"
MAX_DAY_NAME = MAX_NAME - len(_PREFIX)
_FLEET_PREFIX = "fleet-nodefall-"  # no CronJob's name begins so


@dataclass(frozen=True, slots=True)
class DayFile:
    """A file without secrets. ``path``: absolute, in the container."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A file that is a key of the Secret. ``path``: absolute, in the container."""

    path: str
    key: str


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """A port to which the pod connects."""

    number: int
    protocol: Literal["TCP", "UDP"] = "TCP"


@dataclass(frozen=True, slots=True)
class Storage:
    """The volume of the reports. ``s3``: bucket and prefix to which they are copied, "" for none."""

    size: str = "1Gi"
    class_name: str = ""
    s3: str = ""


@dataclass(frozen=True, slots=True)
class NodePreferences:
    """Where the pod runs: never on the nodes ``never``, rather not on nodes with a label of ``rather_not``.

    ``rather_not``: pairs of key and value. ``protected``: nodes that are never targets. ``control_planes``: whether
    control planes are never targets.
    """

    never: tuple[str, ...] = ()
    rather_not: tuple[tuple[str, str], ...] = ()
    protected: tuple[str, ...] = ()
    control_planes: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """A game day to deploy. ``gameday`` and ``inventory`` are paths in the container.

    ``cron``: five fields as Kubernetes reads them, "" for a day without a schedule, which is begun by hand.
    ``deadline``: how late a Job may begin, in seconds.
    ``secret``: the name of the Secret with ``secret_env`` and ``secret_files``.
    ``fleet``: the name of the fleet that runs the day, "" for a CronJob; neither touches the other's objects.
    ``report_url``: where people find the reports, "" for messages without links.
    """

    day: str
    namespace: str
    image: str
    gameday: str
    inventory: str
    files: tuple[DayFile, ...]
    permissions: tuple[Permission, ...]
    cron: str = ""
    zone: str = "UTC"
    deadline: int = 600
    secret: str = ""
    secret_env: tuple[str, ...] = ()
    secret_files: tuple[SecretFile, ...] = ()
    ports: tuple[Port, ...] = ()
    preferences: NodePreferences = NodePreferences()
    storage: Storage = Storage()
    fleet: str = ""
    report_url: str = ""

    @property
    def name(self) -> str:
        """Of every object."""
        return f"{_FLEET_PREFIX}{self.fleet}" if self.fleet else f"{_PREFIX}{self.day}"

    def run_arguments(self, *day: str) -> list[str]:
        """Of nodefall; ``day``: those that select the day."""
        url = ("--report-url", self.report_url.replace("$", "$$")) if self.report_url else ()  # $(...) is a variable
        given = ("gameday", "run", self.gameday, "--inventory", self.inventory, "--reports", REPORTS)
        return [*given, *day, *url, "--yes", "--plain"]

    @property
    def labels(self) -> dict[str, str]:
        """Of every object, and by which its pods are selected."""
        fleet = {FLEET_LABEL: self.fleet} if self.fleet else {}
        return {"app.kubernetes.io/name": "nodefall", "app.kubernetes.io/instance": self.day, **fleet}
