"""Devices on other machines: the batches of the host alone, and every refusal as an exception."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, List, Optional, cast

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T

RECIPE = T.Compose([T.RandomResizedCrop(8), T.RandomHorizontalFlip()])


def meetpoint_program(*arguments: str) -> List[str]:
    return [sys.executable, "-m", "meetpoint", *arguments]


@pytest.fixture(scope="module")
def place(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the dataset, keys and a token."""
    folder = tmp_path_factory.mktemp("remote")
    shutil.copytree(dataset, folder / "copy" / "set")
    keys = ["device", "keys", "keys", "--server", "127.0.0.1", "--client", "client"]
    subprocess.run(meetpoint_program(*keys), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "token").write_text("0123456789abcdef0123456789abcdef")
    return folder


def serve(place: Path, *more: str, listen: str = "tcp://127.0.0.1:0") -> Iterator[str]:
    """The address of a device that serves the copy."""
    words = ["device", "serve", "--listen", listen, "--root", "copies=copy"]
    command = meetpoint_program(*words, "--token-file", "token", "--allow-shared", *more)
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as device:
        assert device.stdout is not None
        line = device.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            device.terminate()


@pytest.fixture
def plain(place: Path) -> Iterator[str]:
    yield from serve(place)


@pytest.fixture
def secured(place: Path) -> Iterator[str]:
    files = ["--ca", "keys/ca.pem", "--cert", "keys/server.pem", "--key", "keys/server.key"]
    yield from serve(place, *files, "--crl", "keys/crl.pem")


def epochs(dataset: str, device: Any, strategy: str = "device-only") -> List[numpy.ndarray]:
    """The images of two epochs, in order."""
    loader = meetpoint.Loader(
        dataset,
        recipe=RECIPE,
        batch_size=4,
        shuffle=True,
        seed=3,
        strategy=strategy,
        device=device,
    )
    with loader:
        return [batch[0].copy() for _ in range(2) for batch in loader]


def same(left: List[numpy.ndarray], right: List[numpy.ndarray]) -> bool:
    return len(left) == len(right) and all(map(numpy.array_equal, left, right))


def test_batches_equal_those_of_the_host_alone(dataset: str, place: Path, secured: str) -> None:
    alone = epochs(dataset, None, "host-only")
    device = meetpoint.Remote(
        secured, keys=place / "keys", token_file=place / "token", root="copies"
    )
    assert same(epochs(dataset, device), alone)
    keys = place / "keys"
    one_by_one = meetpoint.Remote(
        secured,
        ca=keys / "ca.pem",
        cert=keys / "client.pem",
        key=keys / "client.key",
        token_file=place / "token",
    )
    assert same(epochs(dataset, [one_by_one]), alone)


def test_several_agents_of_a_list_prepare_one_epoch(
    dataset: str, place: Path, plain: str
) -> None:
    for other in serve(place, "--threads", "2"):
        device = meetpoint.Remote(f"{plain},{other}", token_file=place / "token")
        alone = epochs(dataset, None, "host-only")
        assert {image.tobytes() for image in epochs(dataset, device)} == {
            image.tobytes() for image in alone
        }


def is_reopened(loader: meetpoint.Loader) -> bool:
    events = (event for epoch in loader.report()["epochs"] for event in epoch["events"])
    return any(event["kind"] == "device_reopened" for event in events)


