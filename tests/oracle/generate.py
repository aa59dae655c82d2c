"""Random expectations about a recording: of what it has, with bounds around the moments at which something changed."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random
from typing import Any

from tests.oracle.expressions import EXPRESSIONS
from tests.oracle.pods import PRESETS, controller
from tests.oracle.question import Case, UndecidedError
from tests.oracle.world import Obj, World, get

NEAR = (-5.0, -2.0, -0.7, -0.2, -0.03, 0.03, 0.2, 0.7, 2.0, 5.0)
UNKNOWN = ("patch", "heal")  # what other tools recorded
HAPPENINGS = {"event", "pods-started", "eviction-refused", "node-rebooted", "grace-respected", "termination-order"}
KINDS_OF = {
    "node": ("nodes",),
    "lease": ("leases", "nodes"),
    "event": ("events",),
    "pods": ("pods",),
    "workload": ("deployments", "statefulsets", "daemonsets"),
    "volume": ("volumeattachments",),
    "budget": ("pods", "poddisruptionbudgets"),
}


class Generator:
    """Draws expectations from what a recording has."""

    def __init__(self, world: World, namespace: str, seed: int, without: tuple[str, ...] = ()) -> None:
        self.world, self.namespace, self.random = world, namespace, Random(seed)
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
        method = []
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
            lambda: ("workload", ("workload-available", {"namespace": self._space()})),
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
            lambda: ("pods", ("endpoint-available", None)),
        ]
        return makers + [lambda: ("pods", self._pods())] * 9

    def _node(self, wide: bool = True) -> str:
        names = [*self.targets, *self.targets]
        if wide:
            names += ["all", *(["other"] if "other" in self.targets else [])]
        return self.random.choice(names)

    def _space(self) -> str:
        spaces = {get(v.obj, "metadata", "namespace") for v in self.world.sequence("pods")}
        return self.random.choice(["workload", "workload", *sorted(spaces)])

    def _condition(self) -> Obj:
        node = self.random.choice(self.world.sequence("nodes")).obj
        conditions = get(node, "status", "conditions") or [{"type": "Ready", "status": "True"}]
        ready = [c for c in conditions if c["type"] == "Ready"]
        c = self.random.choice(ready * 6 + conditions)
        params = {
            "node": self._node(),
            "type": c["type"],
            "status": self.random.choice([c["status"]] * 3 + ["Unknown"]),
        }
        if c.get("reason") and self.random.random() < 0.2:
            params["reason"] = c["reason"]
        return params

    def _taint(self) -> Obj | None:
        taints = [t for v in self.world.sequence("nodes") for t in get(v.obj, "spec", "taints") or ()]
        if not taints:
            return None
        t = self.random.choice(taints)
        params = {"node": self._node(), "key": t["key"], "present": self.random.random() < 0.6}
        if self.random.random() < 0.5:
            params["effect"] = t["effect"]
        return params

    def _lease(self) -> Obj:
        params: Obj = {"node": self._node(), "fresh": self.random.random() < 0.5}
        if self.random.random() < 0.7:
            params["at-most"] = f"{self.random.choice((5, 12, 20, 40, 41.5))}s"
        return params

    def _event(self) -> Obj | None:
        events = [v for v in self.world.sequence("events") if not v.listed]
        if not events:
            return None
        obj = self.random.choice(events).obj
        about = obj.get("involvedObject") or {}
        params: Obj = {"reason": obj.get("reason")}
        if about.get("kind") == "Node" and self.random.random() < 0.7:
            params["node"] = self._node() if self.random.random() < 0.5 else about["name"]
            if params["node"] not in (*self.targets, "all"):
                params.pop("node")
                params |= {"kind": "Node", "name": about["name"]}
        elif self.random.random() < 0.4:
            params |= {"kind": about.get("kind"), "name": about.get("name")}
        if self.random.random() < 0.3:
            params["component"] = obj.get("reportingComponent") or get(obj, "source", "component")
        if self.random.random() < 0.3:
            params["least"] = self.random.randint(0, 3)
        if self.random.random() < 0.3:
            params["most"] = params.get("least", 1) + self.random.randint(0, 4)
        return {k: v for k, v in params.items() if v not in (None, "")}

    def _refused(self) -> Obj | None:
        if not any(s.action in ("drain", "evict-pod") for s in self.steps):
            return None
        return {"status": 429, **self.random.choice([{}, {"node": "victim"}, {"namespace": "workload"}])}

    def _volume(self) -> Obj | None:
        volumes = [v.obj for v in self.world.sequence("volumeattachments")]
        if not volumes:
            return None
        name = get(self.random.choice(volumes), "spec", "source", "persistentVolumeName")
        drawn = self.random.choice([{"node": self._node(False)}, {"volume": name}, {"node": "victim", "volume": name}])
        return {"attached": self.random.random() < 0.5, **drawn}

    def _expression(self) -> Obj | None:
        if not find_spec("celpy"):
            return None
        text = self.random.choice(list(EXPRESSIONS)).replace("{}", str(self.random.randint(0, 12)))
        return {"expression": text, "namespace": "workload"}

    def _metric(self) -> Obj | None:
        lines = [str(m) for e in self.world.entries if e["kind"] == "metrics" for m in e["object"]]
        lines = [line for line in lines if float(line.rpartition(" ")[2]) < 1e9]  # times move with clocks
        if not lines:
            return None
        name, _, value = self.random.choice(lines[:50] + lines[-50:]).rpartition(" ")
        params: Obj = {"node": "victim", "name": name, self.random.choice(("at-least", "at-most")): float(value)}
        return {**params, "increase": self.random.random() < 0.3 and "time" not in name}

    def _gauges(self) -> Obj:
        drawn = self.random.choice(
            [{"started": True}, {"started": False}, {"ended": True}, {"duration-at-most": "20s"}]
        )
        since = self.random.choice([{}, {"since": self.random.choice(self.steps).name}])
        return {"node": "victim", **drawn, **since}

    def _selection(self) -> Obj:
        r, params = self.random, Obj()
        pod = r.choice(self.world.sequence("pods")).obj
        meta, owner = pod["metadata"], controller(pod)
        if r.random() < 0.6:
            params["node"] = self._node()
        if r.random() < 0.6:
            same = meta.get("namespace") == self.namespace
            params["namespace"] = "workload" if same else meta.get("namespace")
        if r.random() < 0.3 and meta.get("labels"):
            params["labels"] = dict([r.choice(sorted(meta["labels"].items()))])
        if r.random() < 0.25 and owner.get("kind") in ("StatefulSet", "DaemonSet"):
            params["owner"] = {"kind": owner["kind"], "name": owner["name"]}
        if r.random() < 0.6:
            params["except"] = r.sample(["daemonset", "finished", "static", "terminating"], r.randint(1, 3))
        if r.random() < 0.3:
            params["at"] = r.choice(self.steps).name
        return params or {"node": "victim"}

    def _pods(self) -> tuple[str, Obj]:
        r, params = self.random, self._selection()
        if r.random() < 0.25:
            return r.choice(sorted(PRESETS)), params
        question = r.choice(("each", "any", "none", "count", "count", "each", "rate", "order"))
        wanted = self._filter()
        if question in ("rate", "order"):
            params.pop("at", None)
        if question == "rate":
            over = r.choice((2, 5, 10, 30))
            wanted |= {
                r.choice(("at-most", "at-most", "at-least")): f"{r.randint(1, 5) * 60 // over}/m",
                "over": f"{over}s",
            }
        elif question == "order":
            wanted |= {
                "by": r.choice(("ordinal", "priority")),
                "descending": r.random() < 0.5,
                "least": r.randint(2, 3),
            }
            if wanted["by"] == "ordinal":
                params["owner"] = self._stateful() or {"kind": "StatefulSet", "name": "db"}
        elif question == "count":
            if wanted.get("gone") and "at" not in params:
                wanted = {"deleting": True}
            least = r.randint(0, 8)
            wanted |= r.choice([{"least": least}, {"most": least}, {"least": least, "most": least + r.randint(0, 3)}])
        if question in ("each", "any", "none", "count") and r.random() < 0.2:
            if question != "count" or params.get("at"):
                replaced = r.choice(
                    [{}, {"node": "other"}, {"node": "same"}, {"ready": False}, {"node": "other", "ready": True}]
                )
                wanted = {"replaced": replaced, **{k: v for k, v in wanted.items() if k in ("least", "most")}}
        return "pods", {**params, question: wanted}

    def _stateful(self) -> Obj | None:
        owners = [controller(v.obj) for v in self.world.sequence("pods")]
        sets = sorted({o["name"] for o in owners if o.get("kind") == "StatefulSet"})
        return {"kind": "StatefulSet", "name": self.random.choice(sets)} if sets else None

    def _filter(self) -> Obj:
        r = self.random
        pod = r.choice(self.world.sequence("pods")[-200:]).obj
        reasons = [c.get("reason") for c in get(pod, "status", "conditions") or () if c["type"] == "DisruptionTarget"]
        choices: list[Obj] = [
            {"phase": get(pod, "status", "phase") or "Running"},
            {"phase": r.choice([["Succeeded", "Failed"], ["Running", "Pending"], "Running"])},
            {"ready": r.random() < 0.5},
            {"ready": False},
            {"deleting": r.random() < 0.5},
            {"gone": r.random() < 0.5},
            {"disruption": r.choice(["any", "none", *(x for x in reasons if x)])},
            {"restarts-at-least": r.randint(0, 2)},
            {"restarts-at-most": r.randint(0, 2)},
            {"scheduled": r.random() < 0.5},
            {"exit-code": r.choice((0, 137, 143))},
            {"waiting": r.choice(("ContainerCreating", "CrashLoopBackOff"))},
        ]
        if get(pod, "status", "reason"):
            choices += [{"reason": get(pod, "status", "reason")}] * 3
        found: Obj = {}
        for each in r.sample(choices, r.choice((1, 1, 2))):
            found |= each
        return found


def namespace_of(world: World) -> str:
    """The namespace of the workload: what the recording says, else the one with most pods but the system's."""
    if world.meta.get("workload"):
        return str(world.meta["workload"])
    spaces = [get(v.obj, "metadata", "namespace") for v in world.sequence("pods")]
    own = [s for s in spaces if s not in ("kube-system", "default", "local-path-storage")]
    return max(sorted(set(own)), key=own.count) if own else "default"
