"""Information about a loader: explanations, traces, metrics, energy."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, cast

import pytest

import meetpoint
from meetpoint import transforms as T


def loader_of(dataset: str, **arguments: object) -> meetpoint.Loader:
    return meetpoint.Loader(
        dataset, recipe=[T.CenterCrop(16)], **{"batch_size": 8, "workers": 1, **arguments}
    )


def test_an_epoch_is_explained_and_a_replay_measures_the_possible_gain(dataset: str) -> None:
    with loader_of(dataset) as loader:
        assert loader.explain() is None
        for _ in loader:
            time.sleep(0.1)
        said = loader.explain()
        assert said is not None and said.epoch == 0
        assert not said.is_loading and said.stage == "step"
        assert said.measured_gain is None and said.modelled_gain is not None
        assert {it.stage for it in said.ceilings} >= {"host-compute", "step"}
        assert "not the bottleneck" in str(said)
        state = loader.state_dict()
        seen = [batch for batch in loader.replay(batches=2, steps=6)]
        assert len(seen) == 6 and seen[0] is seen[2]
        assert loader.state_dict() == state
        again = loader.explain()
        assert again is not None and again.epoch == 0 and again.measured_gain is not None
        assert len(list(loader)) == len(loader)
        with pytest.raises(meetpoint.SettingError):
            loader.replay(batches=0)


def test_a_trace_has_every_batch_of_the_last_epochs(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with loader_of(dataset, strategy="wrr", device=meetpoint.Emulated(allow_shared=True)) as loader:
        for _ in range(2):
            assert len(list(loader)) == len(loader)
        events = loader.trace(path)
        with pytest.raises(meetpoint.StorageError, match="failed to write a trace"):
            loader.trace(tmp_path)
    trace = json.loads(path.read_text())
    assert len(trace["traceEvents"]) == events
    steps = [it for it in trace["traceEvents"] if it["ph"] == "X" and it["name"] == "step"]
    assert len(steps) == 2 * len(loader)
    assert all(it["dur"] >= 0 for it in steps)


def value(text: str, name: str) -> float:
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_metrics_count_delivered_batches_and_can_be_scraped(dataset: str) -> None:
    with loader_of(dataset) as loader:
        iterator = iter(loader)
        images, _ = next(iterator)
        text = loader.metrics()
        assert value(text, "meetpoint_batches_total") == 1
        assert value(text, "meetpoint_samples_total") == 8
        assert value(text, "meetpoint_handed_out_bytes_total") == images.nbytes
        for _ in iterator:
            pass
        with loader.serve_metrics() as server:
            url = f"http://127.0.0.1:{server.port}"
            assert f"{url}/metrics" in repr(server)
            with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
                assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
                text = answer.read().decode()
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{url}/other", timeout=30)
        assert value(text, "meetpoint_batches_total") == len(loader)
        assert value(text, "meetpoint_wait_seconds_count") == len(loader)
        assert value(text, "meetpoint_epochs_total") == 1
        assert text.endswith("# EOF\n")


def test_what_cannot_be_served_or_written_is_a_setting_error(dataset: str) -> None:
    with loader_of(dataset) as loader:
        for port in (-1, 65536, "http"):
            with pytest.raises(meetpoint.SettingError, match=f"port is {port!r}; set port to a whole"):
                loader.serve_metrics(cast(Any, port))
        with pytest.raises(meetpoint.SettingError, match="host is 5; set host to a text"):
            loader.serve_metrics(host=cast(Any, 5))
        with loader.serve_metrics() as server:
            with pytest.raises(meetpoint.SettingError, match="another port, or 0") as caught:
                loader.serve_metrics(server.port)
        assert isinstance(caught.value.__cause__, OSError)
        for path in (5, "", "a\0b"):
            with pytest.raises(meetpoint.SettingError, match="to a path"):
                loader.trace(cast(Any, path))
        with pytest.raises(meetpoint.SettingError, match="power is 5; set power to a path"):
            loader.energy(cast(Any, 5))


def test_energy_names_the_source_of_every_figure(dataset: str) -> None:
    with loader_of(dataset) as loader:
        with loader.energy() as energy:
            list(loader)
        assert energy.seconds > 0
        modelled = [it for it in energy.components if it.figure == "modelled"]
        assert {it.name for it in modelled} >= {"host", "dram", "device"}
        assert all(it.source.startswith("modelled(server@") for it in modelled)
        joules = sum(it.joules or 0 for it in modelled)
        assert energy.modelled_joules == pytest.approx(joules)
        measured = [it for it in energy.components if it.figure == "measured"]
        assert (energy.nothing_measured_because is None) == bool(measured)
        assert all(it.source.startswith("meter ") for it in measured)
        assert energy.model_leaves_out is None
        assert "modelled, whole node" in str(energy)
        iterator = iter(loader)
        with loader.energy(power="desktop") as energy:
            next(iterator)
        assert energy.model is not None and energy.model.startswith("modelled(desktop@")
        assert energy.model_leaves_out is not None
        with pytest.raises(meetpoint.SettingError, match="power preset"):
            with loader.energy(power="no-such"):
                pass
