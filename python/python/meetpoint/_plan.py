"""Profiles and plans: what to prepare once, and how to run the rest.

Both run the program of this package as a separate process, whose options are those of
``meetpoint profile`` and ``meetpoint plan``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _arguments, _native
from ._arguments import Recipe, compose
from ._devices import Emulated, Remote
from ._loader_types import Path
from ._options import Size
from ._program import own_command
from .errors import DatasetError, MeetpointError, SettingError
from .samplers import Sequential, Shuffled

__all__ = ["Plan", "Profile", "plan", "profile"]


@dataclass(frozen=True)
class Profile:
    """The measurements of a profile, and the stored form that it chose."""

    results: List[Dict[str, Any]]
    """Every strategy with its measurements; docs/planning.md lists the fields."""
    decision: Dict[str, Any]
    """The strategies in order, the best first, and changes that would lead to another decision."""
    document: Dict[str, Any] = field(repr=False)
    """The whole document that ``meetpoint profile --json`` prints."""

    @property
    def best(self) -> Dict[str, Any]:
        """The measurements of the best strategy."""
        index: int = self.decision["ranked"][0]["index"]
        return self.results[index]


@dataclass(frozen=True)
class Plan:
    """A plan: what to prepare once, and how to run the rest."""

    text: str = field(repr=False)
    """The plan as a job file."""
    file: Optional[str]
    """The file to which it was written; ``None`` if it was not written."""
    sentences: List[str]
    """The choice, the reasons, the runner-up, and changes that would lead to another choice."""
    document: Dict[str, Any] = field(repr=False)
    """The whole document that ``meetpoint plan --json`` prints."""

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def profile(
    recipe: Recipe,
    dataset: Path,
    *,
    epochs: int = 10,
    samples: Union[int, str] = "auto",
    runs: int = 3,
    threads: Sequence[int] = (0,),
    codecs: Sequence[str] = ("none", "lz4", "zstd"),
    gpu_decode: Optional[str] = None,
    batch_size: Optional[int] = None,
    storage_limit: Optional[Size] = None,
    memory_limit: Optional[Size] = None,
    confidence: float = 0.95,
    allow_loss: bool = False,
    seed: int = 0,
    temporary: Optional[Path] = None,
    csv: Optional[Path] = None,
    plot: Optional[Path] = None,
) -> Profile:
    """Measures which operations of a recipe to run once in advance, and chooses.

    :param epochs: number of epochs to plan for.
    :param samples: samples to measure; ``"auto"`` increases their number until the best is certain.
    :param runs: runs of each strategy; the decision cannot be certain before two.
    :param threads: numbers of threads; 0 for one per core.
    :param codecs: codecs of stored samples.
    :param gpu_decode: GPU with which strategies are also measured, such as ``"cuda:0"``.
    :param batch_size: samples in each batch that is measured with this GPU; 32 by default.
    :param storage_limit: maximum number of bytes to store in addition to the dataset.
    :param memory_limit: maximum memory for caches.
    :param confidence: confidence that is required to call the best certain.
    :param allow_loss: whether forms may be chosen in which pictures are encoded as JPEG again.
    :param temporary: folder for temporary files; by default the one that contains the dataset.
    :param csv: file to which all results are saved.
    :param plot: file for a chart, ending in ``.svg`` or ``.html``.
    :raises SettingError: an argument out of its range, or limits that no strategy fits.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = ["profile", _recipe_file(recipe, os.path.join(folder, "recipe.toml"))]
        words += [os.fspath(dataset), f"--epochs={epochs}", f"--samples={samples}"]
        words += [f"--runs={runs}", f"--threads={','.join(str(it) for it in threads)}"]
        words += [f"--codecs={','.join(codecs)}", f"--confidence={confidence}", f"--seed={seed}"]
        words += _sizes(storage_limit=storage_limit, memory_limit=memory_limit)
        words += [] if gpu_decode is None else [f"--gpu-decode={gpu_decode}"]
        words += [] if batch_size is None else [f"--batch-size={batch_size}"]
        words += ["--allow-loss"] if allow_loss else []
        words += _files(temporary=temporary, csv=csv, plot=plot)
        document = _run(words)
    return Profile(document["results"], document["decision"], document)


