"""Writes docs/sentences.md: the sentences of every assertion, in each of its modes and with each of the three verdicts.

Run `python tools/sentence_pages.py` after a change of an assertion; a test compares. Review the difference as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import chaos.verdicts.assertions
from chaos.core.experiment import Expectation
from chaos.core.registry import PluginRegistry, discover
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.sentences import Part, sentence

PATH = Path(__file__).parents[1] / "docs" / "sentences.md"
REGISTRY = PluginRegistry({}, discover(chaos.verdicts.assertions, "ASSERTION"))
TARGETS = {"victim": ("worker-2",), "victims": ("worker-2", "worker-3", "worker-4"), "unbound": ()}
STATUSES = (Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE)
BOUND = 40.0  # seconds, of a bound that has facts
SINCE = 12.0  # seconds after which a never or always is violated
HEAD = """\
<!-- Written by tools/sentence_pages.py from the assertions' code. -->

# Sentences for people

Besides its precise reason, every verdict has a sentence of at most 20 words that says what happened to whom, and
when. The tables show the sentences of every assertion in each of its modes. The target `victim` is worker-2. The target
`victims` is worker-2, worker-3 and worker-4, and worker-3 violates the expectation."""
# By assertion: `with`, and, if others than the default, time words and the subjects that violate it.
CASES: Mapping[str, str] = {
    "at-most-one": """
- {with: {namespace: workload, name: db}, always: {for: 2m}, violating: [demo/db-0]}
- {with: {namespace: workload}, always: {for: 2m}}
- {with: {namespace: shop}, always: true}
""",
    "budget-respected": """
- {with: {namespace: workload}, always: {for: 2m}, violating: [demo/web]}
- {with: {namespace: shop, name: web, by: [eviction]}, always: {for: 2m}}
- {with: {namespace: workload, by: [eviction, deletion, preemption]}, always: {for: 2m}}
""",
    "endpoint-available": """
- {with: {probe: shop}, always: {for: 5m}}
- {with: {probe: shop, budget: 5s}, always: {for: 5m}}
- {with: {probe: shop, budget: 1%, over: 5m, answer-within: 500ms}, always: {for: 5m}}
- {with: {probe: shop, success-at-least: 99.9%, over: 5m}, always: {for: 5m}}
- {with: {probe: shop, p50-below: 50ms, p90-below: 1s, over: 5m}, always: {for: 5m}}
- {with: {probe: shop, p95-below: 300ms, p99-below: 1s, over: 5m}, always: {for: 5m}}
""",
    "event": """
- {with: {node: victim, reason: Shutdown, component: kubelet, message: detected shutdown event}}
- {with: {kind: Pod, namespace: workload, name: web-0, reason: Killing, type: Normal}}
- {with: {kind: Pod, reason: Killing, least: 3}}
- {with: {reason: NodeNotReady, least: 0, most: 0}, always: {for: 60s}}
- {with: {node: victims, reason: Rebooted, least: 0, most: 2}, always: {for: 60s}}
- {with: {reason: NodeNotReady, least: 1, most: 3}}
- {with: {reason: NodeNotReady, least: 2, most: 2}}
- {with: {}}
""",
    "eviction-refused": """
- {with: {node: victim, message: The disruption budget web needs}}
- {with: {namespace: workload, status: 500}}
""",
    "expression": """
- {with: {expression: "pods.size() >= 6 && nodes.size() > 1", namespace: workload}}
- {name: six pods are ready, with: {expression: "pods.size() >= 6", node: victim, at: power-off}}
""",
    "grace-respected": """
- {with: {node: victim, except: [daemonset, finished, static]}}
- {with: {node: victim}, violating: [demo/web-0]}
- {with: {namespace: workload, owner: {kind: StatefulSet, name: db}}}
- {with: {labels: {app: web}, at: power-off}}
""",
    "inhibitor-held": """
- {with: {node: victim}}
- {with: {node: victims, held: false}, violating: [worker-3]}
- {with: {node: victim, who: unattended-upgrades}}
""",
    "lease-fresh": """
- {with: {node: victim, fresh: false}}
- {with: {node: victims}, always: {for: 2m}, violating: [worker-3]}
- {with: {node: victim, at-most: 15s}, always: {for: 2m}}
- {with: {node: victims, at-most: 15s, fresh: false}}
""",
    "metric": """
- {with: {node: victim, name: kubelet_admission_rejections_total, at-least: 1, increase: true}}
- {with: {node: victims, name: kubelet_graceful_shutdown_start_time_seconds, at-least: 1, series: any}}
- {with: {node: victims, name: kubelet_graceful_shutdown_start_time_seconds, at-least: 1, series: none}}
- {with: {controller-manager: true, name: taint_eviction_controller_pod_deletions_total, at-most: 0, increase: true}}
- {with: {query: errors, at-most: 0.01}, always: {for: 2m}}
- {with: {query: latency, at-least: 0.1, at-most: 0.5, labels: {job: shop}}, always: {for: 2m}}
- {with: {query: errors, at-least: 0.5, series: any}}
- {with: {query: errors, at-least: 0.5, series: none}, always: {for: 2m}}
- {with: {query: alerts}}
""",
    "node-condition": """
