"""tc, ip, ping and unshare of a simulated host: nodefall's queueing discipline, and its effect on packets."""

from __future__ import annotations

import json

from chaos.faults.readings.interfaces import netem_support
from chaos.lab.node.network import Impairment
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
    code, out, _ = host.run(str(netem_support.command), netem_support.command.stdin)
    assert netem_support.parse(out, code) == ["netem", "normal", "tbf", "ingress"]
    assert host.run("tc -j qdisc show") == before
    assert host.run("ip -j link show")[1].count("ifname") == 2


IFB = "ip link add nodefall0 type ifb && ip link set nodefall0 up && tc -batch -"
HIT = "action mirred egress redirect dev nodefall0"
INBOUND = f"""qdisc add dev nodefall0 root handle 4e10: netem limit 100000 loss 50%
qdisc add dev eth0 ingress
filter add dev eth0 parent ffff: protocol ip pref 20047 flower ip_proto tcp src_ip 10.9.9.9/32 dst_port 22 action pass
filter add dev eth0 parent ffff: protocol ip pref 20048 flower src_ip {SERVER}/32 {HIT}
"""
UNDO = "tc filter del dev eth0 ingress protocol ip pref 20047 && tc qdisc del dev eth0 ingress; ip link del nodefall0"


def test_inbound_packets_are_lost_until_the_device_is_deleted() -> None:
    host = Host()
    before = host.run("tc -j qdisc show")
    assert host.run(IFB, INBOUND) == (0, "", "")
    assert host.machine.network.impairments() == {}
    assert host.machine.network.inbound_impairments() == {"ipv4": Impairment(loss=0.5)}
    assert [row["kind"] for row in json.loads(host.run("tc -j qdisc show")[1])] == ["pfifo_fast", "ingress", "netem"]
    received = int(ping(host, SERVER, 400)[1].split(" packets transmitted, ")[1].split()[0])
    assert 140 < received < 260
    assert host.run(IFB, INBOUND)[0] == 2
    assert host.run(UNDO) == (0, "", "")
    assert host.machine.network.inbound_impairments() == {}
    assert host.run("tc -j qdisc show") == before
    assert host.run(UNDO)[0] == 1


def test_an_ingress_without_filters_of_nodefall_stays() -> None:
    host = Host()
    assert host.run("ip link add nodefall0 type ifb && tc qdisc add dev eth0 ingress") == (0, "", "")
    host.run(UNDO)
    assert [row["kind"] for row in json.loads(host.run("tc -j qdisc show")[1])] == ["pfifo_fast", "ingress"]


def test_changed_and_doubled_pings() -> None:
    host = Host()
    load(host, "corrupt 40%")
    code, out = ping(host, SERVER, 400)
    assert (code, 200 < int(out.split(" packets transmitted, ")[1].split()[0]) < 300) == (0, True)
    assert json.loads(host.run("tc -s -j qdisc show")[1])[1]["drops"] == 0
    host.run(f"{DELETE}4e0f:")
    load(host, "duplicate 40%")
    assert 120 < int(ping(host, SERVER, 400)[1].split("+")[1].split()[0]) < 200


def test_a_burst_takes_as_long_as_the_rate_lets_it() -> None:
    host = Host()
    root = NETEM.replace("netem limit 100000 ", "tbf rate 1000000bit burst 6000 limit 50000")
    assert host.run("tc -batch -", f"{ROOT}{root}\n{FILTER}") == (0, "", "")
    out = host.run(f"ping -n -q -l 25 -c 25 -s 1400 -S 200000 -W 10 {SERVER}")[1]
    assert 288 < float(out.split("= ")[1].split("/")[2]) < 290
    assert host.machine.network.impairments() == {"ipv4": Impairment(rate=1e6)}


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
