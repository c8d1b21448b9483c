"""Damaged samples: skipped, replaced, passed to a function, counted, recorded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, List, Optional

import numpy
import pytest

import meetpoint
from conftest import COUNT, pixels
from meetpoint import transforms as T

DAMAGED = (0, 21, 22, 40)


@pytest.fixture(scope="module")
def damaged(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pictures, of which a byte of some changed after they were packed."""
    folder = tmp_path_factory.mktemp("damaged") / "pictures.set"
    shutil.copytree(dataset, folder)
    whole = meetpoint.open(dataset)
    for part in folder.glob("part-*.arrow"):
        content = bytearray(part.read_bytes())
        for sample in DAMAGED:
            at = content.find(whole[sample].image)
            if at >= 0:
                content[at + 40] ^= 1
        part.write_bytes(bytes(content))
    return str(folder)


def loader_of(damaged: str, **arguments: Any) -> meetpoint.Loader:
    return meetpoint.Loader(
        damaged,
        recipe=[T.CenterCrop(16)],
        columns=["image", "label", "sample"],
        **{"batch_size": 8, "shuffle": True, "seed": 3, "workers": 2, **arguments},
    )


def drained(loader: meetpoint.Loader) -> List[Any]:
    return [{key: numpy.array(it) for key, it in batch.items()} for batch in loader]


def same(some: List[Any], others: List[Any]) -> bool:
    return len(some) == len(others) and all(
        set(one) == set(other) and all(numpy.array_equal(one[key], other[key]) for key in one)
        for one, other in zip(some, others)
    )


def test_a_damaged_sample_is_an_exception_that_names_it(damaged: str) -> None:
    with loader_of(damaged) as loader, pytest.raises(meetpoint.SampleError) as raised:
        drained(loader)
    assert raised.value.file is not None and raised.value.key is not None
    assert loader.errors() == []


@pytest.mark.parametrize("strategy", ["host-only", "device-only", "mte", "wrr", "windowed"])
def test_replacing_is_the_same_under_every_strategy(damaged: str, strategy: str) -> None:
    with loader_of(damaged, on_error="replace", workers=0) as alone:
        expected = {tuple(batch["sample"].tolist()): batch for batch in drained(alone)}
        records = sorted(alone.errors())
    assert [record.sample for record in records] == list(DAMAGED)
    device = None if strategy == "host-only" else meetpoint.Emulated(allow_shared=True)
    with loader_of(damaged, on_error="replace", strategy=strategy, device=device) as loader:
        batches = drained(loader)
        assert sorted(loader.errors()) == records
    assert sum(len(batch["sample"]) for batch in batches) == COUNT
    for batch in batches:
        assert same([batch], [expected[tuple(batch["sample"].tolist())]])
        for image, label, sample in zip(batch["image"], batch["label"], batch["sample"].tolist()):
            assert sample not in DAMAGED and label == sample // 22
            assert numpy.array_equal(image, pixels(int(sample))[2:18, 4:20])


def test_skipping_shortens_batches_and_yields_no_empty_one(damaged: str) -> None:
    with loader_of(damaged, on_error="skip") as loader:
        samples = [sample for batch in loader for sample in batch["sample"].tolist()]
        assert sorted(samples) == [it for it in range(COUNT) if it not in DAMAGED]
        assert {record.action for record in loader.errors()} == {"skip"}
    with loader_of(damaged, on_error="skip", batch_size=1) as loader:
        assert len(list(loader)) == COUNT - len(DAMAGED)


def test_an_epoch_of_which_nothing_is_left_is_a_warning(dataset: str, tmp_path: Path) -> None:
    folder = tmp_path / "pictures.set"
    shutil.copytree(dataset, folder)
    whole = meetpoint.open(dataset)
    for part in folder.glob("part-*.arrow"):
        content = bytearray(part.read_bytes())
        for sample in whole:
            at = content.find(sample.image)
            if at >= 0:
                content[at + 40] ^= 1
        part.write_bytes(bytes(content))
    with loader_of(str(folder), on_error="skip") as loader:
        with pytest.warns(meetpoint.DamageWarning, match="epoch 0 gave nothing") as warned:
            assert list(loader) == []
        assert [it.filename for it in warned] == [__file__]
        assert len(loader.errors()) == COUNT
    with loader_of(dataset, on_error="skip") as loader, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == len(loader)


