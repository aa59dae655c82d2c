"""ipconfig.exe and netstat.exe. No recording: rows that nodefall does not read are left out."""

from __future__ import annotations

from chaos.lab.windows.sockets import INTERFACE, Socket, addresses_of, list_sockets
from chaos.lab.winshell.process import WinProcess

_STATES = {"Listen": "LISTENING", "Established": "ESTABLISHED"}
_MASK = "255.255.255.0"


async def ipconfig(process: WinProcess, arguments: list[str]) -> int:
    """``ipconfig [/all]``: addresses without loopback."""
    process.line()
    process.line("Windows IP Configuration")
    process.line()
    if "/all" in [word.lower() for word in arguments]:
        process.line(f"   Host Name . . . . . . . . . . . . : {process.machine.name}")
    process.line()
    process.line(f"Ethernet adapter {INTERFACE}:")
    process.line()
    for address, family, interface, _ in addresses_of(process.machine):
        if interface == INTERFACE:
            label = "IPv4 Address. . . . . . . . . . ." if family == "ipv4" else "IPv6 Address. . . . . . . . . . ."
            process.line(f"   {label} : {address}")
            if family == "ipv4":
                process.line(f"   Subnet Mask . . . . . . . . . . . : {_MASK}")
    return 0


async def netstat(process: WinProcess, arguments: list[str]) -> int:
    """``netstat -ano [-p TCP]``: connections with PIDs; without -a those that are established."""
    letters = "".join(word[1:].lower() for word in arguments if word.startswith(("-", "/")))
    process.line()
    process.line("Active Connections")
    process.line()
    head = f"  {'Proto':<6} {'Local Address':<22} {'Foreign Address':<22} {'State':<15}"
    process.line(f"{head} PID" if "o" in letters else head)
    for socket in list_sockets(process.machine):
        if "a" in letters or socket.state == "Established":
            row = f"  {'TCP':<6} {_end(socket, 0):<22} {_end(socket, 2):<22} {_STATES[socket.state]:<15}"
            process.line(f"{row} {socket.pid}" if "o" in letters else row)
    return 0


def _end(socket: Socket, position: int) -> str:
    address, port = str(socket[position]), socket[position + 1]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
