"""The end of the process while daemon threads still wait for an answer.

``exit()`` frees the state of OpenSSL; a thread that is in it then ends the process with SIGSEGV, instead of the exit
code of the run: 2 % of processes with eight threads that use TLS.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress


class ProcessEnd:
    """Ends the process with ``code`` after all other functions of atexit, if daemon threads are alive then.

    Created before anything else registers such a function: they run in reverse order, and this one does not return.
    """

    def __init__(self) -> None:
        self.code: int | None = None  # unknown: the interpreter ends as ever
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None or not any(thread.daemon for thread in threading.enumerate()):
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # _flush() has reported it
                stream.flush()
        os._exit(self.code)
