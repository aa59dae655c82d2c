"""For the tests of plug-ins: recordings in the making, a host, and the contract of each kind.

The ``check_*`` functions raise AssertionError with a sentence for each breach. A lab is ``chaos.api.Lab``.
"""

from chaos.testing.action import check_action, check_pair
from chaos.testing.plugins import check_assertion, check_observer, check_power_driver, check_renderer, host_context
from chaos.testing.recordings import T0, RecordingBuilder, judge_assertion

__all__ = [
    "T0",
    "RecordingBuilder",
    "check_action",
    "check_assertion",
    "check_observer",
    "check_pair",
    "check_power_driver",
    "check_renderer",
    "host_context",
    "judge_assertion",
]
