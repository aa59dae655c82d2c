"""Random expectations about a recording: of what it has, with bounds around the moments at which something changed."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.oracle.parameters import Parameters
from tests.oracle.question import Case, UndecidedError, seconds
from tests.oracle.readings import SHARES
from tests.oracle.world import Obj, World, get

NEAR = (-5.0, -2.0, -0.7, -0.2, -0.03, 0.03, 0.2, 0.7, 2.0, 5.0)
UNKNOWN = ("patch", "heal")  # what other tools recorded
HAPPENINGS = {
    "event",
    "endpoint-available",
    "pods-started",
    "eviction-refused",
    "node-rebooted",
    "grace-respected",
    "termination-order",
}
KINDS_OF = {
    "node": ("nodes",),
    "lease": ("leases", "nodes"),
    "event": ("events",),
    "pods": ("pods",),
    "workload": ("deployments", "statefulsets", "daemonsets"),
    "volume": ("volumeattachments",),
    "budget": ("pods", "poddisruptionbudgets"),
}


class Generator(Parameters):
    """Draws expectations from what a recording has."""

    def __init__(self, world: World, namespace: str, seed: int, without: tuple[str, ...] = ()) -> None:
        self.world, self.namespace, self.random = world, namespace, Random(seed)  # noqa: S311
        self.steps = [s for s in world.steps.values() if s.sent and s.action not in (*UNKNOWN, *without)]
        self.steps = [s for s in self.steps if s.name not in without]
        self.steps.sort(key=lambda s: s.sent)
        self.names = sorted({v.obj["metadata"]["name"] for v in world.sequence("nodes")})
        self.targets = self._targets()
        self.case = Case(world, self.targets, namespace, self.steps[0].name if self.steps else "")
        self._moments: dict[tuple[str, ...], list[float]] = {}

    def _targets(self) -> dict[str, list[str]]:
        targets: dict[str, list[str]] = {}
        for step in self.steps:
            nodes = [n for n in dict.fromkeys(step.nodes) if n]
            if nodes and nodes not in targets.values():
                targets["victim" if not targets else f"more{len(targets)}"] = nodes
        others = [n for n in self.names if all(n not in nodes for nodes in targets.values())]
        if others:
            targets["other"] = [others[-1]]
        return targets

    def experiment(self, hypothesis: list[Obj], steady: list[Obj] | None = None, recovery: str | None = None) -> Obj:
        """An Experiment with the recorded steps as its method."""
        begin = min(self.steps[0].sent)
        method: list[Obj] = []
        for step in self.steps:
            entry: Obj = {"name": step.name, "action": step.action}
            nodes = [n for n in dict.fromkeys(step.nodes) if n]
            if nodes:
                entry["target"] = next(t for t, names in self.targets.items() if names == nodes)
            params = {k: v for k, v in step.params.items() if v not in (None, [], "", {}, "outside")}
            if params:
                entry["with"] = params
            if method:
                entry["after"] = f"{self.steps[0].name} + {min(step.sent) - begin:.3f}s"
            method.append(entry)
        spec: Obj = {
            "title": "oracle",
            "targets": {t: {"nodes": n, "count": len(n)} for t, n in self.targets.items()},
            "allow": ["irreversible", "custom"],
            "steadyState": steady or [{"assert": "nodes-ready", "with": {"not-ready-at-most": 99}}],
            "method": method,
            "hypothesis": hypothesis,
            "probes": [{"name": "shop", "http": "https://shop.example/healthz", "every": "1s", "timeout": "2s"}],
            "maxDuration": "60m",
        }
        if recovery:
            spec["recovery"] = {"within": recovery}
        return {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Experiment",
            "metadata": {"name": "oracle"},
            "spec": spec,
        }

    def hypotheses(self, number: int) -> list[Obj]:
        """So many expectations; one in thirty is an order of two others."""
        found: list[Obj] = []
        while len(found) < number:
            name = f"h{len(found)}"
            whole = [h["name"] for h in found if "within" in h and "for" not in h]
            if len(whole) > 2 and self.random.random() < 1 / 30:
                found.append({"name": name, "order": self.random.sample(whole, 2)})
                continue
            if drawn := self._expectation():
                found.append({"name": name, **drawn})
        return found

    def statement(self, name: str) -> Obj:
        """A statement about one state, as a steady state has them."""
        while True:
            _, (assertion, params) = self.random.choice(self._makers())()
            own = params and not {"at", "since", "rate", "order"} & params.keys() and not params.get("increase")
            if own and assertion not in HAPPENINGS:
                return {"name": name, "assert": assertion, "with": params}

    def _expectation(self) -> Obj | None:
        about, (assertion, params) = self.random.choice(self._makers())()
        if params is None:
            return None
        after = self._after()
        try:
            moment = self.case.moment(after)
        except UndecidedError:
            return None
        drawn: Obj = {"assert": assertion, "with": params, "after": after}
        kind = self.random.random()
        bound = self._bound(about, moment.hi)
        if set(SHARES) & params.keys():  # judged over the whole time
            return drawn | {"always": {"for": f"{seconds(params['over']) + self.random.choice((0, 0, 10.5)):.3f}s"}}
        if kind < 0.4:
            drawn["within"] = bound
            if self.random.random() < 0.3:
                drawn["for"] = f"{self.random.choice((1, 3, 10, 30, self.random.uniform(0.1, 60))):.3f}s"
        elif kind < 0.95:
            word = self.random.choice(("never", "always"))
            later = [s for s in self.steps if min(s.sent) > moment.hi + 0.1]
            if later and self.random.random() < 0.3:
                drawn[word] = {"until": self.random.choice(later).name}
            else:
                drawn[word] = {"for": bound}
        if not {"within", "never", "always"} & drawn.keys():
            drawn["within"] = bound
        return drawn

    def _after(self) -> str:
        step = self.random.choice(self.steps)
        has_end = len(step.returned) >= len(step.sent)
        head = f"end({step.name})" if has_end and self.random.random() < 0.25 else step.name
        if self.random.random() < 0.35:
            head += f" + {self.random.uniform(0.1, self.random.choice((2.0, 20.0, 90.0))):.3f}s"
        return head

    def _bound(self, about: str, a: float) -> str:
        kinds = KINDS_OF.get(about, ("nodes", "pods"))
        if kinds not in self._moments:
            self._moments[kinds] = sorted({v.hi for v in self.world.sequence(*kinds) if not v.listed})
        later = [m for m in self._moments[kinds] if m > a]
        if later and self.random.random() < 0.8:
            seconds = self.random.choice(later) - a + self.random.choice(NEAR)
        else:
            seconds = self.random.uniform(0.5, max(1.0, self.world.end - a))
        return f"{max(0.1, seconds):.3f}s"

    def _makers(self) -> list[Any]:
        r = self.random
        makers: list[Any] = [
            lambda: ("node", ("node-condition", self._condition())),
            lambda: ("node", ("node-taint", self._taint())),
            lambda: (
                "node",
                ("nodes-ready", r.choice([{"nodes": self._node()}, {"not-ready-at-most": r.randint(0, 3)}])),
            ),
            lambda: ("lease", ("lease-fresh", self._lease())),
            lambda: ("event", ("event", self._event())),
            lambda: ("pods", ("pods-started", {"node": self._node()})),
            lambda: ("pods", ("eviction-refused", self._refused())),
            lambda: ("node", ("node-rebooted", {"node": self._node(False)})),
            lambda: ("workload", ("workload-available", self._workload())),
            lambda: ("volume", ("volume-attached", self._volume())),
            lambda: (
                "budget",
                ("budget-respected", {"namespace": self._space(), **r.choice([{}, {"by": ["eviction"]}])}),
            ),
            lambda: ("pods", ("at-most-one", {"namespace": self._space()})),
            lambda: ("pods", ("expression", self._expression())),
            lambda: ("lease", ("inhibitor-held", {"node": self._node(False), "held": r.random() < 0.6})),
            lambda: ("lease", ("metric", self._metric())),
            lambda: ("lease", ("shutdown-metrics", self._gauges())),
            lambda: ("pods", ("grace-respected", self._selection())),
            lambda: ("pods", ("termination-order", {"node": self._node(False)})),
            lambda: ("pods", ("endpoint-available", self._endpoint())),
        ]
        return makers + [lambda: ("pods", self._pods())] * 9


def probed(entries: list[Obj], seed: int) -> list[Obj]:
    """The recording with the answers of an endpoint that fails, or is slow, now and then."""
    random, found = Random(seed), list(entries)  # noqa: S311
    t, ok = entries[0]["t"] + 1, True
    while t < entries[-1]["t"]:
        ok = ok if random.random() < 0.93 else not ok
        answer = {"ok": ok, "status": 200 if ok else 503, "error": "", "seconds": random.choice((0.01, 0.02, 0.6))}
        found.append({"t": t, "kind": "probe", "type": "shop", "object": answer})
        t += 1 + random.random() / 50
    return sorted(found, key=lambda e: e["t"])


def namespace_of(world: World) -> str:
    """The namespace of the workload: what the recording says, else the one with most pods but the system's."""
    if world.meta.get("workload"):
        return str(world.meta["workload"])
    spaces = [get(v.obj, "metadata", "namespace") for v in world.sequence("pods")]
    own = [s for s in spaces if s not in ("kube-system", "default", "local-path-storage")]
    return max(sorted(set(own)), key=own.count) if own else "default"