def plan(
    recipe: Recipe,
    dataset: Path,
    output: Optional[Path] = None,
    *,
    profile: Optional[Path] = None,
    epochs: int = 10,
    batch_size: int = 32,
    seed: int = 0,
    shuffle: bool = True,
    device: Union[str, Emulated, None] = None,
    gpu_decode: Optional[str] = None,
    step: Optional[float] = None,
    step_gpu: Optional[str] = None,
    goal: str = "time",
    power: Optional[str] = None,
    storage_limit: Optional[Size] = None,
    memory_limit: Optional[Size] = None,
    pin: Optional[Mapping[str, Any]] = None,
    confidence: float = 0.95,
    allow_loss: bool = False,
    runs: Optional[int] = None,
    samples: Optional[int] = None,
    temporary: Optional[Path] = None,
    force: bool = False,
) -> Plan:
    """Plans what to prepare once, and how to run the rest: host, device, GPU, workers, cache.

    ``Loader(plan=output)`` and ``meetpoint run --plan`` apply the plan.

    :param output: file for the plan; ``None`` only explains it. A recipe that is not a file is
        written next to it, as ``<output>.recipe.toml``.
    :param profile: results of an earlier profile (``csv=``), instead of measuring.
    :param epochs: number of epochs to plan for.
    :param device: ``"emulated"`` or an :class:`Emulated` that may prepare batches.
    :param gpu_decode: GPU that may prepare a share of each batch of the host, such as ``"cuda:0"``.
    :param step: seconds of a training step; without it, the accelerator never waits.
    :param step_gpu: GPU of the training steps. By default, it is the one that prepares samples, and
        preparing delays the steps.
    :param goal: the quantity to minimise, ``"time"`` or ``"energy"`` (modelled).
    :param storage_limit: maximum number of bytes to store in addition to the dataset.
    :param memory_limit: maximum memory for batches and cache.
    :param pin: values to fix: ``{"workers": 2, "cache": 0}``.
    :param runs: runs of each measurement; ``samples``: samples to measure.
    :param force: whether an existing file is replaced.
    :raises SettingError: an argument out of its range, or limits that no strategy fits.
    """
    with tempfile.TemporaryDirectory() as folder:
        beside = os.path.join(folder, "recipe.toml") if output is None else None
        beside = beside or f"{os.path.abspath(os.fspath(output or ''))}.recipe.toml"
        words = ["plan", _recipe_file(recipe, beside), os.fspath(dataset)]
        words += [f"--epochs={epochs}", f"--batch-size={batch_size}", f"--seed={seed}"]
        words += [f"--goal={goal}", f"--confidence={confidence}"]
        words += [] if shuffle else ["--no-shuffle"]
        words += [] if device is None else [f"--device={_device(device)}"]
        words += [] if gpu_decode is None else [f"--gpu-decode={gpu_decode}"]
        words += [] if step is None else [f"--step={round(step * 1e9)}ns"]
        words += [] if step_gpu is None else [f"--step-gpu={step_gpu}"]
        words += [] if power is None else [f"--power={power}"]
        words += _sizes(storage_limit=storage_limit, memory_limit=memory_limit)
        words += [f"--pin={key}={_pinned(key, value)}" for key, value in (pin or {}).items()]
        words += ["--allow-loss"] if allow_loss else []
        words += [] if runs is None else [f"--runs={runs}"]
        words += [] if samples is None else [f"--samples={samples}"]
        words += ["--force"] if force else []
        words += _files(profile=profile, temporary=temporary, output=output)
        document = _run(words)
    return Plan(document["plan"], document["file"], document["sentences"], document)


