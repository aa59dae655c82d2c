"""Write docs/actions/ (a page per action), the table in docs/actions.md, the number of actions in README.md, and the
index of the modules of chaos/faults/actions, from the code of the actions.

Run `python tools/action_pages.py` after a change of an action; a test compares.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import chaos.faults.actions.windows
import chaos.faults.readings.windows
from chaos.cli.reference.explain import lookup, parameter_details
from chaos.core.action import Action, AnyAction, Scope, Target, Undo, UndoKind, UndoStep
from chaos.core.api_fact import pods_path
from chaos.core.command import Command, HostCommand, KubeCommand
from chaos.core.fact import FactRef, HostFact
from chaos.core.registry import discover
from chaos.faults.actions import index
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, POWERS_OFF

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Written by tools/action_pages.py from the action's code. -->"
INDEX = Path(chaos.faults.actions.__file__).parent / "index.py"
README = Path(__file__).parents[1] / "README.md"
ACTIONS: dict[str, AnyAction] = discover(chaos.faults.actions, Action)
WINDOWS_ACTIONS: dict[str, AnyAction] = discover(chaos.faults.actions.windows, Action)
OWN_FACTS: dict[str, HostFact] = discover(chaos.faults.actions, HostFact)
FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact) | OWN_FACTS
WINDOWS_FACTS: dict[str, HostFact] = discover(chaos.faults.readings.windows, HostFact)
GIB = 1 << 30
NODE: dict[str, Any] = {
    "metadata": {"name": "worker-1", "uid": "UID", "resourceVersion": "1", "labels": {}, "annotations": {}},
    "spec": {"podCIDRs": ["10.244.1.0/24"]},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}], "allocatable": {"cpu": "4"}},
}
POD: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "default",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "RS", "controller": True}
        ],
    },
    "spec": {"priority": 0, "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
    "status": {"phase": "Running"},
}
# A node on which every action is possible.
SAMPLE_FACTS: dict[str, Any] = {
    "api-peers": [["10.0.0.1", 6443]],
    "api-reachable": {"ipv4": True, "ipv6": True},
    "boot-posted": True,
    "bus-processes": {"bus": 310, "logind": 305, "bus-unit": "dbus.service"},
    "cgroup-version": 2,
    "clock-skew": 0,
    str(FactRef("command-exit", {"argv": "systemctl is-active --quiet cron.service"})): 0,
    "configz": {"evictionHard": {"memory.available": "200Mi", "nodefs.available": "10%", "pid.available": "2000"}},
    "cpu-time": {"cpus": 4, "busy": 812.4, "idle": 9020.1, "filler": 0.0},
    str(FactRef("disk-limits", {"unit": "kubepods.slice", "path": "/var/lib/kubelet"})): {
        "active": True,
        "io": True,
        "disk": "/dev/vda",
        "number": "254:0",
        "limits": {},
        "runtime": False,
        "stale": False,
    },
    "disk": {"root": "/var/lib/kubelet", "total": 100 * GIB, "available": 60 * GIB, "mount": "/"},
    "etcd-manifest": {"sha256": "9f2c" * 16, "mounted": False},
    "etcd-members": {
        "member": "worker-1",
        "leader": "worker-1",
        "voters": ["worker-1", "worker-2", "worker-3"],
        "healthy": ["worker-1", "worker-2", "worker-3"],
    },
    "inhibitor-kubelet": True,
    "kubelet-client-certificate": {
        "target": "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem",
        "mode": "600",
        "owner": "0:0",
        "sha256": "9f2c" * 16,
        "expired": False,
        "mounted": False,
        "prepared": False,
    },
    "kubelet-credentials": {
        "user": "system:node:worker-1",
        "rotated-file": True,
        "bootstrap": "",
        "renewal-in": 7776000,
    },
    str(FactRef("dns-lookup", {"name": "kubernetes.io"})): True,
    "link-kinds": {"eth0": ""},
    "link-mtus": {"lo": 65536, "eth0": 1500},
    "kubelet-cpu-quota": {"percent": None, "runtime": False, "stale": False},
    "kubelet-state": "active",
    "kubelet-unit": "kubelet.service",
    "inhibitor-holders": ["kubelet"],
    "inhibitor-units": {"kubelet": "kubelet.service"},
    "memory": {"total": 16 * GIB, "available": 12 * GIB},
    "netem": False,
    "netem-support": ["netem", "normal", "tbf", "ingress"],
    str(FactRef("mount", {"path": "/var/lib/data"})): {
        "source": "/dev/vdb1",
        "type": "ext4",
        "options": "rw,relatime",
        "whole": True,
        "with-root": False,
        "writable": True,
    },
    "nft": "1.0.6",
    "nft-rules": False,
    "panic-timeout": 10,
    "peer-routes": {"10.0.0.1": "eth0", "fd00::1": "eth0"},
    "power-key": POWERS_OFF,
    "pids": {"max": 32768, "running": 5000},
    "failsafe-timers": [],
    "black-hole-routes": [],
    "nft-early-reject": True,
    "sysctl?key=net.core.default_qdisc": "fq_codel",
    "qdiscs": {"eth0": [{"kind": "fq_codel", "handle": "0:", "root": True}]},
    "runtime-client": "/usr/bin/crictl",
    "runtime-socket": "/run/containerd/containerd.sock",
    "runtime-unit": "containerd.service",
    "scheduled-shutdown": NO_SHUTDOWN_SCHEDULED,
    "server-addresses": ["10.0.0.1", "fd00::1"],
    "shared-kernel": False,
    "ssh-peer": {"address": "10.0.9.9", "port": 22},
    "swap": 0,
    "systemd-version": 257,
    "time-sync-state": "active",
    "time-sync-unit": "chrony.service",
    **{name: fact.sample for name, fact in OWN_FACTS.items() if fact.sample is not None},
}
# A node with Windows on which every action with a Windows form is possible.
WINDOWS_SAMPLE_FACTS: dict[str, Any] = {
    **{
        name: SAMPLE_FACTS[name]
        for name in (
            *("api-peers", "api-reachable", "boot-posted", "clock-skew", "configz", "failsafe-timers"),
            *("kubelet-state", "scheduled-shutdown", "server-addresses"),
        )
    },
    "connection-peers": ["10.0.9.9"],
    "crash-auto-reboot": True,
    "firewall-rules": [],
    "firewall-state": {"Domain": "on"},
    "kubelet-dependencies": ["containerd"],
    "kubelet-unit": "kubelet",
    "runtime-unit": "containerd",
    str(FactRef("service-state", {"service": "w32time"})): "active",
}
OBJECTS: dict[str, Any] = {
    f"/api/v1/nodes/{NODE['metadata']['name']}": NODE,
    "/api/v1/nodes": {"items": [NODE]},
    pods_path(NODE["metadata"]["name"]): {"items": [POD]},
    "/apis/apps/v1/namespaces/default/deployments/web": {"spec": {"replicas": 3}},
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web": {"spec": {"minAvailable": 2}},
}
UNDO = {
    UndoKind.RESTORES: "restored by nodefall",
    UndoKind.SELF_RESTORING: "ends by itself",
    UndoKind.IRREVERSIBLE: "irreversible; needs `allow: [irreversible]`",
}


def pages() -> Mapping[Path, str]:
    """The text of every file."""
    overview = DOCS / "actions.md"
    head, _, rest = overview.read_text(encoding="utf-8").partition("\n| action")
    prose = rest.partition("\n\n")[2]
    found = {DOCS / "actions" / f"{name}.md": page(action) for name, action in ACTIONS.items()}
    readme = re.sub(r"\[\d+ actions\]", f"[{len(ACTIONS)} actions]", README.read_text(encoding="utf-8"))
    return found | {overview: f"{head}\n{table()}\n\n{prose}", README: readme, INDEX: module_index()}


def module_index() -> str:
    """Source of the index: what each module declares."""
    windows = chaos.faults.actions.windows
    parts = [
        ("ACTIONS", chaos.faults.actions, Action, "Actions by module."),
        ("WINDOWS_ACTIONS", windows, Action, "Windows forms of actions by module."),
        ("FACTS", chaos.faults.actions, HostFact, "Facts of hosts that an action declares for itself, by module."),
    ]
    lines = ['"""Names of what the modules of actions declare: so each is imported only when it is used.', ""]
    lines += ["Written by tools/action_pages.py.", '"""', ""]
    for name, package, kind, comment in parts:
        lines += [f"# {comment}", f"{name}: dict[str, tuple[str, ...]] = {{"]
        lines += [f"    {module!r}: {names!r}," for module, names in _declared(package, kind).items()]
        lines += ["}"]
    return "\n".join(lines).replace("'", '"') + "\n"


