"""Sessions of the vSphere Web Services API: one for all hosts of a vCenter Server, renewed when it expires."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from chaos.core.errors import NodefallError, Unreachable
from chaos.machines.power.cloud import READ_TIMEOUT, load_sdk, maybe_carried_out, not_carried_out

VERSION = "vim.version.version9"  # API 5.5, which has all that is used; later servers have it too
_TASK_SECONDS = 60  # of wall time; a change of power takes some seconds
_KEEP_SECONDS = 10  # for which an idle connection is used again: the server closes it some time later


@dataclass(frozen=True, slots=True)
class Sdk:
    """The modules of pyvmomi."""

    vim: Any
    vmodl: Any
    soap: Any

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Errors that mean that the API did not answer."""
        return (OSError, http.client.HTTPException, self.soap.ExpatError)

    def is_rejection(self, fault: Exception) -> bool:
        """Whether a fault shows that nothing has happened. Other faults may hide an answer of the machine's host."""
        fault_types = self.vmodl.fault
        rejections = (fault_types.SecurityError, fault_types.InvalidRequest, fault_types.NotSupported)
        return isinstance(fault, (self.vim.fault.VimFault, fault_types.ManagedObjectNotFound, *rejections))


def load_vsphere() -> Sdk:
    """Import pyvmomi. Raises Refused without the extra."""
    package = load_sdk("pyVmomi", "vsphere")
    return Sdk(package.vim, package.vmodl, load_sdk("pyVmomi.SoapAdapter", "vsphere"))


@dataclass(frozen=True, slots=True)
class Login:
    address: str
    port: int
    user: str
    password: str
    tls: ssl.SSLContext


class VsphereSession:
    """A login at one server, shared by its hosts. Thread safe."""

    def __init__(self, sdk: Sdk, login: Login) -> None:
        self._sdk, self._login = sdk, login
        self._lock = Lock()
        self._content: Any = None

    @property
    def label(self) -> str:
        return f"vSphere at {self._login.address}"

    def content(self) -> Any:
        """The ServiceContent of a session that is logged in. Raises Unreachable or Refused."""
        with self._lock:
            if self._content is None or self._is_expired(self._content):
                self._content = self._log_in()
            return self._content

    def wait(self, task: Any) -> Any:
        """Wait for the end of a task; its fault, None for success. Raises TimeoutError, or the SDK's errors."""
        query = self._sdk.vmodl.query.PropertyCollector
        collector = self.content().propertyCollector.CreatePropertyCollector()
        try:
            properties = query.PropertySpec(type=self._sdk.vim.Task, pathSet=["info.state", "info.error"])
            objects = query.ObjectSpec(obj=task)
            collector.CreateFilter(query.FilterSpec(propSet=[properties], objectSet=[objects]), False)
            return _fault_at_end(collector, query.WaitOptions(maxWaitSeconds=_TASK_SECONDS))
        finally:
            collector.Destroy()

    @contextmanager
    def calls(self, what: str, *, changes: bool = False, has_begun: bool = False) -> Iterator[None]:
        """Raises Unreachable or Refused if nothing has happened, NodefallError if it may have.

        ``has_begun``: the change was already accepted, so an error cannot mean that nothing has happened.
        """
        vmodl = self._sdk.vmodl
        try:
            yield
        except vmodl.MethodFault as fault:
            why = getattr(fault, "msg", "") or type(fault).__name__
            if self._sdk.is_rejection(fault) and not has_begun:
                is_login = isinstance(fault, self._sdk.vim.fault.InvalidLogin)
                hint = "correct user and password of power" if is_login else "check the machine in vCenter"
                raise not_carried_out(what, f"{why} ({type(fault).__name__.rpartition('.')[2]})", hint) from fault
            raise (maybe_carried_out(what, why) if changes else NodefallError(f"{what}: {why}")) from fault
        except self._sdk.failures as error:
            why = str(error) or type(error).__name__
            if changes:
                raise maybe_carried_out(what, why) from error
            raise Unreachable(f"{what}: {why}", hint="check address, port and caFile of power") from error

    def _is_expired(self, content: Any) -> bool:
        """Whether the session has expired. A vCenter Server ends sessions that were idle for 30 minutes."""
        with self.calls(f"{self.label}: reading its session failed"):
            try:
                return content.sessionManager.currentSession is None
            except self._sdk.vim.fault.NotAuthenticated:
                return True

    def _log_in(self) -> Any:
        login = self._login
        stub = self._sdk.soap.SoapStubAdapter(
            login.address,
            login.port,
            version=VERSION,
            sslContext=login.tls,
            httpConnectionTimeout=READ_TIMEOUT,
            connectionPoolTimeout=_KEEP_SECONDS,
        )
        with self.calls(f"{self.label}: logging in as {login.user} failed"):
            content = self._sdk.vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()
            content.sessionManager.Login(login.user, login.password, None)
        return content


def _fault_at_end(collector: Any, options: Any) -> Any:
    version = ""
    while update := collector.WaitForUpdatesEx(version, options):
        version = update.version
        changes = [change for found in update.filterSet for each in found.objectSet for change in each.changeSet]
        values = {change.name: change.val for change in changes}
        if values.get("info.error"):
            return values["info.error"]
        if values.get("info.state") == "success":
            return None
    raise TimeoutError(f"its task has not ended after {_TASK_SECONDS} s")
