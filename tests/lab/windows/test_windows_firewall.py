"""What firewall rules of a Windows machine cut, as a program on it and its clients see it."""

from __future__ import annotations

import pytest

from tests.kit.win_host import WindowsHost

PROBE = """
$ProgressPreference = 'SilentlyContinue'
foreach ($address in '{addresses}'.Split(',')) {{
  $family = ([Net.IPAddress]$address).AddressFamily
  $client = New-Object Net.Sockets.TcpClient($family)
  try {{ $ok = $client.ConnectAsync($address, {port}).Wait({wait}) }} catch {{ $ok = $false }}
  "$address $ok"
  $client.Close()
}}
"""
ADD = "netsh.exe advfirewall firewall add rule name=nodefall-t dir={} action=block {} profile=any enable=yes"
DELETE = "netsh.exe advfirewall firewall delete rule name=nodefall-t"


def _probe(host: WindowsHost, addresses: str = "", port: int = 6443, wait: int = 3000) -> dict[str, bool]:
    """Whether a connection to each address could be made; by default to those of the API server."""
    addresses = addresses or ",".join(host.machine.network.server_addresses.values())
    code, out, err = host.powershell(PROBE.format(addresses=addresses, port=port, wait=wait))
    assert (code, err) == (0, "")
    return {line.split()[0]: line.split()[1] == "True" for line in out.splitlines()}


def test_a_probe_reaches_the_api_server_over_both_families() -> None:
    host = WindowsHost()
    before = host.sim.now
    assert _probe(host) == dict.fromkeys(host.machine.network.server_addresses.values(), True)
    assert host.sim.now - before < 0.1


@pytest.mark.parametrize(
    ("rule", "cut"),
    [
        ("remoteip=10.89.0.2 protocol=any", {"ipv4"}),
        ("remoteip=fd00:10:89::2 protocol=tcp remoteport=6443", {"ipv6"}),
        ("remoteip=10.89.0.2,fd00:10:89::/64 protocol=tcp remoteport=6000-7000", {"ipv4", "ipv6"}),
        ("remoteip=0.0.0.0-10.89.0.1,10.89.0.3-255.255.255.255 protocol=any", set()),
        ("remoteip=any protocol=udp remoteport=6443", set()),
        ("remoteip=any protocol=tcp localport=1000", set()),
    ],
)
def test_an_outbound_rule_cuts_new_and_existing_connections(rule: str, cut: set[str]) -> None:
    host = WindowsHost()
    family = host.machine.kubelet.connection_family
    assert host.run(ADD.format("out", rule)) == (0, "Ok.\r\n\r\n", "")
    before = host.sim.now
    reachable = {
        name: _probe(host, address)[address] for name, address in host.machine.network.server_addresses.items()
    }
    assert {name for name, ok in reachable.items() if not ok} == cut
    assert host.sim.now - before == pytest.approx(3.0 * len(cut), abs=0.1)
    link = host.machine.network.can_connect(family) if family else None
    assert link is (family not in cut)
    assert host.run("netsh.exe advfirewall set allprofiles state off")[0] == 0
    assert all(_probe(host).values())
    host.run("netsh.exe advfirewall set allprofiles state on")
    assert host.run(DELETE)[0] == 0
    assert all(_probe(host).values())
    assert host.run(DELETE)[0] == 1


def test_rules_outlive_a_boot() -> None:
    host = WindowsHost()
    host.run(ADD.format("out", "remoteip=any protocol=any"))
    host.machine.reset()
    host.wait(60.0)
    assert not any(_probe(host).values())


def test_a_connection_goes_through_when_the_rule_goes_in_the_meantime() -> None:
    """Windows sends SYNs after 0, 3 and 9 s."""
    host = WindowsHost()
    host.run(ADD.format("out", "remoteip=any protocol=any"))
    address = host.machine.network.server_addresses["ipv4"]
    encoded = f"$c = New-Object Net.Sockets.TcpClient; $c.ConnectAsync('{address}', 6443).Wait(12000)"
    started = host.start(f'powershell.exe -Command "{encoded}"')
    host.wait(5.0)
    host.run(DELETE)
    host.wait(3.5)
    assert not started.out
    host.wait(1.0)
    assert "".join(started.out) == "True\r\n"


