"""Pagination of lists: the remaining items are stored at the version of the first page."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections import OrderedDict

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.objects.accessors import Object
from chaos.lab.sim.clock import SimClock

_MAX_TOKENS = 64  # unfinished lists
_COMPACTION_INTERVAL = 300.0  # simulated seconds in which an old version can be read; --etcd-compaction-interval


class Paginator:
    """Remaining items of unfinished lists, by continue token."""

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._remainders: OrderedDict[int, tuple[float, list[Object]]] = OrderedDict()
        self._last_key = 0

    def issue_token(self, version: int, rest: list[Object]) -> str:
        """Continue token for the remaining items of a list at a resource version."""
        self._last_key += 1
        self._remainders[self._last_key] = (self._sim.now, rest)
        while len(self._remainders) > _MAX_TOKENS:
            self._remainders.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps([self._last_key, version]).encode()).decode()

    def resume(self, token: str) -> tuple[int, list[Object]]:
        """Version and remaining items of a continue token. Raises ApiError 400 or 410."""
        try:
            key, version = (int(number) for number in json.loads(base64.urlsafe_b64decode(token)))
        except (binascii.Error, ValueError, TypeError) as error:
            raise ApiError(400, "continue key is not valid") from error
        since, rest = self._remainders.get(key, (-math.inf, []))
        if self._sim.now - since > _COMPACTION_INTERVAL:
            raise ApiError(410, "The provided continue parameter is too old to display a consistent list result.")
        return version, rest
