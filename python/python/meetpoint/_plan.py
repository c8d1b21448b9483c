"""Profiles and plans: what to prepare once, and how to run the rest.

Both run the program of this package as a separate process, whose options are those of
``meetpoint profile`` and ``meetpoint plan``.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

from . import _arguments, _gpu, _native
from ._arguments import U32, U64, Recipe, compose, number, whole
from ._devices import Emulated, Remote
from ._loader_types import Path
from ._options import Size
from ._program import own_command
from .errors import DatasetError, GpuError, MeetpointError, SettingError
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
    gpu_decode: Union[str, Literal[False], None] = None,
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
    :param gpu_decode: GPU with which strategies are also measured, such as ``"cuda:0"``; none if
        ``None`` or ``False``.
    :param batch_size: samples in each batch that is measured with this GPU; 32 by default.
    :param storage_limit: maximum number of bytes to store in addition to the dataset.
    :param memory_limit: maximum memory for caches.
    :param confidence: confidence that is required to call the best certain.
    :param allow_loss: whether forms may be chosen in which pictures are encoded as JPEG again.
    :param temporary: folder for temporary files; by default the one that contains the dataset.
    :param csv: file to which all results are saved.
    :param plot: file for a chart, ending in ``.svg`` or ``.html``.
    :raises SettingError: an argument out of its range, or limits that no strategy fits.
    :raises DatasetError: the dataset cannot be opened or measured.
    :raises GpuError: the GPU of ``gpu_decode`` cannot be used.
    """
    gpu = _gpu.name_or_none("gpu_decode", gpu_decode)
    _require("batch_size", batch_size, "gpu_decode", gpu, "cuda:0")
    with tempfile.TemporaryDirectory() as folder:
        words = ["profile", _recipe_file(recipe, os.path.join(folder, "recipe.toml"))]
        words += [os.fspath(dataset), *_numbers(epochs=epochs, seed=seed, runs=runs)]
        words += _numbers(samples=None if samples == "auto" else samples, batch_size=batch_size)
        counts = _arguments.items("threads", threads, "numbers")
        words += [f"--threads={','.join(str(whole('threads', it)) for it in counts)}"]
        words += [f"--codecs={','.join(codecs)}", f"--confidence={confidence}"]
        words += _sizes(storage_limit=storage_limit, memory_limit=memory_limit)
        words += [] if gpu is None else [f"--gpu-decode={gpu}"]
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
    gpu_decode: Union[str, Literal[False], None] = None,
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
    :param gpu_decode: GPU that may prepare a share of each batch of the host, such as ``"cuda:0"``;
        none if ``None`` or ``False``.
    :param step: seconds of a training step, above 0 and at most 86400, a day; without it, the
        accelerator never waits.
    :param step_gpu: GPU of the training steps. By default, it is the one that prepares samples, and
        preparing delays the steps.
    :param goal: the quantity to minimise, ``"time"`` or ``"energy"`` (modelled).
    :param storage_limit: maximum number of bytes to store in addition to the dataset.
    :param memory_limit: maximum memory for batches and cache.
    :param pin: values to fix: ``{"workers": 2, "cache": 0}``.
    :param runs: runs of each measurement; ``samples``: samples to measure.
    :param force: whether an existing file is replaced.
    :raises SettingError: an argument out of its range, or limits that no strategy fits.
    :raises DatasetError: the dataset cannot be opened or measured.
    :raises GpuError: the GPU of ``gpu_decode`` cannot be used.
    """
    gpu = _gpu.name_or_none("gpu_decode", gpu_decode)
    other = None if step_gpu is None else _gpu.name_of("step_gpu", step_gpu)
    _require("step_gpu", other, "step", step, 0.05)
    _require("force", force or None, "output", output, "plan.toml")
    step_ns = None if step is None else _step_ns(step)
    with tempfile.TemporaryDirectory() as folder:
        beside = os.path.join(folder, "recipe.toml") if output is None else None
        beside = beside or f"{os.path.abspath(os.fspath(output or ''))}.recipe.toml"
        words = ["plan", _recipe_file(recipe, beside), os.fspath(dataset)]
        words += _numbers(epochs=epochs, batch_size=batch_size, seed=seed)
        words += _numbers(runs=runs, samples=samples)
        words += [f"--goal={goal}", f"--confidence={confidence}"]
        words += [] if shuffle else ["--no-shuffle"]
        words += [] if device is None else [f"--device={_device(device)}"]
        words += [] if gpu is None else [f"--gpu-decode={gpu}"]
        words += [] if step_ns is None else [f"--step={step_ns}ns"]
        words += [] if other is None else [f"--step-gpu={other}"]
        words += [] if power is None else [f"--power={power}"]
        words += _sizes(storage_limit=storage_limit, memory_limit=memory_limit)
        words += [f"--pin={key}={_pinned(key, value)}" for key, value in (pin or {}).items()]
        words += ["--allow-loss"] if allow_loss else []
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
    device.command()  # Raises an error for settings out of their ranges.
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


def _step_ns(step: Any) -> int:
    """A training step in nanoseconds, at least 1."""
    try:
        seconds = number("step", step, 0, _DAY)
    except SettingError:
        seconds = 0.0
    if not seconds:
        raise SettingError(
            f"step is {step!r}", remedy=f"set step to seconds above 0 and at most {_DAY}, a day"
        )
    return max(1, round(seconds * 1e9))


_DAY = 86_400
"""Longest ``step``, in seconds."""


def _require(name: str, value: object, other: str, given: object, example: object) -> None:
    """Refuses an argument that has no effect without another one."""
    if value is not None and given is None:
        remedy = f"set {other}={example!r}, or leave {name} out"
        raise SettingError(f"{name} has no effect without {other}", remedy=remedy)


_RANGES = {"runs": (1, 1000), "samples": (2, U64), "seed": (0, U64)}
"""Ranges of whole numbers; the others are from 1 to ``U32``."""


def _numbers(**values: Any) -> List[str]:
    """Whole numbers as options; those that are ``None`` are left out."""
    words: List[str] = []
    for name, value in values.items():
        if value is not None:
            least, most = _RANGES.get(name, (1, U32))
            words.append(f"--{name.replace('_', '-')}={whole(name, value, most, least)}")
    return words


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
    # The program draws its progress on a terminal. Elsewhere it writes only notes and errors, and
    # errors become exceptions.
    errors = None if os.isatty(2) else subprocess.PIPE
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        printed, notes = process.communicate()
    except BaseException:
        # It removes its temporary files.
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    said = (notes or b"").decode(errors="replace")
    try:
        document: Dict[str, Any] = json.loads(printed)
    except ValueError:
        message = f"the program ended with {process.returncode} and no result"
        raise MeetpointError(f"{message}: {said.strip()}" if said else message) from None
    error = document.get("error")
    if error is None:
        sys.stderr.write(said)
        return document
    raise _error(error, words[0])


def _error(error: Mapping[str, Any], function: str) -> MeetpointError:
    """The error in a document of ``profile`` or ``plan``."""
    cause: str = error["cause"]
    message = _for_python(": ".join([error["message"], *error["because"]]))
    remedy = None if error["remedy"] is None else _for_python(error["remedy"])
    if cause == "usage":
        return SettingError(message, remedy=f"see help(meetpoint.{function})")
    if error["exit_code"] == 2 or cause in _SETTINGS:
        return SettingError(message, cause=cause, remedy=remedy)
    kind = GpuError if cause.startswith("gpu_") else DatasetError
    return kind(message, cause=cause, remedy=remedy)


_SETTINGS = (
    "batch_too_large",
    "cpu_not_measured",
    "exists",
    "gpu_not_measured",
    "gpu_unused",
    "gpu_with_cache",
    "no_device",
    "no_gpu_watts",
    "not_measured",
    "nothing_fits",
    "nothing_to_cache",
    "other_gpu_pinned",
    "samples_out_of_range",
    "setting_empty",
    "setting_out_of_range",
    "slow_device",
    "small_cache",
)
"""Causes of errors that other arguments avoid."""


def _for_python(text: str) -> str:
    """A text in which options and commands are arguments and functions of Python."""
    return _OPTION.sub(_argument, _COMMAND.sub(r"`meetpoint.\1()`", text))


def _argument(match: "re.Match[str]") -> str:
    """An option as an argument. Commands between backticks, and options of other programs, stay."""
    name = (match["option"] or "").replace("-", "_")
    if name not in {*inspect.signature(profile).parameters, *inspect.signature(plan).parameters}:
        return match[0]
    return f"{name}=True" if name in ("allow_loss", "force") else name


_COMMAND = re.compile(r"`meetpoint (pack|profile|prepare|verify)`")
_OPTION = re.compile(r"`[^`]*`|('?)--(?P<option>[a-z][a-z-]*)(?: <[^>]*>)?\1")
