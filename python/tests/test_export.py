"""Metrics for an OpenTelemetry collector; collectors that are unreachable or silent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import warnings
from typing import Dict

import pytest
from collector import Collector
from conftest import COUNT

import meetpoint
from meetpoint import transforms as T

# A limit that no test reaches.
LIMIT = 120


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def loader_of(dataset: str, **arguments: object) -> meetpoint.Loader:
    return meetpoint.Loader(
        dataset, recipe=[T.CenterCrop(16)], **{"batch_size": 8, "workers": 1, **arguments}
    )


def nobodys_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_a_collector_receives_the_counters_of_delivered_batches(dataset: str) -> None:
    with Collector() as collector, loader_of(dataset) as loader:
        with loader.export_metrics(collector.endpoint, interval=3600) as exporter:
            size = sum(images.nbytes for images, _ in loader)
            assert exporter.flush(LIMIT)
            last = collector.exports[-1]
            assert last.total("meetpoint.batches", source="host") == len(loader)
            assert last.total("meetpoint.samples") == COUNT
            assert last.total("meetpoint.handed_out") == size
            assert last.total("meetpoint.epochs") == 1
            assert last.total("meetpoint.host_cpu") > 0
            assert last.waits() == len(loader)
            assert last.resource["service.name"] == "meetpoint"
            assert last.resource["meetpoint.world_size"] == 1
            assert last.resource["process.pid"] == os.getpid()
            # The scraped metrics are the same.
            assert f"meetpoint_samples_total {COUNT}\n" in loader.metrics()
            next(iter(loader))
        assert collector.exports[-1].total("meetpoint.batches") == len(loader) + 1
        assert (exporter.failures, exporter.failure) == (0, None)
        assert exporter.exports == len(collector.exports)


def test_closing_a_loader_sends_the_remaining_counters(dataset: str) -> None:
    with Collector() as collector:
        with loader_of(dataset, rank=1, world_size=2, strategy="host-only") as loader:
            loader.export_metrics(collector.endpoint, interval=3600, attributes={"run": "a"})
            with pytest.raises(meetpoint.SettingError, match="already"):
                loader.export_metrics(collector.endpoint)
            steps = len(list(loader))
        assert collector.exports[-1].total("meetpoint.batches") == steps
        resource = collector.exports[-1].resource
        assert (resource["meetpoint.rank"], resource["run"]) == (1, "a")
        with pytest.raises(meetpoint.ClosedError):
            loader.export_metrics(collector.endpoint)


def test_damage_and_devices_are_counted(dataset: str) -> None:
    device = meetpoint.Emulated(allow_shared=True)
    with Collector() as collector:
        with loader_of(dataset, strategy="device-only", device=device) as loader:
            loader.export_metrics(collector.endpoint, interval=3600)
            batches = len(list(loader))
        last = collector.exports[-1]
        assert last.total("meetpoint.batches", source="device") == batches
        assert last.total("meetpoint.device_busy") > 0


def test_the_environment_supplies_missing_settings(
    dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collector() as collector:
        said: Dict[str, str] = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_METRIC_EXPORT_INTERVAL": "20",
            "OTEL_SERVICE_NAME": "training",
            "OTEL_RESOURCE_ATTRIBUTES": "team=vision,meetpoint.rank=7",
        }
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        with loader_of(dataset) as loader:
            exporter = loader.export_metrics()
            next(iter(loader))
            # Without a request, after every interval.
            while exporter.exports < 3:
                threading.Event().wait(0.01)
        resource = collector.exports[-1].resource
        assert (resource["service.name"], resource["team"]) == ("training", "vision")
        assert resource["meetpoint.rank"] == "7"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        with loader_of(dataset) as loader:
            with pytest.raises(meetpoint.SettingError, match="only by gRPC"):
                loader.export_metrics()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        before = len(collector.exports)
        with loader_of(dataset) as loader:
            exporter = loader.export_metrics()
            list(loader)
            assert not exporter.flush(LIMIT)
        assert len(collector.exports) == before


def test_an_unreachable_collector_is_one_warning(dataset: str) -> None:
    with loader_of(dataset) as loader:
        exporter = loader.export_metrics(f"http://127.0.0.1:{nobodys_port()}", interval=3600)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = iter(loader)
            next(batches)
            assert not exporter.flush(LIMIT)
            assert len(list(batches)) == len(loader) - 1
            assert not exporter.flush(LIMIT)
            loader.close()
        warned = [it for it in caught if it.category is meetpoint.MetricsWarning]
        assert len(warned) == 1 and "failed to send metrics to http" in str(warned[0].message)
        assert warned[0].filename == __file__
        assert exporter.exports == 0 and exporter.failures >= 2


def test_a_silent_collector_delays_nothing(
    dataset: str, leaves_nothing: None
) -> None:
    with Collector(silent=True) as collector:
        with pytest.warns(meetpoint.MetricsWarning, match="no answer"):
            with loader_of(dataset) as loader:
                exporter = loader.export_metrics(collector.endpoint, interval=0.01)
                for _ in range(3):
                    assert len(list(loader)) == len(loader)
                assert not exporter.flush(0.05)
        assert exporter.exports == 0


@pytest.mark.parametrize("interval", [0, -1, float("nan"), 1e9])
def test_invalid_intervals_are_refused(dataset: str, interval: float) -> None:
    with loader_of(dataset) as loader:
        with pytest.raises(meetpoint.SettingError, match="the interval is"):
            loader.export_metrics("http://127.0.0.1:1", interval=interval)
        with pytest.raises(meetpoint.SettingError, match="name an endpoint without TLS"):
            loader.export_metrics("https://127.0.0.1:1")
        with pytest.raises(meetpoint.SettingError, match="endpoint is 5; set endpoint to a text"):
            loader.export_metrics(5)  # type: ignore[arg-type]


CODE = """
import os, sys, meetpoint
from meetpoint import transforms as T
loader = meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8)]), batch_size=2)
exporter = loader.export_metrics(sys.argv[2], interval=0.01)
batches = iter(loader)
next(batches)
child = os.fork()
if child == 0:
    try:
        exporter.flush()
    except meetpoint.ForkError:
        exporter.close()
        loader.close()
        del exporter, batches, loader
        os._exit(0)
    os._exit(1)
print(os.waitpid(child, 0)[1], 1 + sum(1 for _ in batches))
"""


@pytest.mark.parametrize("silent", [False, True])
def test_a_forked_child_does_not_export_and_exit_ends_it(dataset: str, silent: bool) -> None:
    with Collector(silent=silent) as collector:
        command = [sys.executable, "-c", CODE, dataset, collector.endpoint]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert (ran.returncode, ran.stdout.split()) == (0, ["0", "33"]), ran.stderr
        assert ("MetricsWarning" in ran.stderr) == silent
        if not silent:
            # The export at the end is the last one.
            assert collector.exports[-1].total("meetpoint.batches") == 33
