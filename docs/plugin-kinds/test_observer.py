"""Observer ``my-plugin``: what it records within a second."""

from types import SimpleNamespace

from nodefall_my_plugin import OBSERVER

from chaos.testing import SystemClock, check_observer


def test_it_keeps_the_contract_of_observers() -> None:
    clock = SystemClock()
    (observer,) = OBSERVER.build(SimpleNamespace(clock=clock))
    entry, *_ = check_observer(observer, clock, seconds=0.3)
    assert (entry.type, float(bytes(entry.object)) >= 0) == ("my-plugin", True)
