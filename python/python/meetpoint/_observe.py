"""Observations of a loader: explanations, energy, metrics."""

from __future__ import annotations

import json
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Type

from . import _native
from ._arguments import seconds, text, text_or_none, whole
from ._closing import Closing
from ._results import GpuUse, of_data
from .errors import ClosedError, MetricsWarning, SettingError

__all__ = [
    "Ceiling",
    "Energy",
    "EnergyComponent",
    "Explanation",
    "MetricsExporter",
    "MetricsServer",
    "Replay",
]

_PORT_MAX = 65535


class Ceiling(NamedTuple):
    """How fast a stage would be if it never waited for another."""

    stage: str
    """``"host-read"``, ``"host-compute"``, ``"device"``, ``"hand-over"``, ``"transform"`` (the
    ``batch_transform``) or ``"step"``."""
    measured_batches_per_second: Optional[float]
    modelled_batches_per_second: Optional[float]
    """Computed from measurements. One of the two rates is ``None``."""
    basis: str
    """How the rate was determined: ``"workers"``, ``"devices"``, ``"fetch-thread"``,
    ``"transform"``, ``"replay"`` or ``"steps"``."""
    seconds: float
    """Seconds of the epoch that the consumer waited for the stage; for the step, its duration."""


class Explanation(NamedTuple):
    """Whether loading limited an epoch, which stage did, and the possible gain.

    ``str()`` returns the explanation in sentences.
    """

    epoch: int
    is_loading: bool
    """Whether the consumer waited for batches for more than a twentieth of the time."""
    stage: str
    """The stage that took most time: a stage of loading if loading limited the consumer, otherwise
    ``"transform"`` or ``"step"``."""
    waited_share: float
    """Share of the time that the consumer waited, without the time until the first batch."""
    startup_seconds: float
    """Time until the first batch."""
    measured_gain: Optional[float]
    """Speedup of the epoch if every batch were ready when requested, measured by
    :meth:`Loader.replay`."""
    modelled_gain: Optional[float]
    """The same, estimated from the steps of the epoch; ``None`` if they take no time."""
    workers: int
    """Background threads that prepared batches."""
    advice: Optional[str]
    """The remedy for the slowest stage: ``"faster-reads"``, ``"use-workers"``, ``"more-workers"``,
    ``"add-device"``, ``"prepare-offline"``, ``"smaller-device-share"``, ``"larger-spool"`` or
    ``"transform-in-recipe"``; ``None`` if that stage is the step."""
    transform: Optional[Dict[str, float]]
    """``seconds_per_batch`` and ``share`` of the time of the batch transform; ``None`` without."""
    contention: Optional[Dict[str, float]]
    """``step_seconds`` and ``replayed_step_seconds`` if a replay showed that preparation slows the
    steps down."""
    cache: Optional[Dict[str, int]]
    """``hits``, ``misses``, ``bytes``, ``budget_bytes`` and more of the cache; ``None`` without."""
    store: Optional[Dict[str, int]]
    """``fetched_bytes``, ``requests``, ``retries``, ``read_bytes``, ``hit_bytes``,
    ``evicted_bytes`` and ``refetched_bytes`` of a dataset in a store; ``None`` without one."""
    delivery: Optional[Dict[str, Any]]
    """``device``, ``batches``, ``bytes``, ``resident_bytes``, ``direct_bytes``, ``transfer_ns``,
    ``convert_ns``, ``late_batches``, ``gpu_idle_ns`` and more of batches that were delivered to a
    GPU, as in docs/report-schema.md; ``None`` if batches stay on the host."""
    gpu: Optional[GpuUse]
    """What the GPU of ``gpu_decode`` did; ``None`` without one."""
    gpu_meters: List[Dict[str, Any]]
    """NVML's measurements of each graphics board in the latest :meth:`Loader.energy` block:
    ``meter``, ``board``, ``seconds``, ``samples``, ``joules`` and ``joules_per_sample`` (``None``
    if the meter failed), and ``utilisation`` (mean share of the time in which a kernel ran, 0 to 1,
    or ``None``). Other processes on the board are included. Empty without such a block."""
    tuning: Optional[Dict[str, Any]]
    """``start``, ``end`` (each ``workers`` and ``ahead``), ``budget``, ``tried``, ``kept``,
    ``rolled_back`` and ``refused`` of ``tune="auto"``; ``None`` without."""
    ceilings: List[Ceiling]
    sentences: List[str]
    """All of this in sentences."""

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def explanation(text: str) -> Explanation:
    """From the runtime's JSON."""
    said: Dict[str, Any] = json.loads(text)
    said["ceilings"] = [Ceiling(**ceiling) for ceiling in said["ceilings"]]
    if said["gpu"] is not None:
        said["gpu"] = of_data(GpuUse, said["gpu"])
    return Explanation(**said)


