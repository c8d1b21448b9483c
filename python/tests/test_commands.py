"""The commands from Python: the same options as on the command line, and typed results."""

from __future__ import annotations

import dataclasses
import inspect
import json
import signal
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest
from conftest import CLASSES, COUNT

import meetpoint
from meetpoint import _native

FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "pack": meetpoint.pack,
    "index": meetpoint.index,
    "unpack": meetpoint.unpack,
    "convert": meetpoint.convert,
    "verify": meetpoint.verify,
    "prepare": meetpoint.prepare,
    **{
        f"dataset {name}": getattr(meetpoint.dataset, name)
        for name in meetpoint.dataset.__all__
    },
}

# Differences that are meant, each with its reason.
RENAMED = {"from": "from_"}  # A keyword of Python.
ONLY_PYTHON = {
    "progress",  # The command line has a bar wherever it has a terminal.
}
ONLY_COMMAND_LINE = {
    "dataset extents",  # For the administrator of a device, on the machine that has the drive.
}
ADDED = {
    "dataset merge": {"destination"},  # On the command line, the last of the datasets.
}
OTHER_WORDS = {
    "on_error": {"fail": "raise"},  # As for a loader.
}
ANY_TEXT = {"from_"}  # Kinds of sources are many; the library checks them.


def _declared(command: str) -> Dict[str, Dict[str, Any]]:
    arguments = json.loads(_native.declaration())[command]
    names = {argument["name"]: argument["name"].replace("-", "_") for argument in arguments}
    names.update({name: RENAMED[name] for name in names if name in RENAMED})
    return {names[argument["name"]]: argument for argument in arguments}


def _choices(hint: Any) -> Set[Any]:
    """The values of a ``Literal`` in a type."""
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return {it for inner in typing.get_args(hint) for it in _choices(inner)}


def test_every_operation_of_the_command_line_is_a_function() -> None:
    declared = json.loads(_native.declaration())
    ours = {command for command in declared if command.split()[0] in ("dataset", *FUNCTIONS)}
    assert ours - ONLY_COMMAND_LINE == set(FUNCTIONS)


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_function_has_the_options_of_its_command(command: str) -> None:
    declared = _declared(command)
    parameters = inspect.signature(FUNCTIONS[command]).parameters
    assert set(parameters) - ONLY_PYTHON == set(declared) | ADDED.get(command, set())
    hints = typing.get_type_hints(FUNCTIONS[command])
    for name, argument in declared.items():
        default, words = parameters[name].default, OTHER_WORDS.get(name, {})
        if argument["is_positional"]:
            assert parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY
            assert (default is inspect.Parameter.empty) == argument["is_required"], name
        elif argument["is_flag"]:
            assert default is False, name
        elif argument["is_required"]:
            assert default is inspect.Parameter.empty, name
        elif argument["default"] is None:
            assert default is None or default == (), name
        else:
            assert str(default) == words.get(argument["default"], argument["default"]), name
        if name not in ANY_TEXT and not argument["is_flag"]:
            values = {words.get(value, value) for value in argument["values"]}
            assert _choices(hints[name]) == values, name