@pytest.mark.parametrize(
    ("script", "out", "error"),
    [
        (
            "$c = New-Object Net.Sockets.TcpClient; $c.ConnectAsync('fd00:10:89::2', 6443).Wait(100)",
            "",
            "not supported",
        ),
        ("(New-Object Net.Sockets.TcpClient).ConnectAsync('10.89.0.2', 7).Wait(5000)", "", "One or more errors"),
        ("(New-Object Net.Sockets.TcpClient).ConnectAsync('10.89.0.2', 7).Wait(500)", "False\r\n", ""),
        ("(New-Object Net.Sockets.TcpClient).ConnectAsync('192.0.2.1', 443).Wait(9000)", "False\r\n", ""),
        ("(New-Object Net.Sockets.TcpClient).ConnectAsync('192.0.2.1', 443).Wait(30000)", "", "One or more errors"),
        ("(New-Object Net.Sockets.TcpClient).Connect('192.0.2.1', 443)", "", "failed to respond 192.0.2.1:443"),
        ("(New-Object Net.Sockets.TcpClient).ConnectAsync('nope', 443)", "", "No such host"),
        ("$c = New-Object Net.Sockets.TcpClient; $c.Connect('cp', 6443); $c.Connected", "True\r\n", ""),
        (
            "(New-Object Net.Sockets.TcpClient).BeginConnect('cp', 6443, $null, $null).AsyncWaitHandle.WaitOne(9)",
            "True\r\n",
            "",
        ),
        ("[Net.Dns]::GetHostAddresses('cp') | % { $_.IPAddressToString }", "10.89.0.2\r\nfd00:10:89::2\r\n", ""),
    ],
)
def test_sockets_of_dotnet(script: str, out: str, error: str) -> None:
    found = WindowsHost().powershell(script)
    assert (found[1], error in found[2], bool(found[2])) == (out, True, bool(error))


@pytest.mark.parametrize(
    ("rule", "peer", "port", "is_cut"),
    [
        ("remoteip=any protocol=any", "10.0.0.1", 5985, True),
        ("remoteip=any protocol=tcp localport=5985-5986", "10.0.0.1", 22, False),
        ("remoteip=any protocol=tcp localport=22", "10.0.0.1", 22, True),
        ("remoteip=0.0.0.0-9.255.255.255,10.0.0.2-255.255.255.255 protocol=any", "10.0.0.1", 5985, False),
        ("remoteip=::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff protocol=any", "fd00::9", 5986, True),
        ("remoteip=any protocol=tcp remoteport=6443", "10.0.0.1", 22, False),
    ],
)
def test_an_inbound_rule(rule: str, peer: str, port: int, is_cut: bool) -> None:
    host = WindowsHost()
    assert host.machine.accepts(peer, port)
    host.run(ADD.format("in", rule))
    assert host.machine.accepts(peer, port) is not is_cut
    assert all(_probe(host).values())  # the kubelet opens its connections itself
    host.run("netsh.exe advfirewall set currentprofile state off")
    assert host.machine.accepts(peer, port)


def test_an_inbound_rule_closes_the_kubelets_port() -> None:
    host = WindowsHost()
    host.run(ADD.format("in", "remoteip=10.89.0.2,fd00:10:89::2 protocol=tcp localport=10250"))
    assert not host.machine.is_kubelet_port_open
    host.run(DELETE)
    assert host.machine.is_kubelet_port_open


def test_verbose_rows_and_the_state_of_the_profiles() -> None:
    host = WindowsHost()
    host.run(ADD.format("out", "remoteip=10.89.0.2,fd00::/8 protocol=any"))
    out = host.run("netsh.exe advfirewall firewall show rule name=nodefall-t verbose")[1]
    rows = {line[:38].strip(): line[38:] for line in out.split("\r\n")}
    assert (rows["RemoteIP:"], rows["Rule source:"]) == ("10.89.0.2/32,fd00::/8", "Local Setting")
    host.run("netsh.exe advfirewall set publicprofile state off")
    states = [line.split() for line in host.run("netsh.exe advfirewall show allprofiles state")[1].splitlines()]
    assert [row[1] for row in states if row[:1] == ["State"]] == ["ON", "ON", "OFF"]
