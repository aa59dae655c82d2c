"""Words for people about the questions of ``pods``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chaos.core.assertion import Claim, Names, Noun, namespace_text
from chaos.core.signal import Quantifier
from chaos.verdicts.judge.replacements import Replacement
from chaos.verdicts.judge.selection import Count, Filter, PodSetParams
from chaos.verdicts.judge.series import Order, Rate

_MAX_WORDS = 9  # of the state, so that the whole sentence has at most 20
_DISRUPTIONS = {
    "TerminationByKubelet": "marked as terminated by the kubelet",
    "EvictionByEvictionAPI": "marked as evicted",
    "DeletionByTaintManager": "marked as evicted because of a taint",
    "DeletionByPodGC": "marked as garbage-collected",
    "PreemptionByScheduler": "marked as preempted",
    "any": "marked as disrupted",
    "none": "free of any disruption",
}
# Conditions that have their words together.
_STATES: tuple[tuple[Mapping[str, Any], str], ...] = (
    ({"disruption": "TerminationByKubelet", "phase": {"Succeeded", "Failed"}}, "terminated by the kubelet"),
    ({"disruption": "TerminationByKubelet", "phase": {"Succeeded"}}, "terminated by the kubelet and Succeeded"),
    ({"disruption": "TerminationByKubelet", "phase": {"Failed"}}, "terminated by the kubelet and Failed"),
    (
        {"disruption": "TerminationByKubelet", "phase": {"Running"}},
        "Running although marked as terminated by the kubelet",
    ),
    ({"disruption": "EvictionByEvictionAPI", "deleting": True}, "evicted"),
    ({"disruption": "EvictionByEvictionAPI", "gone": True}, "evicted and removed"),
    ({"disruption": "PreemptionByScheduler", "deleting": True}, "preempted"),
    ({"disruption": "DeletionByTaintManager", "deleting": True}, "evicted because of a taint"),
    (
        {"disruption": "DeletionByPodGC", "gone": True, "phase": {"Failed"}},
        "Failed and removed by pod garbage collection",
    ),
    ({"disruption": "none", "deleting": True}, "marked for deletion without a disruption"),
    ({"disruption": "none", "gone": True}, "removed without a disruption"),
    ({"disruption": "none"}, "free of any disruption"),
    ({"phase": {"Failed"}, "reason": "NodeShutdown"}, "rejected because of the shutdown"),
    ({"phase": {"Failed"}, "reason": "NodeShutdown", "disruption": "none"}, "rejected because of the shutdown"),
    ({"deleting": True, "gone": False}, "stuck in deletion"),
    ({"deleting": False, "gone": False}, "spared from deletion"),
    ({"deleting": False}, "spared from deletion"),
)
_BOOLEANS = {
    "ready": ("Ready", "unready"),
    "deleting": ("marked for deletion", "not marked for deletion"),
    "gone": ("removed", "still there"),
    "scheduled": ("bound to a node", "without a node"),
}


class PodSubject:
    """Words for the pods that the parameters select. ``which`` follows the noun: `` on worker-2``.

    ``elsewhere`` follows the state: ``, not on worker-2``.
    """

    def __init__(self, params: PodSetParams, names: Names, elsewhere: str = "") -> None:
        self.elsewhere = elsewhere
        self.is_one_affected = len(names.affected) == 1
        self.which = names.on(params.node) or _owner(params) or namespace_text(params.namespace)


def question_claim(
    question: Filter, quantifier: Quantifier | None, replaced: Replacement | None, pods: PodSubject
) -> Claim:
    """Claim of one question of ``pods``."""
    state = state_words(question, replaced) + pods.elsewhere
    if isinstance(question, Rate):
        return _rate_claim(question, state, pods)
    if isinstance(question, Order):
        direction = "descending order" if question.descending else "order"
        return Noun(f"pods{pods.which}", is_plural=True).is_(f"{state} in {direction} of {question.by}")
    if isinstance(question, Count):
        return _count_claim(question, state, pods)
    one, none = f"a pod{pods.which} was {state}", f"no pod{pods.which} was {state}"
    if quantifier is Quantifier.ANY:
        return Claim(one, none)
    if quantifier is Quantifier.NONE:
        return Claim(none, one)
    fails = f"{'a' if pods.is_one_affected else 'not every'} pod{pods.which} was {'not ' * pods.is_one_affected}{state}"
    return Claim(f"every pod{pods.which} was {state}", fails)


def _owner(params: PodSetParams) -> str:
    if params.owner:
        return f" of {params.owner.kind} {params.owner.name}"
    labels = ",".join(f"{key}={value}" for key, value in (params.labels or {}).items())
    return f" with {labels}" if labels else ""


def _count_claim(question: Count, state: str, pods: PodSubject) -> Claim:
    least, most, which = question.least, question.most, pods.which
    if least == 1 and most is None:
        return Claim(f"a pod{which} was {state}", f"no pod{which} was {state}")
    if most is None:
        return Claim(f"at least {least} pods{which} were {state}", f"fewer than {least} pods{which} were {state}")
    if not most:
        return Claim(f"no pod{which} was {state}", f"a pod{which} was {state}")
    if not least:
        return Claim(f"at most {most} pods{which} were {state}", f"more than {most} pods{which} were {state}")
    number = f"exactly {least}" if least == most else f"{least} to {most}"
    return Claim(f"{number} pods{which} were {state}", f"not {number} pods{which} were {state}")


def _rate_claim(question: Rate, state: str, pods: PodSubject) -> Claim:
    pace = (("no faster than", "faster than", question.at_most), ("no slower than", "slower than", question.at_least))
    bounds = [(holds, fails, rate) for holds, fails, rate in pace if rate]
    subject = f"pods{pods.which} were {state}" if question.per == "pod" else f"nodes had pods {state}"
    if len(bounds) == 2:
        rates = f"{question.at_least} to {question.at_most}"
        return Claim(f"{subject} at a rate of {rates}", f"{subject} at a rate outside {rates}")
    ((holds, fails, rate),) = bounds
    return Claim(f"{subject} {holds} {rate}", f"{subject} {fails} {rate}")


def state_words(question: Filter, replaced: Replacement | None, is_exact: bool = False) -> str:
    """The state after ``was``, like ``terminated by the kubelet``; without ``is_exact`` at most nine words."""
    conditions = question.model_dump(exclude_none=True, include=set(Filter.model_fields))
    if "phase" in conditions:
        conditions["phase"] = set(conditions["phase"])
    parts = [*_parts(conditions, is_exact), *([_replaced(replaced)] if replaced else [])]
    state = " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)
    if not replaced:
        state = _known_state(conditions, ((),) if is_exact else ((), ("message",), ("reason", "message"))) or state
    return state if is_exact or len(state.split()) <= _MAX_WORDS else "in the expected state"


def _known_state(conditions: Mapping[str, Any], ignorable: Iterable[tuple[str, ...]]) -> str:
    """Words for all conditions together, or "". If conditions are ignored, the words end with ``as expected``."""
    for less in ignorable:
        rest = {key: value for key, value in conditions.items() if key not in less}
        text = next((text for wanted, text in _STATES if rest == wanted), "")
        if text:
            return text if rest == conditions else f"{text} as expected"
    return ""


def _parts(conditions: Mapping[str, Any], is_exact: bool) -> Iterator[str]:
    """Words for each condition of a filter, in the order of its fields."""
    for key, value in conditions.items():
        if key == "phase":
            yield "finished" if value == {"Succeeded", "Failed"} else " or ".join(sorted(value))
        elif key == "reason":
            yield f"given reason {value}" if value else "without a reason"
        elif key == "message":
            yield f"given a message with {value!r}" if is_exact else "given the expected message"
        elif key == "disruption":
            yield _DISRUPTIONS.get(value, f"marked as {value}")
        elif key == "waiting":
            yield f"waiting because of {value}"
        elif key == "exit_code":
            yield f"ended with exit code {value}"
        elif key in _BOOLEANS:
            yield _BOOLEANS[key][0 if value else 1]
        else:
            yield _restarts(key, value)


def _restarts(key: str, number: int) -> str:
    if key == "restarts_at_most" and not number:
        return "without restarts"
    word = "at least" if key == "restarts_at_least" else "at most"
    return f"restarted {word} {'once' if number == 1 else f'{number} times'}"


def _replaced(replacement: Replacement) -> str:
    where = {"same": " on the same node", "other": " on another node", None: ""}[replacement.node]
    zones = {"same": " in the same zone", "other": " in another zone"}
    zone = zones.get(replacement.zone, f" in zone {replacement.zone}") if replacement.zone else ""
    by = " by a Ready pod" if replacement.ready else " by a pod"
    return f"replaced{by}{where or zone}" if not (where and zone) else f"replaced{by}{where} and{zone}"