def _printed(*arguments: object) -> Any:
    """What the command line prints under ``--json``."""
    command = [sys.executable, "-m", "meetpoint", *map(str, arguments), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return json.loads(ended.stdout)


def _as_json(result: Any) -> Any:
    """A result as a document; without the values that are not known."""
    if isinstance(result, list):
        return [_as_json(item) for item in result]
    document = dataclasses.asdict(result)
    return {key: it for key, it in document.items() if (key, it) != ("deep", None)}


def test_results_are_the_documents_of_the_command_line(dataset: str) -> None:
    assert _as_json(meetpoint.verify(dataset, deep=True)) == _printed("verify", dataset, "--deep")
    assert _as_json(meetpoint.verify(dataset)) == _printed("verify", dataset)
    assert _as_json(meetpoint.dataset.stats(dataset)) == _printed("dataset", "stats", dataset)
    same = meetpoint.dataset.diff(dataset, dataset)
    assert same.is_empty and _as_json(same) == _printed("dataset", "diff", dataset, dataset)
    rows = meetpoint.dataset.head(dataset, n=1)
    assert _as_json(rows) == [_printed("dataset", "head", dataset, "-n", 1)]


def test_pack_takes_form_columns_and_labels_of_a_table(pictures: Path, tmp_path: Path) -> None:
    rows = [
        {"file_name": f"ant/{number:03}.png", "class": f"class {number % 2}", "note": number}
        for number in range(4)
    ]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    packed = meetpoint.pack(
        table,
        tmp_path / "a.set",
        form="compact",
        from_="table",
        root=pictures,
        label="class",
        key="file_name",
        columns=["note"],
        entry_points=None,
        progressive="keep",
        check="header",
        part_size="1MiB",
        threads=1,
    )
    assert packed.samples == 4 and packed.columns == ["note"]
    assert packed.labels == ["class 0", "class 1"] and packed.stored["form"] == "compact"
    assert "Packed(destination=" in repr(packed)
    with pytest.raises(dataclasses.FrozenInstanceError):
        packed.samples = 5  # type: ignore[misc]


def test_what_was_packed_is_unpacked_and_converted(
    pictures: Path, dataset: str, tmp_path: Path
) -> None:
    steps: List[Any] = []
    unpacked = meetpoint.unpack(dataset, tmp_path / "a", progress=lambda *it: steps.append(it))
    assert unpacked.samples == COUNT and steps[-1] == (COUNT, COUNT, 0, None)
    picture = Path("ant", "000.png")
    assert (tmp_path / "a" / picture).read_bytes() == (pictures / picture).read_bytes()
    shards = meetpoint.convert(pictures, tmp_path / "b", to="webdataset", shard_samples=50)
    assert shards.sink == "webdataset" and shards.samples == COUNT and shards.files >= 2
    with pytest.raises(meetpoint.PackError) as refused:
        meetpoint.unpack(dataset, pictures)
    assert refused.value.cause and refused.value.remedy
    assert str(refused.value).endswith(refused.value.remedy)
    with pytest.raises(meetpoint.PackError) as exists:
        meetpoint.pack(pictures, dataset)
    assert (exists.value.cause, "force=True" in str(exists.value.remedy)) == ("exists", True)


def test_an_index_leaves_content_in_place(pictures: Path, tmp_path: Path) -> None:
    indexed = meetpoint.index(pictures, tmp_path / "a.idx")
    assert indexed.samples == COUNT and meetpoint.verify(tmp_path / "a.idx").is_sound
    keys = meetpoint.index(tmp_path / "a.idx", keys=True)
    assert keys.keys == COUNT and Path(keys.path).stat().st_size == keys.bytes


def test_damage_is_reported_and_repaired(pictures: Path, tmp_path: Path) -> None:
    damaged = Path(meetpoint.pack(pictures, tmp_path / "a.set").destination)
    part = next(damaged.glob("part-*.arrow"))
    content = bytearray(part.read_bytes())
    content[content.index(b"IDAT") + 9] ^= 0x55
    part.write_bytes(bytes(content))
    found = meetpoint.verify(damaged)
    assert not found.is_sound and found.problems[0].file == part.name
    repaired = meetpoint.dataset.repair(damaged, tmp_path / "b.set")
    assert repaired.samples_lost == 1 and len(repaired.lost) == 1
    assert repaired.repaired is not None and repaired.repaired.samples == COUNT - 1
    assert meetpoint.verify(tmp_path / "b.set").is_sound
    with pytest.raises(meetpoint.DatasetError):
        meetpoint.unpack(damaged, tmp_path / "c")


def test_datasets_are_shuffled_split_merged_sampled_and_selected(
    dataset: str, tmp_path: Path
) -> None:
    operations = meetpoint.dataset
    shuffled = operations.shuffle(dataset, tmp_path / "shuffled.set", seed=7)
    assert not operations.diff(dataset, shuffled.destination).is_empty
    train, val = tmp_path / "train.set", tmp_path / "val.set"
    both = operations.split(dataset, {str(train): 0.75, str(val): "25%"}, stratify=True)
    assert sum(part.samples for part in both) == COUNT and both[1].samples < COUNT // 3
    merged = operations.merge([train, val], tmp_path / "merged.set", order="interleave")
    assert merged.samples == COUNT
    assert {row.key for row in operations.cat(merged.destination)} == {
        row.key for row in operations.cat(dataset)
    }
    by_label = operations.split(dataset, by="label", to=tmp_path / "labels")
    assert [part.samples for part in by_label] == [COUNT // len(CLASSES)] * len(CLASSES)
    few = operations.sample(dataset, tmp_path / "few.set", n=2, per_class=True)
    assert few.samples == 2 * len(CLASSES)
    tenth = operations.sample(dataset, tmp_path / "tenth.set", fraction="50%", seed=3)
    assert tenth.samples == COUNT // 2
    ants = operations.select(dataset, tmp_path / "ants.set", label="ant", range=range(0, 10))
    assert ants.samples == 10
    rest = operations.select(dataset, tmp_path / "rest.set", key="ant/**", invert=True)
    assert rest.samples == COUNT - COUNT // len(CLASSES)
    first = next(iter(operations.cat(dataset, label=["bee"], columns=[])))
    assert first.label == "bee" and first.columns == {}


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda d, t: meetpoint.pack(d, t, form="slow"), "form"),
        (lambda d, t: meetpoint.pack(d, t, from_="nothing known"), "nothing known"),
        (lambda d, t: meetpoint.pack(d, t, entry_points="rows"), "entry_points"),
        (lambda d, t: meetpoint.pack(d, t, restart_interval=0), "restart_interval"),
        (lambda d, t: meetpoint.pack(d, t, part_size="large"), "part_size"),
        (lambda d, t: meetpoint.pack(d, t, on_error="fail"), "on_error"),
        (lambda d, t: meetpoint.pack(d, t, threads=-1), "threads"),
        (lambda d, t: meetpoint.pack(d, t, columns=3), "columns"),
        (lambda d, t: meetpoint.pack(d, t, progress=1), "progress"),
        (lambda d, t: meetpoint.pack(d, t, sample_bytes_max=1 << 40), "sample_bytes_max"),
        (lambda d, t: meetpoint.pack(7, t), "source"),
        (lambda d, t: meetpoint.index(d), "destination"),
        (lambda d, t: meetpoint.index(d, keys=True, force=True), "force"),
        (lambda d, t: meetpoint.unpack(d, t, to="paper"), "to"),
        (lambda d, t: meetpoint.unpack(d, t, shard_samples=9), "shard_samples"),
        (lambda d, t: meetpoint.unpack(d, t, without="no such column"), "no such column"),
        (lambda d, t: meetpoint.convert(d, t, kind="smell"), "kind"),
        (lambda d, t: meetpoint.verify(d, deep="yes"), "deep"),
        (lambda d, t: meetpoint.dataset.sample(d, t), "fraction"),
        (lambda d, t: meetpoint.dataset.sample(d, t, n=1, fraction=0.5), "fraction"),
        (lambda d, t: meetpoint.dataset.sample(d, t, fraction="half"), "fraction"),
        (lambda d, t: meetpoint.dataset.sample(d, t, fraction=10**400), "fraction"),
        (lambda d, t: meetpoint.dataset.sample(d, t, n=10**6), "ask for at most 66"),
        (lambda d, t: meetpoint.dataset.split(d), "parts"),
        (lambda d, t: meetpoint.dataset.split(d, ["a"]), "parts"),
        (lambda d, t: meetpoint.dataset.split(d, {"a": 1}, by="label", to=t), "parts"),
        (lambda d, t: meetpoint.dataset.merge([d, d], t, order="any"), "order"),
        (lambda d, t: meetpoint.dataset.merge([d, d], t, prefix=["a"]), "prefixes"),
        (lambda d, t: meetpoint.dataset.select(d, t, range="9..3"), "range"),
        (lambda d, t: meetpoint.dataset.select(d, t, range=range(0, 9, 2)), "range"),
        (lambda d, t: meetpoint.dataset.select(d, t, label="no such label"), "no such label"),
        (lambda d, t: meetpoint.dataset.repair(d), "in_place"),
        (lambda d, t: meetpoint.dataset.diff(d, d, list=-1), "list"),
        (lambda d, t: next(meetpoint.dataset.cat(d, columns=["none"])), "none"),
    ],
)
def test_invalid_arguments_are_refused_by_name(
    call: Callable[[Any, Any], Any], wrong: str, dataset: str, tmp_path: Path
) -> None:
    with pytest.raises(meetpoint.SettingError, match=wrong):
        call(dataset, tmp_path / "made")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_a_dataset_is_a_dataset_error(tmp_path: Path) -> None:
    for call in (meetpoint.verify, meetpoint.dataset.stats, meetpoint.dataset.head):
        with pytest.raises(meetpoint.DatasetError):
            call(tmp_path / "nothing")
    with pytest.raises(meetpoint.DatasetError):
        meetpoint.dataset.shuffle(tmp_path / "nothing", tmp_path / "made")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_command_and_leaves_nothing(dataset: str, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    calls: List[Callable[[Path], Any]] = [
        lambda to: meetpoint.pack(dataset, to, progress=interrupt),
        lambda to: meetpoint.unpack(dataset, to, progress=interrupt),
        lambda to: meetpoint.convert(dataset, to, progress=interrupt),
        lambda to: meetpoint.dataset.shuffle(dataset, to, progress=interrupt),
        lambda _: meetpoint.verify(dataset, progress=interrupt),
        lambda _: meetpoint.dataset.stats(dataset, progress=interrupt),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(KeyboardInterrupt):
            call(tmp_path / f"{number}.set")
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_not_consumed_are_not_waited_for(dataset: str) -> None:
    rows = meetpoint.dataset.cat(dataset)
    assert next(rows).sample == 0
    del rows


@pytest.mark.skipif(not hasattr(_native, "panic_for_tests"), reason="a build without assertions")
@pytest.mark.parametrize("on_thread", [False, True])
def test_a_panic_is_an_exception_of_the_package(on_thread: bool) -> None:
    with pytest.raises(meetpoint.MeetpointError) as caught:
        _native.panic_for_tests(on_thread)
    assert isinstance(caught.value, meetpoint.InternalError)
    assert isinstance(caught.value, RuntimeError)
    assert "work.rs:" in str(caught.value) and "for a test" in str(caught.value)
    assert "report" in (caught.value.remedy or "")