def test_a_function_decides_and_its_exception_arrives(damaged: str) -> None:
    asked: List[meetpoint.DamagedSample] = []

    def decide(sample: meetpoint.DamagedSample) -> str:
        asked.append(sample)
        return "skip" if sample.sample < 22 else "replace"

    with loader_of(damaged, on_error=decide) as loader:
        drained(loader)
        actions = {record.sample: record.action for record in loader.errors()}
    assert actions == {0: "skip", 21: "skip", 22: "replace", 40: "replace"}
    assert {it.sample for it in asked} == set(DAMAGED) and asked[0].action is None
    assert all(it.what and it.remedy and it.offset > 0 for it in asked)

    def refuse(sample: meetpoint.DamagedSample) -> str:
        raise LookupError(sample.key)

    with loader_of(damaged, on_error=refuse) as loader, pytest.raises(LookupError):
        drained(loader)
    with loader_of(damaged, on_error=lambda _: "never mind") as loader:
        with pytest.raises(meetpoint.SettingError, match="never mind"):
            drained(loader)


def test_more_than_max_errors_end_the_epoch_also_when_it_is_resumed(damaged: str) -> None:
    with loader_of(damaged, on_error="replace", max_errors=len(DAMAGED)) as loader:
        drained(loader)
        drained(loader)
    limited = {"on_error": "replace", "max_errors": len(DAMAGED) - 1, "workers": 0}
    with loader_of(damaged, **limited) as loader:
        iterator = iter(loader)
        handed_out = 0
        with pytest.raises(meetpoint.DamageLimitError) as raised:
            while True:
                next(iterator)
                handed_out += 1
        assert raised.value.key is not None
    with loader_of(damaged, **limited) as loader:
        iterator = iter(loader)
        for _ in range(handed_out - 1):
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
    with loader_of(damaged, **limited) as loader:
        loader.load_state_dict(state)
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(meetpoint.DamageLimitError):
            next(iterator)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_resumed_epoch_equals_the_rest_of_a_whole_one(damaged: str, on_error: str) -> None:
    with loader_of(damaged, on_error=on_error) as loader:
        whole = drained(loader)
    with loader_of(damaged, on_error=on_error) as loader:
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        state = loader.state_dict()
    with loader_of(damaged, on_error=on_error, workers=1) as loader:
        loader.load_state_dict(state)
        assert same(drained(loader), whole[4:])


def test_a_quarantine_file_has_every_sample_once(damaged: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    for _ in range(2):
        with loader_of(damaged, on_error="replace", quarantine=path) as loader:
            drained(loader)
            drained(loader)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["sample"] for line in lines) == list(DAMAGED)
    assert all(line["action"] == "replace" and line["key"] for line in lines)
    with pytest.raises(meetpoint.StorageError, match="failed to record damaged samples"):
        loader_of(damaged, on_error="replace", quarantine=tmp_path)


def test_a_process_can_end_while_a_function_is_called(damaged: str) -> None:
    code = """
import sys, threading, time
import meetpoint
from meetpoint import transforms as T
asked = threading.Event()
def decide(sample):
    asked.set()
    time.sleep(0.2)
    return "replace"
loader = meetpoint.Loader(sys.argv[1], recipe=[T.CenterCrop(16)], batch_size=2, workers=2,
                          on_error=decide)
iterator = iter(loader)
assert asked.wait(60)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, damaged], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace", lambda _: "skip"])
def test_a_recipe_that_does_not_fit_a_picture_is_no_damage(
    dataset: str, on_error: Any, device: Optional[str]
) -> None:
    recipe = [T.RandomCrop((20, 25))]
    with meetpoint.Loader(dataset, recipe=recipe, on_error=on_error, device=device) as loader:
        with pytest.raises(meetpoint.RecipeError) as raised:
            drained(loader)
        assert loader.errors() == []
    error = raised.value
    assert error.cause == "recipe_does_not_fit"
    assert error.key is not None and error.file is not None and error.row is not None
    assert "random_crop does not fit a picture of 20 x 24" in str(error)
    assert error.remedy is not None and "set pad_if_needed=True" in error.remedy
