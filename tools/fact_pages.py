"""Write docs/facts.md from the code of the facts.

Run `python tools/fact_pages.py` after a change of a fact; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic.fields import FieldInfo

import chaos.faults.actions
import chaos.faults.readings.windows
from chaos.core.fact import HostFact
from chaos.core.registry import discover

PAGE = Path(__file__).parents[1] / "docs" / "facts.md"
LINUX_FACTS: dict[str, HostFact] = {
    **discover(chaos.faults.readings, HostFact),
    **discover(chaos.faults.actions, HostFact),
}
WINDOWS_FACTS: dict[str, HostFact] = discover(chaos.faults.readings.windows, HostFact)
FACTS = dict(sorted({**WINDOWS_FACTS, **LINUX_FACTS}.items()))
HEAD = """<!-- Written by tools/fact_pages.py from the facts' code. -->

# Facts of hosts

A fact is one thing that is read from a host by one command. Actions prepare and prove with facts, preflight checks
them, and observers record them. `nodefall list host-facts` has those of outside packages, too; `nodefall explain FACT`
shows one.

A fact with parameters is named by a reference: `unit-state?unit=cron.service`. In Python,
`str(FactRef("sysctl", {"key": "vm.swappiness"}))` writes it and quotes the values.

Hosts with Windows have a form of some facts, with the same kind of value, and facts of their own. An action or a check
that needs a fact which the system of a host does not have reports that.

The value is what `HostFact.parse` returns and what a `FactCheck` compares: JSON. A fact that cannot be read is unknown,
never a default.
"""
TAIL = """## Facts of the API and of power controls

A `FactCheck` of an undo may also name these; they are not read on the host. `chaos.core.api_fact` writes them.

| fact | value |
|---|---|
| `node-ready` | True or false: whether the Node's condition Ready is True |
| `machine` | Text, from the power control: `on` or `off` |
| `machine-stopping` | True or false: whether an accepted stop is not over; false where its power control shows none |
| `restart-policy` | Text, from the power control: the policy for restarts of the machine, empty without one |
| `boot-posted` | True or false: whether the Node object names the boot that the host is in |
| `taint/KEY:EFFECT` | Text: value of the node's taint, which may be empty; null without the taint |
| `condition/TYPE` | Text: status of the node's condition; null without the condition |
| `object/API-PATH#POINTER` | The field of an API object at a JSON pointer, of its type; null without object or field |
| `namespace/NAME` | Text: `there` or `gone` |

Facts in bounds of expectations, as `within: kubelet.shutdownGracePeriod + 10s`, are something else: see
[assertions.md](assertions.md).
"""


def page() -> str:
    """Text of docs/facts.md."""
    return f"{HEAD}\n{table()}\n\n{parameters()}\n\n{TAIL}"


def table() -> str:
    """A row per fact."""
    rows = ["| fact | hosts | what | value |", "|---|---|---|---|"]
    for name, fact in FACTS.items():
        keys = "&".join(f"{key}={key.upper()}" for key in _fields(fact))
        forms = {"Linux": LINUX_FACTS, "Windows": WINDOWS_FACTS}
        hosts = ", ".join(system for system, facts in forms.items() if name in facts)
        rows.append(f"| `{name}{'?' if keys else ''}{keys}` | {hosts} | {fact.summary} | {_values(name)} |")
    return "\n".join(rows)


def _values(name: str) -> str:
    """The value of a fact; of one with two forms, that on Windows too if its description differs."""
    texts = [facts[name].describe_value() for facts in (LINUX_FACTS, WINDOWS_FACTS) if name in facts]
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} On Windows: {texts[1]}"


def parameters() -> str:
    """The parameters of the facts that have them."""
    return "\n".join(["Parameters:", "", *_parameter_rows()])


def _parameter_rows() -> Iterator[str]:
    for name, fact in FACTS.items():
        for key, field in _fields(fact).items():
            yield f"- `{name}`, `{key}`: {field.description}"


def _fields(fact: HostFact) -> Mapping[str, FieldInfo]:
    return fact.params.model_fields if fact.params else {}


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
