"""At which address ranks on other hosts reach rank 0."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

import meetpoint
from meetpoint import _addresses
from meetpoint._addresses import Host


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", _addresses.HOST):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> Dict[str, str]:
    """The address of this host on the way to another, by that one's address."""
    ways: Dict[str, str] = {}

    def towards(other: str) -> Optional[str]:
        return ways.get(other)

    monkeypatch.setattr(_addresses, "towards", towards)
    return ways


def test_ranks_of_one_machine_stay_on_its_loopback_interface() -> None:
    hosts = [Host("a", "10.0.0.1", False), Host("a", None, False)]
    assert _addresses.of_rank_0(hosts) == ("127.0.0.1", {"a": "127.0.0.1"})


def test_rank_0_advertises_the_address_on_the_way_to_the_others(routes: Dict[str, str]) -> None:
    routes.update({"10.0.0.2": "10.0.0.1", "10.0.0.3": "10.0.0.1"})
    hosts = [Host("a", "192.168.0.1", False), Host("b", "10.0.0.2", False)]
    hosts += [Host("b", "10.0.0.2", False), Host("c", "10.0.0.3", False)]
    expected = dict.fromkeys(["a", "b", "c"], "10.0.0.1")
    assert _addresses.of_rank_0(hosts) == ("10.0.0.1", expected)


def test_hosts_on_different_networks_get_different_addresses(routes: Dict[str, str]) -> None:
    routes.update({"10.0.0.2": "10.0.0.1", "fd00::2": "fd00::1"})
    hosts = [Host("a", "10.0.0.1", False), Host("b", "10.0.0.2", False)]
    bind, reached = _addresses.of_rank_0([*hosts, Host("c", "fd00::2", False)])
    assert bind == "[::]"
    assert reached == {"a": "127.0.0.1", "b": "10.0.0.1", "c": "[fd00::1]"}
    routes["172.16.0.2"] = "172.16.0.1"
    bind, reached = _addresses.of_rank_0([*hosts, Host("c", "172.16.0.2", False)])
    assert (bind, reached["c"]) == ("0.0.0.0", "172.16.0.1")


def test_without_a_route_the_own_address_is_used_or_a_remedy_is_given(
    routes: Dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    routes.clear()
    hosts = [Host("a", "10.0.0.1", False), Host("b", None, False)]
    assert _addresses.of_rank_0(hosts)[0] == "10.0.0.1"
    nowhere = [Host("a", None, False), Host("b", None, False)]
    with pytest.raises(meetpoint.RankError) as raised:
        _addresses.of_rank_0(nowhere)
    assert _addresses.HOST in str(raised.value.remedy)
    monkeypatch.setenv(_addresses.HOST, "head.example")
    assert _addresses.of_rank_0(nowhere) == ("head.example", dict.fromkeys("ab", "head.example"))


def test_loopback_addresses_are_not_advertised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _addresses.towards("127.0.0.1") is None
    assert _addresses.towards("localhost") is None
    assert _addresses.towards("no host has such a name") is None
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    own = _addresses.own()
    assert own is None or not own.startswith("127.")