class Replay:
    """Ready batches, repeated, to measure the consumer when it never waits.

    Iterating yields what the loader yielded, and measures the time between batches.
    """

    def __init__(self, batches: List[Any], steps: int, done: Callable[[float], None]) -> None:
        if not batches:
            raise ClosedError("the epoch has no batch to be replayed", remedy="begin another")
        self._batches = batches
        self._steps = steps
        self._done = done

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        times: List[float] = []
        for step in range(self._steps):
            begun = time.perf_counter()
            yield self._batches[step % len(self._batches)]
            times.append(time.perf_counter() - begun)
        # The first step may compile or allocate, which no later one does.
        counted = times[1:] or times
        self._done(sum(counted) / len(counted))


class EnergyComponent(NamedTuple):
    """Joules of one component, by one source."""

    name: str
    joules: Optional[float]
    """``None`` if the meter failed."""
    figure: str
    """``"measured"`` or ``"modelled"``."""
    source: str
    """The meter and what it covers, or the power model and its hash."""
    adds_up: bool
    """Whether it is included in the sum; components that are not overlap with others."""
    utilisation: Optional[float] = None
    """Mean share of the time in which a graphics board ran a kernel, 0 to 1, for all processes;
    ``None`` for other components, and where the board does not report it."""


class Energy:
    """The energy of a ``with`` block. Measured and modelled joules are never added up.

    ``components`` is empty until the block has ended.
    """

    def __init__(self, loader: Callable[[], _native.Loader], power: Optional[str]) -> None:
        # A loader reopens its native loader when it learns its rank as iteration begins.
        self._loader = loader
        self._power = power
        self._native: Optional[_native.Energy] = None
        self.seconds: float = 0.0
        """Length of the block."""
        self.components: List[EnergyComponent] = []
        """Every meter, then every component of the model."""
        self.measured_joules: Optional[float] = None
        """Sum of the meters that do not overlap; ``None`` if there is none or one failed."""
        self.nothing_measured_because: Optional[str] = None
        """Why no meter works here."""
        self.modelled_joules: Optional[float] = None
        """Energy of the whole node by the power model."""
        self.model: Optional[str] = None
        """``modelled(PROFILE@HASH)``: name and hash of the power file."""
        self.unverified_watts: List[str] = []
        """Values of the power model whose source was not checked."""
        self.model_leaves_out: Optional[str] = None
        """What the modelled joules do not cover."""

    def __enter__(self) -> "Energy":
        if self._native is not None:
            raise SettingError(
                "this block was begun before", remedy="ask for another with energy()"
            )
        self._native = self._loader().begin_energy(self._power)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        assert self._native is not None
        said: Dict[str, Any] = json.loads(self._loader().end_energy(self._native))
        measured, modelled = said["measured"], said["modelled"]
        self.seconds = said["seconds"]
        for meter in measured["meters"]:
            source = f"meter {meter['name']}: {meter['covers']}"
            if meter["failure"] is not None:
                source += f" (failed: {meter['failure']})"
            self.components.append(
                EnergyComponent(
                    meter["name"],
                    meter["joules"],
                    "measured",
                    source,
                    meter["adds_up"],
                    meter["utilisation"],
                )
            )
        for part in modelled["components"]:
            self.components.append(
                EnergyComponent(part["name"], part["joules"], "modelled", modelled["source"], True)
            )
        self.measured_joules = measured["joules"]
        self.nothing_measured_because = measured["nothing_because"]
        self.modelled_joules = modelled["joules"]
        self.model = modelled["source"]
        self.unverified_watts = modelled["unverified"]
        self.model_leaves_out = modelled["leaves_out"]

    def __str__(self) -> str:
        lines = [f"{self.seconds:.3f} s"]
        if self.nothing_measured_because is not None:
            lines.append(f"measured: nothing ({self.nothing_measured_because})")
        for part in self.components:
            figures = "failed" if part.joules is None else f"{part.joules:.3f} J"
            if part.utilisation is not None:
                figures += f", busy for {100 * part.utilisation:.0f} % of the time"
            lines.append(f"{part.figure} {part.name}: {figures} [{part.source}]")
        if self.measured_joules is not None:
            lines.append(f"measured, meters that do not overlap: {self.measured_joules:.3f} J")
        if self.modelled_joules is not None:
            lines.append(f"modelled, whole node: {self.modelled_joules:.3f} J [{self.model}]")
        return "\n".join(lines)


