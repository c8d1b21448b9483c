"""What a loader measured: reports, explanations, energy, traces and metrics."""

from __future__ import annotations

import os
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Deque,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Union,
)

from . import _native, _world
from ._arguments import path as given_path
from ._arguments import path_or_none, whole
from ._damage import DamagedSample
from ._state import Position

if TYPE_CHECKING:
    from ._observe import Energy, Explanation, MetricsExporter, MetricsServer, Replay

# Epochs of which a report keeps everything; of those before, all but the batches one by one.
_WHOLE_EPOCHS = 4
# Damaged samples that are remembered.
ERRORS_KEPT = 10_000


class Measured:
    """The part of a loader that says what it did."""

    _native: _native.Loader
    _world: _world.World
    _strategy: str
    _batches: int
    _position: Position

    def __init__(self) -> None:
        self._resumed: List[str] = []
        self._epochs: List[Dict[str, Any]] = []
        self._damaged: Deque[DamagedSample] = deque(maxlen=ERRORS_KEPT)
        self._replayed_step: Optional[float] = None
        self._exporter: Optional["MetricsExporter"] = None

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def _end_iterator(self) -> None:
        raise NotImplementedError

    def report(self) -> Dict[str, Any]:
        """What was measured: ``epochs``, as in the reports of `meetpoint run`, and ``notices``.

        An epoch under way is not in it.
        """
        # Importing this package is to take no time.
        import json

        for text in self._native.take_finished():
            self._epochs.append(json.loads(text))
        for epoch in self._epochs[:-_WHOLE_EPOCHS]:
            epoch.pop("records", None)
        return {
            "strategy": self._strategy,
            "batches": self._batches,
            "samples": self._native.samples,
            "epochs": list(self._epochs),
            "notices": [*self._native.notices, *self._resumed, *self._notices_of_rank()],
        }

    def _notices_of_rank(self) -> List[str]:
        if self._world.source != _world.ENVIRONMENT or self._world.size == 1:
            return []
        return [f"this is {self._world}; rank=0 and world_size=1 load everything in this process"]

    def explain(self) -> Optional["Explanation"]:
        """Whether loading held the last epoch up, which stage of it, and what would be gained.

        Of an epoch that has ended, with two batches or more; ``None`` where there is none. After
        :meth:`replay` what would be gained is measured, else it is worked out of the steps.
        """
        from ._observe import explanation

        text = self._native.explain(self._replayed_step)
        return None if text is None else explanation(text)

    def replay(self, batches: int = 4, steps: int = 64) -> "Replay":
        """The first batches of the next epoch, over and over, with nothing prepared meanwhile.

        Train on it for a while: how long its steps take is the pace of training that never waits,
        with which :meth:`explain` goes on. The epoch that it takes batches from is begun again by
        the next iteration; its state is as it was.

        :param batches: how many different ones are kept.
        :param steps: how many are given.
        """
        from ._observe import Replay

        batches, steps = whole("batches", batches, least=1), whole("steps", steps, least=1)
        before, damaged = self._position, list(self._damaged)
        kept: List[Any] = []
        for batch in self:
            kept.append(batch)
            if len(kept) == batches:
                break
        self._end_iterator()
        self._position = before
        self._damaged = deque(damaged, maxlen=ERRORS_KEPT)

        def done(seconds: float) -> None:
            self._replayed_step = seconds

        return Replay(kept, steps, done)

    def energy(self, power: Union[str, "os.PathLike[str]", None] = None) -> "Energy":
        """The energy of a ``with`` block, each figure with its source.

        ::

            with loader.energy() as energy:
                for images, labels in loader:
                    ...
            print(energy)

        :param power: the model of watts: a preset's name (``server``, ``desktop``, …) or a TOML
            file; ``None`` for the default preset.
        """
        from ._observe import Energy

        return Energy(lambda: self._native, path_or_none("power", power))

    def trace(self, path: Union[str, "os.PathLike[str]"]) -> int:
        """Writes the last four epochs that ended as a trace for ui.perfetto.dev or Chrome.

        Who prepared which batch when, what the consumer waited for, how many batches were ready,
        and what went wrong. An epoch under way is not in it; of more than 200,000 batches the last
        are, and the file says how many are not.

        :returns: events written.
        :raises SettingError: ``path`` is none.
        """
        events, _ = self._native.write_trace(given_path("path", path))
        return events

    def metrics(self) -> str:
        """Counters and histograms as Prometheus scrapes them (OpenMetrics text)."""
        return self._native.metrics()

    def serve_metrics(self, port: int = 0, host: str = "127.0.0.1") -> "MetricsServer":
        """Answers ``GET /metrics`` until the server that it gives is closed.

        :param port: 0 for any that is free; the server says which.
        :param host: address to listen on; only this machine can ask where nothing is given.
        :raises SettingError: it cannot listen there.
        """
        from ._observe import MetricsServer

        return MetricsServer(self.metrics, host, port)

    def export_metrics(
        self,
        endpoint: Optional[str] = None,
        *,
        interval: Optional[float] = None,
        attributes: Optional[Mapping[str, str]] = None,
    ) -> "MetricsExporter":
        """Sends metrics to an OpenTelemetry collector (OTLP over gRPC), from now until closed.

        The instruments are those of :meth:`metrics`, counted from now on. What is not given, the
        ``OTEL_*`` variables of the environment say. A collector that is not there, or is silent,
        costs a :class:`MetricsWarning` and holds nothing up.

        :param endpoint: URL such as ``"http://127.0.0.1:4317"``, which is that where nobody says.
        :param interval: seconds between two exports; 10 where nobody says.
        :param attributes: further attributes of the resource, which has ``service.name``,
            ``meetpoint.rank`` and ``meetpoint.world_size``.
        :raises SettingError: an endpoint that cannot be used, a protocol that is not gRPC, or an
            exporter is at it already.
        """
        from ._observe import MetricsExporter

        rank, ranks = self._world.place
        self._exporter = MetricsExporter(
            self._native, endpoint, interval, attributes or {}, rank, ranks
        )
        return self._exporter
