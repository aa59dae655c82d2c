"""Random parameters of assertions, of what a recording has."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random

from tests.oracle.expressions import EXPRESSIONS
from tests.oracle.pods import PRESETS
from tests.oracle.podsets import controller
from tests.oracle.world import Obj, Step, World, get


class Parameters:
    """Draws the parameters of each assertion."""

    world: World
    namespace: str
    random: Random
    steps: list[Step]
    targets: dict[str, list[str]]

    def _node(self, wide: bool = True) -> str:
        names = [*self.targets, *self.targets]
        if wide:
            names += ["all", *(["other"] if "other" in self.targets else [])]
        return self.random.choice(names)

    def _space(self) -> str:
        spaces = {get(v.obj, "metadata", "namespace") for v in self.world.sequence("pods")}
        return str(self.random.choice(["workload", "workload", *sorted(spaces)]))

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

    def _workload(self) -> Obj:
        params: Obj = {"namespace": self._space()}
        of_space = {"workload": self.namespace}.get(params["namespace"], params["namespace"])
        sets = [v.obj["metadata"] for v in self.world.sequence("statefulsets")]
        names = sorted({m["name"] for m in sets if m.get("namespace") == of_space})
        if names and self.random.random() < 0.4:
            params["owner"] = f"StatefulSet/{self.random.choice(names)}"
        if self.random.random() < 0.4:
            params["unavailable-at-most"] = self.random.choice([1, 2, "25%", "50%"])
        return params

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

    def _endpoint(self) -> Obj:
        if self.random.random() < 0.3:
            shares = [
                {"success-at-least": "90%"},
                {"p95-below": "400ms"},
                {"p50-below": "50ms"},
                {"p90-below": "400ms"},
            ]
            over = f"{self.random.choice((30, 60, 120))}s"
            return {"probe": "shop", "over": over, **self.random.choice(shares), **self.random.choice([{}, shares[2]])}
        budget = self.random.choice([{}, {"budget": "2.5s"}, {"budget": "7s"}, {"budget": "10%", "over": "60s"}])
        return {"probe": "shop", **budget, **self.random.choice([{}, {"answer-within": "400ms"}])}

    def _metric(self) -> Obj | None:
        lines = [str(m) for e in self.world.entries if e["kind"] == "metrics" for m in e["object"]]
        lines = [line for line in lines if float(line.rpartition(" ")[2]) < 1e9]  # times move with clocks
        if not lines:
            return None
        name, _, value = self.random.choice(lines[:50] + lines[-50:]).rpartition(" ")
        params: Obj = {"node": "victim", "name": name, self.random.choice(("at-least", "at-most")): float(value)}
        return {**params, "increase": self.random.random() < 0.3 and "time" not in name}

    def _gauges(self) -> Obj:
        drawn: Obj = {self.random.choice(("started", "ended", "started")): self.random.random() < 0.7}
        if self.random.random() < 0.2:
            drawn = {"duration-at-most": "20s"}
        if self.random.random() < 0.5:
            drawn["since"] = self.random.choice(self.steps).name
        return {"node": "victim", **drawn}

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
            alias = r.choice(sorted(PRESETS))
            return alias, params | ({"not-on": self._node(False)} if r.random() < 0.3 else {})
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
        of_set = question in ("each", "any", "none") or (question == "count" and "at" in params)
        if of_set and r.random() < 0.2:
            replaced = r.choice([{}, {"node": "other"}, {"node": "same"}, {"ready": False}])
            wanted = {"replaced": replaced, **{k: v for k, v in wanted.items() if k in ("least", "most")}}
        if question not in ("rate", "order") and r.random() < 0.15:
            params["not-on"] = self._node(False)
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
