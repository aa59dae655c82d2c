"""tc, ip, ping and unshare of a simulated host: nodefall's queueing discipline, and its effect on packets."""

from __future__ import annotations

import json

from chaos.facts.netem_support import FACT as SUPPORT
from chaos.lab.node.impairment import Impairment
from tests.kit.lab_host import Host

SERVER, OTHER = "10.89.0.2", "10.89.0.99"
ROOT = "qdisc add dev eth0 root handle 4e0f: prio bands 4\n"
NETEM = "qdisc add dev eth0 parent 4e0f:4 handle 4e10: netem limit 100000 "
FILTER = f"filter add dev eth0 parent 4e0f: protocol ip pref 2 flower dst_ip {SERVER}/32 classid 4e0f:4\n"
DELETE = "tc qdisc del dev eth0 root handle "


def load(host: Host, effect: str) -> None:
    assert host.run("tc -batch -", f"{ROOT}{NETEM}{effect}\n{FILTER}") == (0, "", "")


def ping(host: Host, address: str, count: int = 10) -> tuple[int, str]:
    code, out, _ = host.run(f"ping -n -q -c {count} -i 0.2 -W 2 {address}")
    return code, out


def test_packets_to_filtered_addresses_are_late_until_the_root_is_deleted() -> None:
    host = Host()
    before = host.run("tc -j qdisc show")
    load(host, "delay 200ms 20ms distribution normal")
    assert host.machine.network.impairments() == {"ipv4": Impairment(0.2, 0.02, 0.0, is_normal=True)}
    assert [row["kind"] for row in json.loads(host.run("tc -s -j qdisc show dev eth0")[1])] == ["prio", "netem"]
    mean = float(ping(host, SERVER)[1].split("= ")[1].split("/")[1])
    assert 170 < mean < 230
    assert "= 0.300/0.300/0.300" in ping(host, OTHER)[1]
    assert host.run(f"{DELETE}4e0f:") == (0, "", "")
    assert host.machine.network.impairments() == {}
    assert host.run("tc -j qdisc show") == before
    assert host.run(f"{DELETE}4e0f:") == (2, "", "Error: Invalid handle.\n")


def test_pings_are_lost_and_counted() -> None:
    host = Host()
    load(host, "loss 30%")
    received = int(ping(host, SERVER, 400)[1].split(" packets transmitted, ")[1].split()[0])
    assert 240 < received < 320
    row = json.loads(host.run("tc -s -j qdisc show")[1])[1]
    assert (row["packets"], row["drops"]) == (received, 400 - received)
    host.machine.partition(["ipv4"])
    assert ping(host, SERVER)[0] == 1


def test_a_batch_that_is_cut_off_before_its_filters_has_no_effect() -> None:
    host = Host()
    assert host.run("tc -batch -", f"{ROOT}{NETEM}loss 30%\n")[0] == 0
    assert host.machine.network.impairments() == {}


def test_a_second_root_another_handle_and_another_user_are_refused() -> None:
    host = Host()
    load(host, "loss 30%")
    code, _, err = host.run("tc -batch -", ROOT)
    assert (code, err) == (1, "Error: Exclusivity flag on, cannot modify.\nCommand failed -:1\n")
    assert host.run(f"{DELETE}1:")[0] == 2
    assert host.run(f"{DELETE}4e0f:", root=False)[0] == 2
    assert host.machine.network.impairments() != {}
    assert host.run("tc qdisc show dev eth9")[0] == 2


def test_a_trial_in_a_separate_namespace_changes_nothing() -> None:
    host = Host()
    before = host.run("tc -j qdisc show")
    code, out, _ = host.run(str(SUPPORT.command), SUPPORT.command.stdin)
    assert SUPPORT.parse(out, code) == ["uniform", "normal"]
    assert host.run("tc -j qdisc show") == before


def test_own_addresses_are_local() -> None:
    code, out, _ = Host().run("ip -j -force -batch -", f"route get {SERVER}\nroute get 10.89.0.3\n")
    rows = [json.loads(line)[0] for line in out.splitlines()]
    assert code == 0
    assert [(row["dev"], row.get("type")) for row in rows] == [("eth0", None), ("lo", "local")]


def test_a_loss_of_power_restores_the_default() -> None:
    host = Host()
    load(host, "loss 30%")
    host.machine.power_off()
    assert host.machine.network.impairments() == {}
