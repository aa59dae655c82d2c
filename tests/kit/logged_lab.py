"""``python -m tests.kit.logged_lab FILE ...``: a lab process (``chaos.lab``) that logs its history.

Every change that its store commits is one line of JSON in FILE: seconds since the start of the lab's time, type,
plural, and the object. The file is complete when the lab has ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from chaos.lab.__main__ import main
from chaos.lab.apiserver.store import Change, Store
from chaos.lab.sim import SimClock


def _log(path: Path, arguments: list[str]) -> int:
    lines: list[str] = []
    init = Store.__init__

    def subscribed(self: Store, sim: SimClock) -> None:
        init(self, sim)
        start = sim.now

        def on_change(change: Change) -> None:
            lines.append(json.dumps([f"{sim.now - start:.6f}", change.type, change.plural, change.object]))

        self.subscribe(on_change)

    Store.__init__ = subscribed  # type: ignore[method-assign]
    code = main(arguments)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(_log(Path(sys.argv[1]), sys.argv[2:]))