def _declared(package: ModuleType, kind: type) -> dict[str, tuple[str, ...]]:
    """Names of the plug-ins of a kind by module, without what a module has imported."""
    found: dict[str, tuple[str, ...]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        names = [getattr(value, "name", "") for value in vars(module).values() if isinstance(value, kind)]
        if names and not info.ispkg and not info.name.startswith("_"):
            found[info.name] = tuple(sorted(set(names)))
    return found


def table() -> str:
    """The table: one row per action."""
    rows = ["| action | what it does | with | hosts | undo |", "|---|---|---|---|---|"]
    for name, action in ACTIONS.items():
        keys = ", ".join(f"`{p['key']}`" for p in lookup(name)["with"])
        cells = f"[`{name}`](actions/{name}.md) | {action.summary} | {keys} | {_systems(action)}"
        rows.append(f"| {cells} | {UNDO[action.undo_kind]} |")
    return "\n".join(rows)


def _systems(action: AnyAction) -> str:
    """Operating systems of the hosts that it has a form for; "" if it needs no host."""
    windows = {"windows"} if action.name in WINDOWS_ACTIONS else set()
    return ", ".join(system.capitalize() for system in sorted(action.systems | windows)) if action.on_host else ""


def page(action: AnyAction) -> str:
    """The page of one action."""
    blocks = [NOTE, f"# {action.name}", f"{action.summary[0].upper()}{action.summary[1:]}."]
    blocks += [inspect.cleandoc(action.description)]
    blocks += ["## Example", f"```yaml\n- {action.example.strip()}\n```"]
    blocks += [
        "## Parameters",
        *_list(f"`{p['key']}`: {p['type']}{parameter_details(p)}" for p in lookup(action.name)["with"]),
    ]
    blocks += ["## Needs", *_list(_needs(action))]
    blocks += list(_operations(action))
    proofs = (
        f"{proof.name}{' (weak: shows only that the command was sent)' if proof.weak else ''}"
        for proof in action.proofs
    )
    blocks += ["## Proven by", "The first proof with a result decides.", *_list(proofs)]
    if form := WINDOWS_ACTIONS.get(action.name):
        blocks += list(_windows_form(form))
    return "\n\n".join(blocks) + "\n"


def _windows_form(form: AnyAction) -> Iterator[str]:
    """What is different on a host with Windows."""
    yield "## On Windows"
    yield inspect.cleandoc(form.description)
    yield "### Needs"
    yield from _list(_needs(form))
    yield from (f"#{block}" if block.startswith("## ") else block for block in _operations(form))
    names = [proof.name for proof in form.proofs]
    if names != [proof.name for proof in ACTIONS[form.name].proofs]:
        yield from ("### Proven by", *_list(names))


def _needs(action: AnyAction) -> Iterator[str]:
    if action.allowance:
        yield f"`allow: [{action.allowance}]` in the experiment"
    if action.scope is Scope.NODE and action.on_host:
        yield "a session on the host, as " + ("administrator" if "windows" in action.systems else "root or with sudo")
    facts = WINDOWS_FACTS if "windows" in action.systems else FACTS
    for reference in action.needs_with(_example_params(action)).facts:
        name = FactRef.parse(reference).name
        yield f"the fact `{reference}`: {facts[name].summary}" if name in facts else f"`{reference}`"
    if action.may_disconnect:
        yield "another way to observe the node: the action may break nodefall's connection to it"
    if action.exclusive_timer_reason:
        yield f"no other step on the node that arms a failsafe timer: {action.exclusive_timer_reason}"


def _example_params(action: AnyAction) -> Any:
    return action.params.model_validate(yaml.safe_load(action.example).get("with", {}))


def prepare_example(action: AnyAction) -> Any:
    """The action's state for its example on :func:`example_target`."""
    return action.prepare(*example_target(action))


def example_target(action: AnyAction) -> tuple[Target, Any]:
    """A node with the sample facts of its system and OBJECTS, or the cluster; and the parameters of the example."""
    params = _example_params(action)
    objects = {path: OBJECTS.get(path) for path in action.needs_with(params).paths(NODE["metadata"]["name"], "shop")}
    node = NODE["metadata"]["name"] if action.scope is Scope.NODE else ""
    windows = action.on_host and "windows" in action.systems
    target = Target(
        *(node, "windows" if windows else "linux", "redfish"),
        facts=WINDOWS_SAMPLE_FACTS if windows else SAMPLE_FACTS,
        objects=objects,
        crash_tool=r"C:\Tools\notmyfault64.exe" if windows else "",
        tag="run-step",
        namespace="shop",
        run="run",
    )
    return target, params


def _operations(action: AnyAction) -> Iterator[str]:
    """Commands and undo for the example."""
    program = action.program(prepare_example(action))
    yield "## Sends"
    yield "With the example's parameters" + (
        f", to a node `{NODE['metadata']['name']}`:" if action.scope is Scope.NODE else ":"
    )
    yield "```\n" + "\n".join(_format_command(command) for command in program.commands) + "\n```"
    if program.awaits:
        yield "Waits before until " + " or ".join(f"`{check}`" for check in program.awaits) + "."
    if program.preconditions:
        yield "Only if at that moment " + ", ".join(f"`{check}`" for check in program.preconditions) + "."
    if timer := program.failsafe:
        windows = "windows" in action.systems
        what = "failsafe task of the task scheduler" if windows else "failsafe timer of the host's PID 1"
        yield f"Before that, a {what} is armed, which after {timer.seconds:g} s runs:"
        yield "```\n" + (str(HostCommand(timer.argv)) if windows else shlex.join(timer.argv)) + "\n```"
    yield "## Undo"
    yield _kind(action)
    yield from _undo(program.undo)


def _format_command(command: Command) -> str:
    """The command with its stdin, or with the object that it creates."""
    if isinstance(command, KubeCommand) and command.method == "POST":
        return f"{command} {json.dumps(command.body)}"
    stdin = command.stdin if isinstance(command, HostCommand) else ""
    return f"{command}" + (f" <<'END'\n{stdin.expandtabs(4).rstrip()}\nEND" if stdin else "")


def _kind(action: AnyAction) -> str:
    if action.undo_kind is UndoKind.RESTORES and action.undo_param:
        return f"nodefall runs `{action.undo_param}`; without it the step needs `allow: [irreversible]`."
    return {
        UndoKind.RESTORES: "nodefall restores the previous state.",
        UndoKind.SELF_RESTORING: "The effect ends by itself.",
        UndoKind.IRREVERSIBLE: "Irreversible; needs `allow: [irreversible]`.",
    }[action.undo_kind]


def _undo(undo: Undo) -> Iterator[str]:
    steps = [f"`{step.command}`{_condition(step)}" for step in undo.steps]
    if steps:
        yield from _list(steps)
    if undo.proof:
        yield "Proven when " + ", ".join(f"`{check}`" for check in undo.proof) + "."


def _condition(step: UndoStep) -> str:
    when = " and ".join(f"`{check}`" for check in step.when)
    return (f", once {when}" if when else "") + (f", unless `{step.unless}`" if step.unless else "")


def _list(items: Iterator[str] | list[str]) -> list[str]:
    text = "\n".join(f"- {' '.join(item.split())}" for item in items)
    return [text or "- none"]


def main() -> None:
    """Write all pages, the index first, as the pages show what it names; remove those of actions that are gone."""
    INDEX.write_text(module_index(), encoding="utf-8")
    importlib.reload(index)
    texts = pages()
    (DOCS / "actions").mkdir(exist_ok=True)
    for old in set((DOCS / "actions").glob("*.md")) - set(texts):
        old.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