- {with: {node: victim, type: Ready, status: "False", message: node is shutting down}}
- {with: {node: victim, status: "True"}}
- {with: {node: victims, status: "Unknown", reason: NodeStatusUnknown}, violating: [worker-3]}
- {with: {node: all, type: DiskPressure, status: "False"}, always: true, violating: [worker-3]}
- {with: {node: victim, status: "False", message: a message that is longer than four words}}
""",
    "node-rebooted": """
- {with: {node: victim}, never: {for: 60s}}
- {with: {node: victim}, never: {until: power-on}}
- {with: {node: victims}, violating: [worker-3]}
- {with: {node: unbound}}
""",
    "node-taint": """
- {with: {node: victim, key: node.kubernetes.io/not-ready, effect: NoSchedule}}
- {with: {node: victim, key: node.kubernetes.io/unreachable, present: false}}
- {with: {node: victims, key: maintenance, value: planned}, within: 20s, for: 5s, violating: [worker-3]}
""",
    "nodes-ready": """
- {with: {nodes: all}, violating: [worker-3]}
- {with: {nodes: victims}, within: 40s, violating: [worker-3]}
- {with: {not-ready-at-most: 0}, always: true}
- {with: {not-ready-at-most: 1}, always: true}
- {with: {not-ready-at-most: 3}, always: {until: end(power-on)}}
""",
    "pods": """
- {with: {node: victim, at: power-off, each: {disruption: TerminationByKubelet, phase: [Succeeded, Failed]}}}
- {with: {node: victim, each: {disruption: TerminationByKubelet}}, violating: [demo/web-0]}
- {with: {node: victims, each: {phase: Succeeded, reason: "", disruption: TerminationByKubelet}}}
- {with: {labels: {app: web}, each: {phase: [Failed], reason: Evicted, disruption: TerminationByKubelet}}}
- {with: {node: victim, each: {phase: Failed, reason: NodeShutdown, message: Pod was rejected}}}
- {with: {owner: {kind: Deployment, name: web}, each: {ready: true, deleting: false, restarts-at-most: 0}}}
- {with: {node: victim, each: {deleting: true, disruption: DeletionByTaintManager}}}
- {with: {node: victim, each: {deleting: true, disruption: PreemptionByScheduler}}}
- {with: {node: victim, each: {disruption: DeletionByPodGC, gone: true, phase: Failed}}}
- {with: {node: victim, each: {disruption: TerminationByKubelet, phase: Running}}}
- {with: {node: victim, each: {deleting: false}}, always: {for: 45s}}
- {with: {node: victim, each: {deleting: false}}, within: toleration(unreachable) + 40s}
- {with: {node: victim, none: {disruption: none, gone: true}}, always: {until: power-on}}
- {with: {node: victim, none: {deleting: true, disruption: none}}, always: {until: power-on}}
- {with: {node: victim, none: {disruption: none}}, always: {for: 45s}}
- {with: {namespace: workload, any: {waiting: ImagePullBackOff}}}
- {with: {namespace: shop, any: {phase: Pending, scheduled: false}}}
- {with: {namespace: workload, each: {scheduled: true, message: out of disk}}}
- {with: {namespace: workload, each: {exit-code: 137, restarts-at-least: 1}}}
- {with: {namespace: workload, each: {restarts-at-least: 3, reason: OOM}}}
- {with: {node: victim, each: {phase: [Running], ready: false, deleting: false, disruption: any, exit-code: 1}}}
- {with: {node: victim, each: {gone: true, replaced: {ready: true}}}}
- {with: {node: victim, not-on: victim, at: power-off, each: {replaced: {ready: true}}}}
- {with: {node: victim, each: {replaced: {node: other, zone: other}}}}
- {with: {node: victim, each: {replaced: {zone: eu-1a}}}}
- {with: {node: victim, each: {replaced: {node: same, ready: false}}}}
- {with: {namespace: workload, count: {ready: true, least: 3}}, always: true}
- {with: {namespace: workload, count: {phase: Pending, least: 1}}}
- {with: {namespace: workload, count: {ready: false, most: 0}}, always: true}
- {with: {namespace: workload, count: {ready: false, most: 2}}, always: true}
- {with: {namespace: workload, count: {ready: true, least: 2, most: 4}}}
- {with: {namespace: workload, count: {ready: true, least: 3, most: 3}}}
- {with: {node: all, rate: {disruption: EvictionByEvictionAPI, at-most: 0.1/s, over: 30s}}, always: true}
- {with: {rate: {deleting: true, at-least: 6/m, per: node}}, always: true}
- {with: {rate: {deleting: true, at-least: 6/m, at-most: 1/s}}, always: true}
- {with: {namespace: workload, order: {gone: true, by: ordinal, descending: true, least: 3}}}
- {with: {node: victim, order: {phase: [Succeeded, Failed], by: priority}}}
""",
    "pods-disrupted": "[{with: {node: victim, except: [static, finished]}}]",
    "pods-evicted": "[{with: {node: victim}}, {with: {node: victim, none: {}}, always: {for: 40s}}]",
    "pods-rejected": "[{with: {node: victim}}]",
    "pods-rescheduled": "[{with: {node: victim}}, {with: {node: victim}, violating: [demo/web-0]}]",
    "pods-started": "[{with: {node: victim}, never: {until: power-on}}, {with: {node: victims}, never: {for: 40s}}]",
    "pods-stuck": "[{with: {node: victim}, always: {for: 1m}}]",
    "shutdown-metrics": """
