"""[Net.Sockets.TcpClient], [Net.Dns] and [Net.IPAddress], in the simulated network."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import partial

from chaos.lab.winshell.connections import Attempt, connect, resolve
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import Method, NetObject, ScriptError, Value, call_error, to_number, to_text

_FAMILIES = {4: "InterNetwork", 6: "InterNetworkV6"}
_NO_LIMIT = 1e9
_SILENT = (
    "A connection attempt failed because the connected party did not properly respond after a period of time, or "
    "established connection failed because connected host has failed to respond {}"
)
_REFUSED = "No connection could be made because the target machine actively refused it {}"


def _constant(text: str, _: WinProcess) -> str:
    return text


def to_address(value: Value) -> NetObject:
    """An IPAddress. Raises ScriptError."""
    try:
        address = ipaddress.ip_address(to_text(value))
    except ValueError as error:
        raise call_error("Parse", 1, "An invalid IP address was specified.", "FormatException") from error
    properties = {"AddressFamily": _FAMILIES[address.version], "IPAddressToString": str(address)}
    return NetObject("System.Net.IPAddress", properties, text=str(address))


def _host_addresses(process: WinProcess, name: Value) -> list[NetObject]:
    """Raises ScriptError."""
    addresses = resolve(process.machine, to_text(name))
    if not addresses:
        raise call_error("GetHostAddresses", 1, "No such host is known", "SocketException")
    return [to_address(address) for address in addresses]


class TcpClient:
    """A socket of one address family. The constructor without a family makes one for IPv4, as in .NET Framework."""

    def __init__(self, process: WinProcess, family: str) -> None:
        if family not in _FAMILIES.values():
            raise call_error(".ctor", 1, f"'{family}' is not a valid address family.", "ArgumentException")
        self._process, self._family = process, family
        methods: dict[str, Method] = {
            "ConnectAsync": self.connect_async,
            "BeginConnect": self.begin_connect,
            "Connect": self.connect,
            "Close": lambda: None,
            "Dispose": lambda: None,
        }
        self.object = NetObject("System.Net.Sockets.TcpClient", {"Connected": False}, methods)

    def connect_async(self, host: Value, port: Value) -> NetObject:
        """A task."""
        attempt = self._attempt("ConnectAsync", host, port)

        async def wait(milliseconds: Value = None) -> bool:
            limit = _NO_LIMIT if milliseconds is None else to_number(milliseconds) / 1000
            result = await self._finish(attempt, limit)
            if result in ("refused", "silent"):
                count = 0 if milliseconds is None else 1
                raise call_error("Wait", count, "One or more errors occurred.", "AggregateException")
            return result == "open"

        return NetObject("System.Threading.Tasks.Task", {}, {"Wait": wait})

    def begin_connect(self, host: Value, port: Value, _: Value, __: Value) -> NetObject:
        """An IAsyncResult: the wait ends with success, too, if the connection is refused."""
        attempt = self._attempt("BeginConnect", host, port)

        async def wait(milliseconds: Value, _: Value = None) -> bool:
            return await self._finish(attempt, to_number(milliseconds) / 1000) != ""

        handle = NetObject("System.Threading.WaitHandle", {}, {"WaitOne": wait})
        return NetObject("System.IAsyncResult", {"AsyncWaitHandle": handle})

    async def connect(self, host: Value, port: Value) -> None:
        """Raises ScriptError."""
        attempt = self._attempt("Connect", host, port)
        result = await self._finish(attempt, _NO_LIMIT)
        if result != "open":
            text = (_REFUSED if result == "refused" else _SILENT).format(attempt.end)
            raise call_error("Connect", 2, text, "SocketException")

    def _attempt(self, method: str, host: Value, port: Value) -> Attempt:
        addresses = resolve(self._process.machine, to_text(host))
        if not addresses:
            raise call_error(method, 2, "No such host is known", "SocketException")
        wanted = [item for item in addresses if _FAMILIES[ipaddress.ip_address(item).version] == self._family]
        if not wanted:
            text = "This protocol version is not supported."
            raise call_error(method, 2, text, "NotSupportedException")
        return Attempt(wanted[0], int(to_number(port)), self._process.host.sim.now)

    async def _finish(self, attempt: Attempt, limit: float) -> str:
        """open, refused, silent, or empty for an attempt that goes on."""
        result = await connect(self._process, attempt, limit)
        self.object.properties["Connected"] = result == "open"
        return result


def _tcp_client(process: WinProcess, *arguments: Value) -> NetObject:
    if len(arguments) > 1:
        raise ScriptError("The lab creates a TcpClient without an address.", "NotSimulated", ends=True)
    return TcpClient(process, to_text(arguments[0]) if arguments else "InterNetwork").object


PROPERTIES: dict[str, dict[str, Callable[[WinProcess], Value]]] = {
    "net.sockets.addressfamily": {name.lower(): partial(_constant, name) for name in _FAMILIES.values()},
}
METHODS: dict[str, dict[str, Callable[..., Value]]] = {
    "net.dns": {
        "gethostaddresses": _host_addresses,
        "gethostname": lambda process: process.machine.name,
    },
    "net.ipaddress": {"parse": lambda _, text: to_address(text)},
}
CONSTRUCTORS: dict[str, Callable[..., Value]] = {"net.sockets.tcpclient": _tcp_client}
