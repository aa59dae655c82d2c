"""Lists in pages: the rest of an unfinished list is kept as it was at the version of its first page."""

from __future__ import annotations

import base64
import binascii
import json
from collections import OrderedDict

from chaos.lab.objects import Object
from chaos.lab.servers.errors import ApiError

_KEPT = 64  # unfinished lists


class Pages:
    """What the pages to come will show."""

    def __init__(self) -> None:
        self._rests: OrderedDict[int, list[Object]] = OrderedDict()
        self._next = 0

    def keep(self, version: int, rest: list[Object]) -> str:
        """A token for the rest of a list, at its resource version."""
        self._next += 1
        self._rests[self._next] = rest
        while len(self._rests) > _KEPT:
            self._rests.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps([self._next, version]).encode()).decode()

    def resume(self, token: str) -> tuple[int, list[Object]]:
        """The version and the rest that a token stands for. Raises ApiError 400 or 410."""
        try:
            key, version = json.loads(base64.urlsafe_b64decode(token))
        except (binascii.Error, ValueError, TypeError) as error:
            raise ApiError(400, "continue key is not valid") from error
        if key not in self._rests:
            raise ApiError(410, "The provided continue parameter is too old to display a consistent list result.")
        return version, self._rests[key]
