"""Cmdlets of NetTCPIP and NetSecurity."""

from __future__ import annotations

from chaos.lab.windows.firewall import ACTIVE_PROFILE
from chaos.lab.windows.sockets import INTERFACE, Socket, addresses_of, list_sockets
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.values import NetObject, ScriptError, Value, to_text

_FAMILIES = {"ipv4": "IPv4", "ipv6": "IPv6"}
_FILTERS = ("State", "LocalAddress", "LocalPort", "RemoteAddress", "RemotePort", "OwningProcess")


async def _ip_address(call: Invocation) -> list[Value]:
    """Addresses, those of loopback last."""
    wanted = call.text("AddressFamily").lower()
    rows = [
        {
            "IPAddress": address,
            "InterfaceAlias": interface,
            "AddressFamily": _FAMILIES[family],
            "PrefixLength": length,
            "AddressState": "Preferred",
        }
        for address, family, interface, length in addresses_of(call.process.machine)
        if wanted in ("", family)
    ]
    return [NetObject("MSFT_NetIPAddress", row, text=to_text(row["IPAddress"])) for row in rows]


def _row(socket: Socket) -> dict[str, Value]:
    return {
        "LocalAddress": socket.local_address,
        "LocalPort": socket.local_port,
        "RemoteAddress": socket.remote_address,
        "RemotePort": socket.remote_port,
        "State": socket.state,
        "OwningProcess": socket.pid,
    }


async def _tcp_connection(call: Invocation) -> list[Value]:
    """Connections by their properties. Raises ScriptError if none matches, as the cmdlet does."""
    wanted = {name: {to_text(value).lower() for value in call.items(name)} for name in _FILTERS if name in call.values}
    rows = [_row(socket) for socket in list_sockets(call.process.machine)]
    found = [row for row in rows if all(to_text(row[name]).lower() in values for name, values in wanted.items())]
    if not found:
        text = "No matching MSFT_NetTCPConnection objects found by CIM query for instances of the class"
        raise ScriptError(text, "CmdletizationQuery_NotFound", "ObjectNotFound: (:) [], CimJobException")
    return [NetObject("MSFT_NetTCPConnection", row) for row in found]


async def _firewall_profile(call: Invocation) -> list[Value]:
    """Profiles of either store: the lab has no policy of a group. No recording: what the active one has."""
    firewall = call.process.machine.firewall
    is_active = call.text("PolicyStore").lower() == "activestore"
    names = [to_text(name).lower() for name in call.items("Name")]
    return [
        NetObject(
            "MSFT_NetFirewallProfile",
            {"Name": name, "Enabled": is_on, "AllowLocalFirewallRules": "True" if is_active else "NotConfigured"},
            text=name,
        )
        for name, is_on in firewall.state.items()
        if not names or name.lower() in names
    ]


async def _connection_profile(_: Invocation) -> list[Value]:
    row = {"Name": "Network", "InterfaceAlias": INTERFACE, "NetworkCategory": ACTIVE_PROFILE}
    return [NetObject("MSFT_NetConnectionProfile", row)]


CMDLETS: dict[str, Cmdlet] = {
    "Get-NetIPAddress": Cmdlet(_ip_address, ("AddressFamily",), (), (), (), "NetTCPIP"),
    "Get-NetTCPConnection": Cmdlet(_tcp_connection, _FILTERS, (), (), (), "NetTCPIP"),
    "Get-NetFirewallProfile": Cmdlet(_firewall_profile, ("Name", "PolicyStore"), (), ("Name",), (), "NetSecurity"),
    "Get-NetConnectionProfile": Cmdlet(_connection_profile, (), (), (), (), "NetConnection"),
}
