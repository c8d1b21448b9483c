"""Named columns: values of every kind, from both ends, as arrays of each library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List

import numpy
import pytest
from conftest import pixels, png

import meetpoint
from meetpoint import transforms as T

COUNT = 14
DEVICE = meetpoint.Emulated(allow_shared=True)
ALL = ["caption", "image", "ids", "area", "flag", "key", "sample", "label", "weights"]

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def ids_of(sample: int) -> List[int]:
    return [sample * 10 + at for at in range(sample % 3)]


def caption_of(sample: int) -> str:
    return "größe " * (sample % 4)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pictures with further columns. The weight of sample 5 is null."""
    folder = tmp_path_factory.mktemp("columns")
    rows = []
    for number in range(COUNT):
        (folder / f"{number:02}.png").write_bytes(png(pixels(number)))
        row = {
            "file_name": f"{number:02}.png",
            "label": number % 2,
            "ids": ids_of(number),
            "caption": caption_of(number),
            "area": number / 8,
            "flag": number % 3 == 0,
            "weights": [number / 2, -1.5] if number % 2 else [],
            "spotty": None if number == 5 else number,
            "pairs": [[1, 2], [number]],
        }
        rows.append(json.dumps(row))
    (folder / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    meetpoint.pack(folder / "rows.jsonl", folder / "table.set", label="label")
    return str(folder / "table.set")


def make(table: str, strategy: str = "host-only", **more: Any) -> "meetpoint.Loader[Any]":
    settings = dict(
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=4,
        shuffle=True,
        strategy=strategy,
        device=None if strategy == "host-only" else DEVICE,
        workers=1,
        columns=ALL,
    )
    return meetpoint.Loader(table, **{**settings, **more})


def check(batch: Any, as_numpy: Any) -> List[int]:
    """Compares a batch with what its samples hold; returns their numbers."""
    assert list(batch) == ALL and "ids" in batch and "boxes" not in batch
    assert as_numpy(batch["sample"]).dtype == numpy.int64
    samples: List[int] = as_numpy(batch["sample"]).tolist()
    assert batch["caption"] == [caption_of(sample) for sample in samples]
    assert batch["key"] == [f"{sample:02}.png" for sample in samples]
    area, flag = as_numpy(batch["area"]), as_numpy(batch["flag"])
    assert area.tolist() == [sample / 8 for sample in samples]
    assert flag.dtype == numpy.bool_
    assert flag.tolist() == [sample % 3 == 0 for sample in samples]
    assert as_numpy(batch["label"]).tolist() == [sample % 2 for sample in samples]
    ids, weights = batch["ids"], batch["weights"]
    assert isinstance(ids, meetpoint.Ragged) and len(ids) == len(samples)
    assert ids.to_list() == [ids_of(sample) for sample in samples]
    assert weights.to_list() == [[it / 2, -1.5] if it % 2 else [] for it in samples]
    assert [as_numpy(row).tolist() for row in ids] == ids.to_list()
    assert as_numpy(ids[-1]).tolist() == ids_of(samples[-1])
    assert as_numpy(ids.offsets).tolist()[0] == 0
    assert as_numpy(ids.values).shape == (as_numpy(ids.offsets).tolist()[-1],)
    for wrong in (len(samples), -len(samples) - 1):
        with pytest.raises(IndexError):
            ids[wrong]
    top = (20 - 8) // 2, (24 - 8) // 2
    for sample, image in zip(samples, as_numpy(batch["image"])):
        expected = pixels(sample)[top[0] : top[0] + 8, top[1] : top[1] + 8]
        numpy.testing.assert_array_equal(image, expected)
    return samples


@pytest.mark.parametrize("strategy", ["host-only", "device-only", "mte"])
@pytest.mark.parametrize("output", ["numpy", "dlpack"])
def test_every_column_has_the_values_of_its_samples(
    table: str, strategy: str, output: str
) -> None:
    with make(table, strategy, output=output) as loader:
        samples = [sample for batch in loader for sample in check(batch, numpy.asarray)]
        assert sorted(samples) == list(range(COUNT))
        if strategy == "device-only":
            assert loader.report()["epochs"][0]["schedule"]["device_batches"] == 4


def test_every_column_is_a_tensor_of_torch(table: str) -> None:
    torch = pytest.importorskip("torch")
    with make(table, output="torch") as loader:
        for batch in loader:
            check(batch, lambda tensor: tensor.numpy())
            assert batch["area"].dtype == torch.float64 and batch["flag"].dtype == torch.bool
            assert isinstance(batch["ids"].values, torch.Tensor)


def test_every_column_is_an_array_of_jax(table: str) -> None:
    jax = pytest.importorskip("jax")
    with make(table, output="jax") as loader:
        for batch in loader:
            check(batch, numpy.asarray)
            assert isinstance(batch["ids"].values, jax.Array)


def test_arrays_of_a_batch_live_as_long_as_they_are_used(table: str) -> None:
    with make(table) as loader:
        batches = [(batch["area"], batch["ids"], batch["sample"].tolist()) for batch in loader]
    for area, ids, samples in batches:
        assert area.tolist() == [sample / 8 for sample in samples]
        assert ids.to_list() == [ids_of(sample) for sample in samples]
        area[:] = 7
        assert ids.to_list() == [ids_of(sample) for sample in samples]


def test_images_are_decoded_only_where_they_are_asked_for(table: str) -> None:
    with make(table, columns="ids") as loader:
        for batch in loader:
            assert list(batch) == ["ids"]
        assert loader.report()["epochs"][0]["host_bytes_read"] == 0


def test_without_columns_a_batch_is_a_pair(table: str) -> None:
    with make(table, columns=None, shuffle=False) as loader:
        images, labels = next(iter(loader))
    assert images.shape == (4, 8, 8, 3) and labels.tolist() == [0, 1, 0, 1]


def test_a_null_is_damage_of_its_sample(table: str) -> None:
    columns = ["sample", "spotty", "caption"]
    with make(table, columns=columns) as loader:
        with pytest.raises(meetpoint.SampleError, match="05.png.*\"spotty\" is null"):
            list(loader)
    with make(table, columns=columns, on_error="skip") as loader:
        seen = {}
        for batch in loader:
            seen.update(zip(batch["sample"].tolist(), zip(batch["spotty"].tolist(), batch["caption"])))
        assert seen == {at: (at, caption_of(at)) for at in range(COUNT) if at != 5}
        assert [error.sample for error in loader.errors()] == [5]


@pytest.mark.parametrize(
    "columns, words",
    [
        (["image", "capption"], ['"capption"', 'did you mean "caption"', "weights"]),
        (["ids", "image", "ids"], ['"ids" twice']),
        (["image", "pairs"], ['"pairs"', "List(List(Int64))", "pack again"]),
        ([], ["columns is empty"]),
        ([3], ["columns"]),
    ],
)
def test_invalid_columns_are_refused(
    table: str, columns: List[Any], words: List[str]
) -> None:
    with pytest.raises(meetpoint.SettingError) as refused:
        make(table, columns=columns)
    for word in words:
        assert word in str(refused.value)


def test_a_ragged_column_says_what_it_is(table: str) -> None:
    with make(table, shuffle=False) as loader:
        ids = next(iter(loader))["ids"]
    assert repr(ids) == "Ragged(samples=4, values=(3,), dtype=int64)"
    assert isinstance(ids, meetpoint.Ragged)


def test_a_batch_lists_its_columns_and_has_no_others(table: str, tmp_path: Path) -> None:
    with make(table, shuffle=False) as loader:
        batch = loader._native.next(loader._native.begin(0))
        assert batch is not None and batch.columns == ALL
        assert "samples=4" in repr(batch)
        with pytest.raises(KeyError, match="boxes"):
            batch.column("boxes")