def fill(given: Dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Sets the arguments of a loader that have their defaults to the values of its plan.

    :raises SettingError: a plan for another recipe or dataset.
    """
    recipe = None if given["recipe"] is None else compose(given["recipe"]).to_toml()
    dataset = None if given["dataset"] is None else _arguments.paths("dataset", given["dataset"])
    path = _arguments.path_or_none("plan", given["plan"])
    assert path is not None
    planned: Dict[str, Any] = json.loads(_native.read_plan(path, dataset, recipe))
    samplers = {"shuffled": Shuffled, "sequential": Sequential}
    sampler = planned.pop("sampler")
    if given["sampler"] is None and sampler not in samplers:
        raise SettingError(
            f"the plan has the sampler {sampler!r}", remedy="give it as the argument sampler"
        )
    if given["sampler"] is None and not given["shuffle"]:
        given["sampler"] = samplers[sampler]()
    devices = [_device_of(device) for device in planned.pop("devices")]
    planned["device"] = devices or None
    planned["recipe"] = _compose_of(planned["recipe"])
    if given["gpu_decode"] is False:
        # They belong to the GPU that is turned off.
        for name in ("gpu_share", "gpu_memory"):
            planned.pop(name, None)
    names = {"workers": "num_workers", "prefetch": "prefetch_factor"}
    for name, value in planned.items():
        other = names.get(name)
        is_given = given[name] != defaults.get(name) or (other and given[other] is not None)
        if name == "recipe" or name == "dataset" or not is_given:
            given[name] = value


def _compose_of(toml: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recipe.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(toml)
        return compose(path)


def _device_of(device: Dict[str, Any]) -> Union[str, Emulated, Remote]:
    if "address" in device:
        return Remote(**device)
    socket = device.get("socket")
    return Emulated(**device) if socket is None else f"unix:{socket}"


def _recipe_file(recipe: Recipe, beside: str) -> str:
    """The name of a recipe, which is written to a file if it is an object."""
    if isinstance(recipe, (str, os.PathLike)):
        return os.fspath(recipe)  # pyright: ignore[reportUnknownArgumentType]
    with open(beside, "w", encoding="utf-8") as file:
        file.write(compose(recipe).to_toml())
    return beside


def _device(device: Union[str, Emulated]) -> str:
    if isinstance(device, str):
        return device
    units = {"read_bandwidth": "B/s", "write_bandwidth": "B/s"}
    words = ["emulated"]
    for key in ("cpu_ratio", "read_bandwidth", "write_bandwidth"):
        value = getattr(device, key)
        if value is not None:
            words.append(f"{key}={value}{units.get(key, '')}")
    if device.latency is not None:
        words.append(f"latency={round(device.latency * 1e9)}ns")
    return ",".join(words)


def _pinned(key: str, value: Any) -> str:
    return f"{value}B" if key == "cache" and isinstance(value, int) and value else str(value)


def _sizes(**limits: Optional[Size]) -> List[str]:
    words: List[str] = []
    for name, value in limits.items():
        if value is not None:
            size = f"{value}B" if isinstance(value, int) else value
            words.append(f"--{name.replace('_', '-')}={size}")
    return words


def _files(**files: Optional[Path]) -> List[str]:
    return [f"--{name}={os.fspath(path)}" for name, path in files.items() if path is not None]


def _run(words: List[str]) -> Dict[str, Any]:
    """Runs the program; its document, or its error as an exception."""
    command = [*own_command(), "--json", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        printed, _ = process.communicate()
    except BaseException:
        # It removes its temporary files.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    try:
        document: Dict[str, Any] = json.loads(printed)
    except ValueError:
        raise MeetpointError(f"the program ended with {process.returncode} and no result") from None
    error = document.get("error")
    if error is None:
        return document
    message = ": ".join([error["message"], *error.get("because", [])])
    is_usage = error.get("exit_code") == 2 or error.get("cause") in _SETTINGS
    kind = SettingError if is_usage else DatasetError
    raise kind(message, remedy=error.get("remedy"))


_SETTINGS = ("nothing_fits", "not_measured", "no_device", "nothing_to_cache", "exists")
"""Causes of errors that other arguments avoid."""
