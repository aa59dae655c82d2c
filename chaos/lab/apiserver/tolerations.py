"""When a toleration matches a taint. staging/src/k8s.io/api/core/v1/toleration.go."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.lab.objects import Object
from chaos.lab.rules import TolerationRules

DEFAULT = TolerationRules()


def tolerates(toleration: Object, taint: Object, rules: TolerationRules = DEFAULT) -> bool:
    """Whether a toleration with Equal or Exists tolerates the taint. ToleratesTaint."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if rules.compares_effects and (taint["effect"] != effect if effect else taint["effect"] not in rules.empty_effect):
        return False
    if rules.compares_keys and (taint["key"] != key if key else not rules.empty_key_matches):
        return False
    same_value, operator = toleration.get("value", "") == taint.get("value", ""), toleration.get("operator")
    match operator or rules.default_operator:
        case "Exists":
            return rules.exists_matches and (same_value or not rules.exists_compares_values)
        case "Equal":
            return bool(rules.equal_matches and key and (same_value or not rules.compares_values))
        case _:
            return False


def untolerated(
    pod: Object, taints: Iterable[Object], effects: tuple[str, ...], rules: TolerationRules = DEFAULT
) -> list[Object]:
    """Taints with these effects that the pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or []
    relevant = [taint for taint in taints if taint["effect"] in effects]
    found = [taint for taint in relevant if not any(tolerates(item, taint, rules) for item in tolerations)]
    return [] if rules.one_suffices and len(found) < len(relevant) else found