- {with: {node: victim}}
- {with: {node: victim, started: true, since: power-off}}
- {with: {node: victim, started: true, ended: true}}
- {with: {node: victims, started: false}, always: {for: 60s}, violating: [worker-3]}
- {with: {node: victim, started: true, ended: false}}
- {with: {node: victim, duration-at-most: 30s}}
""",
    "termination-order": "[{with: {node: victim}}, {with: {node: victims}, violating: [worker-3]}]",
    "volume-attached": """
- {with: {node: victim, attached: false}}
- {with: {node: victim}}
- {with: {volume: pv-1, node: victims}}
- {with: {claim: workload/data-db-0, attached: false}}
""",
    "workload-available": """
- {with: {namespace: workload}, violating: [deployment web]}
- {with: {namespace: workload, names: [web]}}
- {with: {namespace: shop, names: [web], unavailable-at-most: 1}, always: {for: 90s}}
- {with: {namespace: shop, unavailable-at-most: 25%}, always: {for: 90s}}
- {with: {namespace: shop, kinds: [Deployment]}, within: 60s, for: 5s}
- {with: {namespace: shop, owner: StatefulSet/db}, within: 60s, for: 5s}
""",
}
# In other parts of the experiment, other words for the time.
PARTS = (
    (Part.STEADY, "nodes-ready", "[{with: {nodes: all}, violating: [worker-3]}]"),
    (Part.RECOVERY, "nodes-ready", "[{with: {nodes: all}, within: 5m, violating: [worker-3]}]"),
)
OTHERS = """
- {order: [the node is Unknown, its pods are evicted]}
- {assert: swap-off, name: swap is off on every node, violating: [worker-3]}
- {assert: swap-off, name: swap is off on every node, never: {for: 60s}}
- {assert: swap-off}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """An expectation, and the subjects that violate it if it is violated."""

    expectation: Expectation
    violating: tuple[str, ...] = ()
    part: Part = Part.METHOD

    def sentence(self, status: Status) -> str:
        """The sentence of a verdict with this status."""
        has_facts = any(word in (self.expectation.within or "") for word in (".", "("))
        bound = {Part.RECOVERY: 300.0}.get(self.part, BOUND if has_facts else None)
        names = self.violating if status is Status.VIOLATED else ()
        verdict = Verdict("", "", status, "", at=SINCE, start=0.0, bound=bound, subjects=names)
        return sentence(self.expectation, verdict, TARGETS, self.part)


def cases() -> Iterator[Case]:
    """All, in the order of the table."""
    for name, text in CASES.items():
        yield from _cases(text, Part.METHOD, name)
    for part, name, text in PARTS:
        yield from _cases(text, part, name)
    yield from _cases(OTHERS, Part.METHOD)


def _cases(text: str, part: Part, name: str | None = None) -> Iterator[Case]:
    for written in yaml.safe_load(text):
        fields: dict[str, Any] = {"assert": name} if name else {}
        fields |= written
        violating = tuple(fields.pop("violating", ()))
        if part is Part.METHOD and not fields.keys() & {"within", "always", "never", "order"}:
            fields["within"] = "40s"
        expectation = Expectation.model_validate(fields)
        REGISTRY.bind_expectation(expectation)
        yield Case(expectation, violating, part)


def page() -> str:
    """Text of the page."""
    blocks = [HEAD]
    for title, found in _by_title().items():
        rows = ["| expectation | held | violated | inconclusive |", "|---|---|---|---|"]
        rows += [f"| {' | '.join((_written(case), *map(case.sentence, STATUSES)))} |" for case in found]
        blocks += [f"## {title}", "\n".join(rows)]
    return "\n\n".join(blocks) + "\n"


def _by_title() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    titles = {Part.STEADY: "In the steady state", Part.RECOVERY: "In the recovery"}
    for case in cases():
        name = case.expectation.assert_ or ""
        other = name if name in REGISTRY.assertions else "Order, and assertions without words"
        title = titles.get(case.part, other)
        found.setdefault(title, []).append(case)
    return found


def _written(case: Case) -> str:
    """The expectation as YAML."""
    fields = case.expectation.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    if case.expectation.assert_ in REGISTRY.assertions:
        del fields["assert"]
    text = yaml.safe_dump(fields, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return f"`{text}`".replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PATH.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
