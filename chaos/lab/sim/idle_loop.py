"""An event loop that knows when it has nothing to do: every callback has run, and no socket has input."""

from __future__ import annotations

import asyncio
import selectors

_PATIENCE = 1000  # turns of a loop that is never idle


class _IdleSelector(selectors.DefaultSelector):
    """A selector that asks for input once more before it waits, and reports that there was none."""

    waiting: asyncio.Future[None] | None = None
    turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.waiting is None:
            return super().select(timeout)
        found = super().select(0)
        self.turns += 1
        if (not found and timeout != 0) or self.turns > _PATIENCE:
            waiting, self.waiting = self.waiting, None
            if not waiting.done():
                waiting.set_result(None)
        return found


class IdleLoop(asyncio.SelectorEventLoop):
    """The loop of a lab, and of what else must know that all input was handled."""

    def __init__(self) -> None:
        self._idle_selector = _IdleSelector()
        super().__init__(self._idle_selector)

    async def until_idle(self) -> None:
        """Wait until there is nothing to do but what wall time brings. One task at a time."""
        selector = self._idle_selector
        selector.waiting, selector.turns = self.create_future(), 0
        await selector.waiting
