"""The position of a loader: the rank that it loads for, its position in the epoch, and its
state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from . import _distributed, _native, _world
from ._arguments import whole
from ._measured import Measured
from ._state import Position, States, position_of
from ._world import World
from .errors import ClosedError, RankError, StateError

if TYPE_CHECKING:
    from ._checked import Checked


class Resumable(Measured):
    """The part of a loader that opens the native one for its rank, and resumes epochs."""

    def __init__(self, checked: "Checked") -> None:
        super().__init__()
        settings, world = checked.settings, checked.world
        self._settings = settings
        self._strategy = settings["strategy"]
        self._sampler = checked.sampler
        self._given = checked.given_world
        self._world = world
        self._rendezvous = checked.rendezvous
        self._is_closed = False
        # The rank that the native loader is for; ``None`` if it has to be reopened.
        self._opened_for: Optional[Tuple[int, int]] = None
        self._native = self._open(may_wait=True)
        description, checksum = self._native.sampler
        self._fixed: Dict[str, Any] = {
            "dataset": self._native.dataset_sha256,
            "recipe": self._native.recipe_hash,
            "batch_size": settings["batch_size"],
            "drop_last": settings["drop_last"],
            "sampler": description,
            "sampler_sha256": checksum,
            "seed": settings["seed"],
            "world_size": world.size,
            "rank": world.rank,
        }
        self._batches = self._native.batches
        self._position = Position(epoch=0)
        # The state that was loaded, until a batch of it is handed out.
        self._loaded: Optional[States] = None
        # Difference to the epochs of frameworks, which count from 0 again after a resume.
        self._epoch_offset = 0
        # A batch was handed out, so the rank cannot change any more.
        self._is_used = False

    def _open(self, *, may_wait: bool) -> _native.Loader:
        """Opens the native loader for this rank.

        Ranks from the environment may not be able to meet yet. With ``may_wait``, only the host's
        part is opened then; devices follow when an iteration begins.
        """
        world = self._world
        settings: _native.Settings = {**self._settings, "rank": world.rank, "ranks": world.size}
        has_devices = bool(settings["sockets"] or settings["remotes"] or settings["commands"])
        if world.size > 1 and has_devices and settings["strategy"] != "host-only":
            is_early = not _distributed.can_meet(self._rendezvous)
            if may_wait and is_early and world.source == _world.ENVIRONMENT:
                self._opened_for = None
                settings["strategy"] = "host-only"
                settings["sockets"], settings["remotes"], settings["commands"] = [], [], []
                return _native.Loader(settings)
            job = (
                f"strategy {settings['strategy']} (order {settings['order']}, window "
                f"{settings['window']}), batches of {settings['batch_size']} (drop_last "
                f"{settings['drop_last']}, sampler {self._sampler}, seed "
                f"{settings['seed']}), and the recipe\n{settings['recipe']}"
            )
            settings["meeting"] = _distributed.meeting(world, self._rendezvous, job)
        opened = _native.Loader(settings)
        self._opened_for = world.place
        return opened

    def _look(self) -> None:
        """Determines the rank again, which may change until a batch was handed out."""
        if not self._is_used:
            self._become(_world.look(self._given, self._rendezvous.place))

    def _become(self, world: World) -> None:
        """Changes to this rank if its source has at least the precedence of the present one."""
        if not world.replaces(self._world):
            return
        if world.place != self._world.place:
            fixed = {**self._fixed, "rank": world.rank, "world_size": world.size}
            batches, _ = self._native.size_of(*world.place)
            resumed: List[Dict[str, Any]] = []
            position = Position(epoch=self._position.epoch)
            if self._loaded is not None:
                samples = self._native.samples_per_epoch
                position, resumed = position_of(self._loaded, fixed, samples, batches)
            self._fixed, self._batches = fixed, batches
            self._position, self._resumed = position, resumed
            self._divided = {}
            self._note_division(position)
        self._world = world

    def _settle(self) -> None:
        """Reopens the native loader if the rank has changed since it was opened.

        :raises RankError: batches were already handed out as another rank.
        """
        world = _world.look(self._given, self._rendezvous.place)
        if self._is_used and world.replaces(self._world) and world.place != self._world.place:
            raise RankError(
                f"this loader has handed out batches as {self._world}, but this process is now "
                f"{world}",
                remedy=(
                    "initialise torch.distributed before making the loader or iterating over "
                    "it, or load its state_dict() into a new loader"
                ),
            )
        self._look()
        self._world.check_decided()
        if self._opened_for == self._world.place or self._is_closed:
            return
        self._native.close()
        self._opened_for = None
        self._native = self._open(may_wait=False)
        self._batches = self._native.batches
        if self._exporter is not None:
            self._exporter._move(self._native, *self._world.place)

    def __len__(self) -> int:
        """Batches of an epoch."""
        self._look()
        return self._batches

    @property
    def epoch(self) -> int:
        """The epoch of the latest iteration, or before the first iteration, its epoch."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch of the next iteration, as with ``DistributedSampler.set_epoch``.

        If a state of this epoch was loaded, the iteration resumes in the middle of it.
        """
        self._epoch_offset = 0
        self._begin_at(whole("epoch", epoch))

    def seek(self, step: int) -> None:
        """Starts the next iteration at this step of its epoch, as if earlier steps had been taken.

        :meth:`set_epoch` selects the epoch.

        :param step: number of batches of this rank to skip, from 0 to ``len(loader)``.
        :raises SettingError: there is no such step.
        :raises StateError: the order of batches differs between runs, as under ``"wrr"``, so a step
            does not determine the batches before it.
        :raises ClosedError: the loader was closed.
        """
        if self._is_closed:
            raise ClosedError("the loader was closed", remedy="make another loader")
        self._settle()
        step = whole("step", step, self._batches)
        if step and not self._native.has_host_order:
            raise StateError(
                f"cannot seek step {step}: with strategy {self._strategy!r} the order of batches "
                "differs between runs",
                remedy=(
                    'resume with load_state_dict(), or make the loader with order="baseline"'
                ),
            )
        self._loaded = None
        self._position = Position(self._upcoming().epoch, [(0, step)] if step else None)

    def _begin_at(self, epoch: int) -> None:
        position = self._position
        if self._is_past(position) or position.epoch != epoch:
            self._position, self._loaded = Position(epoch=epoch), None

    def _set_epoch_of_pass(self, epoch: int) -> None:
        """As :meth:`set_epoch`, called by a framework that numbers its passes itself."""
        epoch = whole("epoch", epoch)
        if self._loaded is not None:
            self._epoch_offset = self._position.epoch - epoch
        self._begin_at(max(0, epoch + self._epoch_offset))

    def _left(self) -> Tuple[int, List[int]]:
        """The epoch of the next iteration, and the batches that are left of it."""
        self._settle()
        position = self._upcoming()
        consumed = {batch for start, end in position.ranges for batch in range(start, end)}
        return position.epoch, [it for it in range(self._batches) if it not in consumed]

    def _skip(self, epoch: int, batches: Sequence[int]) -> None:
        """Makes the next iteration one of this epoch, without the first of the batches left.

        :raises StateError: the order is not fixed, so these batches are not determined.
        """
        self._begin_at(epoch)
        if not batches:
            return
        self._settle()
        if not self._native.has_host_order:
            raise StateError(
                f"cannot skip the first {len(batches)} batches of epoch {epoch}: with strategy "
                f"{self._strategy!r} the order of batches differs between runs",
                remedy='resume with load_state_dict(), or make the loader with order="baseline"',
            )
        self._position = self._upcoming().without(batches)

    def _samples_of_rank(self) -> int:
        self._look()
        _, samples = self._native.size_of(*self._world.place)
        return samples

    def _is_past(self, position: Position) -> bool:
        """Whether the next iteration is of the next epoch."""
        # An iteration without a batch taken does not count: Lightning begins each epoch twice.
        return position.is_begun and (position.is_used or len(position) >= self._batches)

    def _upcoming(self) -> Position:
        """The position at which the next iteration begins."""
        position = self._position
        return Position(epoch=position.epoch + 1) if self._is_past(position) else position

    def state_dict(self) -> Dict[str, Any]:
        """The position of the loader: a small dictionary that JSON can store.

        It counts delivered batches, so batches prepared ahead are neither lost nor repeated.
        """
        self._look()
        position = self._position
        if len(position) >= self._batches:
            position = Position(epoch=position.epoch + 1)
        return {"version": 2, **self._fixed, **position.to_dict()}

    def load_state_dict(self, state: States) -> None:
        """Resumes: the next iteration yields the remaining batches of the state.

        Under ``host-only``, ``device-only`` and ``windowed`` the order is that of the interrupted
        epoch; under ``mte`` and ``mte-feedback`` too, if the split was already known. Under ``wrr``
        the batches are the same, but their order may differ. The number of workers, the devices and
        the strategy may change.

        The number of ranks may change too: the remaining whole batches of all ranks are divided
        among the new ranks. If they do not divide evenly, as few batches as possible are repeated
        (with ``drop_last``: dropped) to give all ranks equal steps; :meth:`report` names them.
        Pass the states of all ranks as a list, or any single state if ranks consume in order
        (``host-only``, ``device-only``) and no other number of ranks began the epoch.

        :raises StateError: the state is of another dataset, recipe, seed or batch size, or it is
            not sufficient.
        """
        self._look()
        samples = self._native.samples_per_epoch
        position, self._resumed = position_of(state, self._fixed, samples, self._batches)
        self._end_iterator()
        self._position, self._loaded = position, state
        self._note_division(position)
