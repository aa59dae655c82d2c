"""Which experiments notice that a statement of the documentation is false.

``python tools/mutants.py [STATEMENT...] [--json] [-j JOBS]`` runs, for each mutant of each statement of
experiments/statements.yaml, the experiments that test the statement, each on its lab with the mutant's breakages. A
mutant is killed if an experiment that exits with 0 without it exits with 1. Without statements: all.
Exit code 1 if a mutant lives.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script, for the tests' kit

from chaos.core.errors import Exit, NodefallError  # noqa: E402
from chaos.documents.statements import Statement, load_statements  # noqa: E402
from tests.kit.rehearsals import rehearse  # noqa: E402

STATEMENTS = ROOT / "experiments" / "statements.yaml"
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
    different = list(dict.fromkeys(cell for _, _, cell in rows))
    with get_context("spawn").Pool(jobs) as pool:
        codes = dict(zip(different, pool.imap(exit_code, different, chunksize=1), strict=True))
    found: Matrix = {}
    for statement, mutant, cell in rows:
        found.setdefault(statement, {}).setdefault(mutant, {})[cell[0]] = codes[cell]
    return found


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statements", nargs="*", metavar="STATEMENT", help="ids, such as S21; default: all")
    parser.add_argument("--json", action="store_true", help="{statement: {mutant: {experiment: exit code}}}")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        chosen = statements(options.statements)
    except ValueError as error:
        parser.error(str(error))
    found = matrix(chosen, options.jobs)
    sys.stdout.write((json.dumps(found, indent=2) if options.json else text(found)) + "\n")
    lives = [codes for mutants in found.values() for codes in mutants.values() if not is_killed(codes)]
    return int(Exit.VIOLATED if lives else Exit.HELD)


if __name__ == "__main__":
    sys.exit(main())
