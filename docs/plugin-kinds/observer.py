"""Observer ``my-plugin``: the load of the machine that nodefall runs on, every 5 s."""

from __future__ import annotations

import os

from chaos.extend.observer import ObserverContext, Sampler

NODEFALL_CONTRACT = 1  # the version of the plug-in contract that this was written for


def read_load() -> float:
    """The load of the last minute. What it raises makes the samples blind until it succeeds again."""
    return os.getloadavg()[0]


class MyObserver:
    """Builds the observers of a run. Assertions read the samples: ``view.timeline.samples("my-plugin")``."""

    name = "my-plugin"

    def build(self, context: ObserverContext) -> list[Sampler]:
        """One sampler."""
        return [Sampler("my-plugin", context.clock, 5.0, read_load)]


OBSERVER = MyObserver()