class MetricsServer(Closing):
    """Answers ``GET /metrics`` with a loader's metrics, on a separate thread, until closed."""

    def __init__(self, metrics: Callable[[], str], host: str, port: int) -> None:
        host, port = text("host", host), whole("port", port, _PORT_MAX)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                if self.path.split("?")[0] != "/metrics":
                    self.send_error(404, "the metrics are at /metrics")
                    return
                body = metrics().encode()
                self.send_response(200)
                kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Scrapes are not logged."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, UnicodeError) as error:
            raise SettingError(
                f"metrics cannot be served at {host!r}, port {port} ({error})",
                remedy=(
                    "give an address of this machine, and another port, or 0 for any that is free"
                ),
            ) from error
        self._server.daemon_threads = True
        thread = threading.Thread(
            target=self._server.serve_forever, name="meetpoint-metrics", daemon=True
        )
        thread.start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    def __repr__(self) -> str:
        address = str(self._server.server_address[0])
        host = f"[{address}]" if ":" in address else address
        return f"<MetricsServer http://{host}:{self.port}/metrics>"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()


class MetricsExporter(Closing):
    """Sends a loader's metrics to an OpenTelemetry collector, on a separate thread, until closed.

    Training never waits for the collector. The first export that fails causes a
    :class:`MetricsWarning` when the next batch is requested or the loader is closed.
    """

    def __init__(
        self,
        loader: _native.Loader,
        endpoint: Optional[str],
        interval: Optional[float],
        attributes: Mapping[str, str],
        rank: int,
        ranks: int,
    ) -> None:
        if not isinstance(attributes, Mapping):
            raise SettingError(
                f"attributes is {attributes!r}", remedy="set attributes to names and their values"
            )
        self._settings: _native.ExportSettings = {
            "endpoint": text_or_none("endpoint", endpoint),
            "interval": None if interval is None else seconds("interval", interval),
            "attributes": [(str(key), str(value)) for key, value in attributes.items()],
            "rank": rank,
            "ranks": ranks,
        }
        self._native = loader.export_metrics(self._settings)
        self._is_closed = False

    def _move(self, loader: _native.Loader, rank: int, ranks: int) -> None:
        """Continues with the native loader that replaced the previous one."""
        if not self._is_closed:
            self._settings["rank"], self._settings["ranks"] = rank, ranks
            self._native = loader.export_metrics(self._settings)

    @property
    def exports(self) -> int:
        """Number of successful exports."""
        return self._native.exports

    @property
    def failures(self) -> int:
        """Number of failed exports."""
        return self._native.failures

    @property
    def failure(self) -> Optional[str]:
        """Why the last failed export failed."""
        return self._native.failure

    def flush(self, timeout: float = 10.0) -> bool:
        """Exports now, and waits at most this many seconds. Returns whether it succeeded."""
        return self._native.flush(timeout)

    def close(self) -> None:
        """Exports once more, for at most a second, and stops."""
        self._is_closed = True
        self._native.close()
        self._warn()

    def _warn(self) -> None:
        failure = self._native.take_failure()
        if failure is not None:
            warnings.warn(failure, MetricsWarning, stacklevel=3)
