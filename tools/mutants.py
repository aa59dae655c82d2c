"""Which experiments notice that a statement of the documentation is false.

``python tools/mutants.py [STATEMENT...] [--json] [--write] [-j JOBS]`` runs, for each mutant of each statement of
experiments/statements.yaml, the experiments that test the statement, each on its lab with the mutant's breakages. A
mutant is killed if an experiment that exits with 0 without it exits with 1. Without statements: all. ``--write`` also
writes docs/mutants.md. ``--combinations NUMBER [--seed SEED]`` instead runs all experiments on labs with five mutants
of different statements at once; a combination is killed if an experiment of one of the statements exits with 1.
Exit code 1 if a mutant or combination lives.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script, for the tests' kit

from chaos.core.errors import Exit, NodefallError  # noqa: E402
from chaos.documents.statements import Statement, load_statements  # noqa: E402
from tests.kit.experiment_runs import BUNDLED  # noqa: E402
from tests.kit.rehearsals import rehearse  # noqa: E402

STATEMENTS = ROOT / "experiments" / "statements.yaml"
PAGE = ROOT / "docs" / "mutants.md"
_TOGETHER = 5  # mutants of a combination
Cell = tuple[str, tuple[str, ...]]  # an experiment, and the breakages of its lab
Matrix = dict[str, dict[str, dict[str, int]]]  # statement, mutant, experiment: exit code


def statements(ids: Sequence[str] = ()) -> list[Statement]:
    """These statements of the map, or all. Raises ValueError for an unknown one."""
    found = {statement.id: statement for statement in load_statements(STATEMENTS).statements}
    if unknown := sorted(set(ids) - set(found)):
        raise ValueError(f"no statement {', '.join(unknown)} in {STATEMENTS.name}")
    return [found[item] for item in ids or found]


def cells(chosen: Iterable[Statement]) -> Iterator[tuple[str, str, Cell]]:
    """Statement, mutant and the run that is to notice it."""
    for statement in chosen:
        for mutant, breakages in statement.mutants.items():
            for experiment in statement.tested_by:
                yield statement.id, mutant, (experiment, tuple(breakages))


def exit_code(cell: Cell) -> int:
    """The exit code of ``nodefall run`` for an experiment on its lab with breakages."""
    experiment, breakages = cell
    try:
        return int(rehearse(experiment, breakages=breakages).result.exit_code)
    except NodefallError:  # refused: before anything was touched
        return int(Exit.REFUSED)


def matrix(chosen: Sequence[Statement], jobs: int = 1) -> Matrix:
    """All runs, each once."""
    rows = list(cells(chosen))
    codes = _exit_codes((cell for _, _, cell in rows), jobs)
    found: Matrix = {}
    for statement, mutant, cell in rows:
        found.setdefault(statement, {}).setdefault(mutant, {})[cell[0]] = codes[cell]
    return found


def _exit_codes(wanted: Iterable[Cell], jobs: int) -> dict[Cell, int]:
    """The exit code of each run, which is made once."""
    different = list(dict.fromkeys(wanted))
    with get_context("spawn").Pool(jobs) as pool:
        return dict(zip(different, pool.imap(exit_code, different, chunksize=1), strict=True))


def combinations(chosen: Sequence[Statement], number: int, seed: int) -> list[tuple[tuple[str, str], ...]]:
    """Statement and mutant of each part of ``number`` combinations. No two parts replace the same rule."""
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
    mutants = [(each, name) for each in chosen for name in each.mutants]
    found = []
    for _ in range(number):
        parts, rules = list[tuple[str, str]](), set[str]()
        for each, name in draw.sample(mutants, len(mutants)):
            own = {item.partition("=")[0] for item in each.mutants[name]}
            if len(parts) < _TOGETHER and not own & rules and each.id not in dict(parts):
                parts.append((each.id, name))
                rules |= own
        found.append(tuple(parts))
    return found


def combined(chosen: Sequence[Statement], number: int, seed: int, jobs: int) -> Matrix:
    """All experiments on each combination, as a matrix without statements."""
    by_id = {each.id: each for each in chosen}
    found = combinations(chosen, number, seed)
    breakages = [tuple(item for id_, name in parts for item in by_id[id_].mutants[name]) for parts in found]
    codes = _exit_codes(((name, each) for each in breakages for name in BUNDLED), jobs)
    matrix: Matrix = {}
    for parts, each in zip(found, breakages, strict=True):
        about = {name for id_, _ in parts for name in by_id[id_].tested_by}
        title = " and ".join(f"{id_} {name}" for id_, name in parts)
        matrix.setdefault(f"seed {seed}", {})[title] = {name: codes[name, each] for name in sorted(about)}
    return matrix


def is_killed(codes: dict[str, int]) -> bool:
    """Whether an experiment says that the statement is violated."""
    return Exit.VIOLATED in codes.values()


def text(found: Matrix) -> str:
    """The matrix in lines, and a count."""
    lines = []
    for statement, mutants in found.items():
        for mutant, codes in mutants.items():
            word = "killed" if is_killed(codes) else "LIVES "
            lines.append(
                f"{statement:5} {word}  {mutant}: {', '.join(f'{name} {code}' for name, code in codes.items())}"
            )
    all_ = [codes for mutants in found.values() for codes in mutants.values()]
    lines.append(f"{sum(map(is_killed, all_))} of {len(all_)} mutants of {len(found)} statements are killed")
    return "\n".join(lines)


def page(found: Matrix) -> str:
    """docs/mutants.md."""
    words = {each.id: each for each in statements()}
    lines = [
        "<!-- Written by tools/mutants.py --write. -->\n\n# Mutants\n",
        "Exit codes of the [bundled experiments](../experiments/README.md) on simulated clusters on which a",
        "[statement](statements.md) of the Kubernetes documentation is false. A mutant is killed if an experiment",
        "exits with 1.\n",
        text(found).rpartition("\n")[2].capitalize() + ".\n",
        "| statement | mutant | breakages | exit codes | killed |",
        "|---|---|---|---|---|",
    ]
    for statement, mutants in found.items():
        for mutant, codes in mutants.items():
            breakages = ", ".join(f"`{item}`" for item in words[statement].mutants[mutant]).replace("|", "\\|")
            shown = ", ".join(f"{name} {code}" for name, code in codes.items())
            lines.append(
                f"| {statement} | {mutant} | {breakages} | {shown} | {'yes' if is_killed(codes) else '**no**'} |"
            )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statements", nargs="*", metavar="STATEMENT", help="ids, such as S21; default: all")
    parser.add_argument("--json", action="store_true", help="{statement: {mutant: {experiment: exit code}}}")
    parser.add_argument("--write", action="store_true", help="also write docs/mutants.md")
    parser.add_argument("--combinations", type=int, default=0, metavar="NUMBER", help="of five mutants each")
    parser.add_argument("--seed", type=int, default=1, help="of the combinations")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        chosen = statements(options.statements)
    except ValueError as error:
        parser.error(str(error))
    if options.combinations:
        found = combined(chosen, options.combinations, options.seed, options.jobs)
    else:
        found = matrix(chosen, options.jobs)
    if options.write:
        PAGE.write_text(page(found), encoding="utf-8")
    sys.stdout.write((json.dumps(found, indent=2) if options.json else text(found)) + "\n")
    lives = [codes for mutants in found.values() for codes in mutants.values() if not is_killed(codes)]
    return int(Exit.VIOLATED if lives else Exit.HELD)


if __name__ == "__main__":
    sys.exit(main())