def test_an_absent_agent_is_one_warning_and_used_once_it_is_there(
    dataset: str, place: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
    device = meetpoint.Remote(address, token_file=place / "token")
    alone = epochs(dataset, None, "host-only")
    loader = meetpoint.Loader(
        dataset,
        recipe=RECIPE,
        batch_size=4,
        shuffle=True,
        seed=3,
        strategy="device-only",
        device=device,
    )
    with loader:
        with pytest.warns(meetpoint.DeviceWarning) as caught:
            images = [batch[0].copy() for batch in loader]
        (warning,) = [it for it in caught if it.category is meetpoint.DeviceWarning]
        said = str(warning.message)
        assert said.startswith(f"the device was lost at the start: no device answers at {address}")
        assert "the host continues alone; start a device with `python -m meetpoint" in said
        assert loader.report()["epochs"][0]["events"][0]["kind"] == "device_lost"
        for _ in serve(place, listen=address):
            images += [batch[0].copy() for batch in loader]
            while not is_reopened(loader):
                assert sum(1 for _ in loader) == len(alone) // 2
            assert sum(1 for _ in loader) == len(alone) // 2
        last = loader.report()["epochs"][-1]
    assert same(images, alone)
    assert last["schedule"]["device_batches"] == len(alone) // 2


def test_several_absent_agents_are_one_warning_that_says_how_many(dataset: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
    said = "device 0 .* 1 more device .*report"
    with pytest.warns(meetpoint.DeviceWarning, match=said) as caught:
        epochs(dataset, f"{address},{address}")
    assert len([it for it in caught if it.category is meetpoint.DeviceWarning]) == 1


def test_names_of_services_need_a_name_server(
    dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEETPOINT_DNS", "name-server")
    with pytest.raises(meetpoint.SettingError, match="not the IP address") as raised:
        epochs(dataset, "srv:agents.test")
    assert raised.value.remedy, raised.value


def test_an_address_takes_the_rest_from_the_environment(
    dataset: str, place: Path, secured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEETPOINT_DEVICE_KEYS", str(place / "keys"))
    monkeypatch.setenv("MEETPOINT_DEVICE_TOKEN_FILE", str(place / "token"))
    assert same(epochs(dataset, secured), epochs(dataset, None, "host-only"))


def test_an_address_is_read_from_a_file(
    dataset: str, place: Path, secured: str, tmp_path: Path
) -> None:
    file = tmp_path / "address"
    device = meetpoint.Remote(f"file:{file}", keys=place / "keys", token_file=place / "token")
    for text, said in (
        (None, "failed to read the address of a device in .*address"),
        ("", "address does not hold the address of a device: it is empty"),
    ):
        if text is not None:
            file.write_text(text)
        with pytest.raises(meetpoint.DeviceError, match=said) as raised:
            epochs(dataset, device)
        assert raised.value.cause == "address_file" and raised.value.remedy, raised.value
    file.write_text(f"{secured}\n")
    assert same(epochs(dataset, device), epochs(dataset, None, "host-only"))


def test_a_device_without_tls_asks_for_its_token(dataset: str, place: Path, plain: str) -> None:
    device = meetpoint.Remote(plain, token_file=place / "token")
    assert same(epochs(dataset, device), epochs(dataset, None, "host-only"))
    with pytest.raises(meetpoint.DeviceError, match="the call has none; give the host the file"):
        epochs(dataset, plain)


def test_ends_that_do_not_trust_each_other_are_refused(
    dataset: str, place: Path, secured: str, tmp_path: Path
) -> None:
    others = ["device", "keys", str(tmp_path), "--client", "client"]
    subprocess.run(meetpoint_program(*others), check=True, stdout=subprocess.DEVNULL)
    token = place / "token"
    for device, said in (
        (meetpoint.Remote(secured, keys=tmp_path, token_file=token), "not signed by a CA"),
        (meetpoint.Remote(secured, keys=place / "no", token_file=token), "failed to read"),
        (meetpoint.Remote(secured, token_file=token), "only TLS"),
        (
            meetpoint.Remote(secured, keys=place / "keys", server_name="csd", token_file=token),
            "for another name",
        ),
        (meetpoint.Remote(secured, keys=place / "keys", token_file=token, root="x"), "no dataset"),
        (meetpoint.Remote("tcp://192.0.2.1:7"), "not be encrypted"),
    ):
        with pytest.raises(meetpoint.DeviceError, match=said) as raised:
            epochs(dataset, device)
        assert raised.value.remedy, raised.value


@pytest.mark.parametrize(
    ("device", "said"),
    [
        (meetpoint.Remote("10.0.0.7:7000"), "address is .10.0.0.7:7000.: it does not begin with"),
        ("tcp://10.0.0.7", "it has no port"),
        ("tcp://a:1,", "it does not begin with tcp://"),
        ("srv:a/b", "srv: must be followed by a DNS name"),
        ("file:", "file: must be followed by a path"),
        (meetpoint.Remote("unix:/s"), "address is .unix:/s.: "),
        (meetpoint.Remote(cast(Any, 5)), "address is 5"),
        (meetpoint.Remote("tcp://a:1", ca="ca.pem"), "give all three, or keys"),
        (meetpoint.Remote("tcp://a:1", crl="crl.pem"), "give all three, or keys"),
        (meetpoint.Remote("tcp://a:1", root=cast(Any, 5)), "root is 5"),
    ],
)
def test_invalid_settings_are_refused(
    dataset: str, device: Any, said: Optional[str]
) -> None:
    with pytest.raises(meetpoint.SettingError, match=said):
        epochs(dataset, device)
