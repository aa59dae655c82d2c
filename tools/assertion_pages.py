"""Writes docs/assertions/ (a page per assertion) and the table in docs/assertions.md from the assertions' code.

Run `python tools/assertion_pages.py` after a change of an assertion; a test compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

import chaos.verdicts.assertions
from chaos.cli.reference.explain import lookup, parameter_details
from chaos.core.assertion import Assertion
from chaos.core.registry import discover

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Written by tools/assertion_pages.py from the assertion's code. -->"
ASSERTIONS: dict[str, Assertion] = discover(chaos.verdicts.assertions, "ASSERTION")


def pages() -> Mapping[Path, str]:
    """Text of every file, by path."""
    index = DOCS / "assertions.md"
    head, _, rest = index.read_text(encoding="utf-8").partition("\n| assertion |")
    prose = rest.partition("\n\n")[2]
    found = {DOCS / "assertions" / f"{name}.md": page(assertion) for name, assertion in ASSERTIONS.items()}
    return found | {index: f"{head}\n{table()}\n\n{prose}"}


def table() -> str:
    """A row per assertion."""
    rows = ["| assertion | true when | with |", "|---|---|---|"]
    for name, assertion in ASSERTIONS.items():
        rows.append(f"| [`{name}`](assertions/{name}.md) | {assertion.summary} | {_parameters(name, assertion)} |")
    return "\n".join(rows)


def _parameters(name: str, assertion: Assertion) -> str:
    if alias := _alias_of(assertion):
        return f"as {alias}"
    return ", ".join(f"`{parameter['key']}`" for parameter in lookup(name)["with"])


def _alias_of(assertion: Assertion) -> str:
    """The question of an alias of ``pods``, "" for other assertions."""
    expansion = getattr(assertion, "expands_to", "")
    return f"`pods` with `{expansion.removeprefix('pods with ')}`" if expansion else ""


def page(assertion: Assertion) -> str:
    """The page of one assertion."""
    return "\n\n".join(_blocks(assertion)) + "\n"


def _blocks(assertion: Assertion) -> Iterator[str]:
    yield NOTE
    yield f"# {assertion.name}"
    yield f"{assertion.summary[0].upper()}{assertion.summary[1:].rstrip('.')}."
    if alias := _alias_of(assertion):
        yield f"Alias of {alias}; [`pods`](pods.md) has the parameters."
    else:
        yield inspect.cleandoc(type(assertion).__doc__ or "")
    yield "## Example"
    yield f"```yaml\n- {assertion.example.strip()}\n```"
    if not alias:
        yield "## Parameters"
        parameters = lookup(assertion.name)["with"]
        yield "\n".join(f"- `{p['key']}`: {p['type']}{parameter_details(p)}" for p in parameters)
    yield "## Evidence"
    yield f"{assertion.needs[0].upper()}{assertion.needs[1:]}. Without that, the verdict is inconclusive."


def main() -> None:
    """Write the files that differ; remove pages of assertions that do not exist."""
    found = pages()
    (DOCS / "assertions").mkdir(exist_ok=True)
    for old in set((DOCS / "assertions").glob("*.md")) - set(found):
        old.unlink()
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
