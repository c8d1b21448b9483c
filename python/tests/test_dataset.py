"""Packing, and samples by number and key."""

from __future__ import annotations

import multiprocessing
import operator
import os
import pickle
import shutil
import subprocess
import sys
from collections import abc
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple, cast

import pytest
from conftest import CLASSES, COUNT, HEIGHT, WIDTH

import meetpoint
from meetpoint import transforms as T


def test_samples_are_the_files_that_were_packed(dataset: str, pictures: Path) -> None:
    opened = meetpoint.open(dataset)
    assert len(opened) == COUNT and opened.label_names == list(CLASSES)
    for index in (0, 30, COUNT - 1):
        sample = opened[index]
        assert sample.image == (pictures / sample.key).read_bytes()
        assert opened.label_names[sample.label or 0] == sample.key.split("/")[0]
        assert opened[sample.key] == sample and sample.key in opened
        assert opened.key(index) == sample.key
    assert opened[-1] == opened[COUNT - 1]
    assert [sample.number for sample in opened[10:20:3]] == [10, 13, 16, 19]
    assert [sample.number for sample in opened[10:20:3][1:]] == [13, 16, 19]
    assert len(opened[:]) == COUNT and len(list(opened)) == COUNT
    assert "dog/000.png" not in opened and 3 not in opened
    assert opened.manifest["samples"] == COUNT and len(opened.fingerprint) == 64


def test_a_mapped_dataset_has_the_same_samples(
    dataset: str, tmp_path: Path, pictures: Path
) -> None:
    plain, mapped = meetpoint.open(dataset), meetpoint.open(dataset, mapped=True)
    assert list(mapped) == list(plain) and mapped["bee/030.png"] == plain[30]
    with pytest.raises(IndexError):
        mapped[COUNT]
    # Content that stays in place may change under a mapping.
    command = [sys.executable, "-m", "meetpoint", "index", str(pictures), str(tmp_path / "in.set")]
    subprocess.run(command, check=True, capture_output=True)
    in_place = meetpoint.open(tmp_path / "in.set")
    assert [sample.image for sample in in_place] == [sample.image for sample in plain]
    with pytest.raises(meetpoint.DatasetError, match="without a mapping"):
        meetpoint.open(tmp_path / "in.set", mapped=True)


def test_a_dataset_is_closed_by_a_with_block(dataset: str) -> None:
    with meetpoint.open(dataset, mapped=True) as opened:
        view, columns, first = opened[:2], opened.select("key"), opened[0]
        assert view[0] == first
        with pytest.raises(RuntimeError, match="interrupted"), opened:
            raise RuntimeError("interrupted")
    reads: List[Callable[[], object]] = [
        lambda: opened[0],
        lambda: len(opened),
        lambda: "a" in opened,
        lambda: view[0],
        lambda: opened.select(["key"]),
        lambda: opened.manifest,
    ]
    for read in reads:
        with pytest.raises(meetpoint.ClosedError, match="was closed; open it again"):
            read()
    assert opened.path == dataset and repr(opened).endswith("# closed")
    assert columns.__arrow_c_stream__() is not None and len(first.image) > 0
    opened.close()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_dataset_is_opened_again_in_a_process_that_it_is_sent_to(
    dataset: str, method: str
) -> None:
    context = multiprocessing.get_context(method)
    with meetpoint.open(dataset, mapped=True) as opened:
        with ProcessPoolExecutor(1, mp_context=context) as others:
            assert others.submit(operator.itemgetter(5), opened).result() == opened[5]
            numbers = others.submit(list, opened[3:5]).result()
        assert [sample.number for sample in numbers] == [3, 4]


def test_remedies_name_arguments_of_python(
    dataset: str, pictures: Path, tmp_path: Path
) -> None:
    with pytest.raises(meetpoint.PackError) as raised:
        meetpoint.pack(pictures, dataset)
    assert str(raised.value).endswith("force=True")
    (tmp_path / "it.bin").write_bytes(b"neither a table nor an archive")
    with pytest.raises(meetpoint.PackError) as raised:
        meetpoint.pack(tmp_path / "it.bin", tmp_path / "it.set")
    assert str(raised.value).endswith("from_=")


def test_a_dataset_that_was_replaced_is_not_taken_for_the_one_that_was_pickled(
    pictures: Path, tmp_path: Path
) -> None:
    path = tmp_path / "it.set"
    meetpoint.pack(pictures, path)
    with meetpoint.open(path) as opened:
        pickled = pickle.dumps(opened)
    with pytest.raises(meetpoint.ClosedError):
        pickle.dumps(opened)
    assert len(pickle.loads(pickled)) == COUNT
    meetpoint.pack(pictures / "ant", path, force=True)
    with pytest.raises(meetpoint.DatasetError) as raised:
        pickle.loads(pickled)
    assert raised.value.file == str(path)


@pytest.mark.parametrize("wrong", [5, ["key", 5], [None]])
def test_columns_that_are_no_names_are_refused(dataset: str, wrong: Any) -> None:
    with pytest.raises(meetpoint.SettingError, match="columns is "):
        meetpoint.open(dataset).select(wrong)


def test_an_invalid_path_is_refused() -> None:
    for path in (5, "", None):
        with pytest.raises(meetpoint.SettingError, match="path is .*; set path to a path"):
            meetpoint.open(cast(Any, path))
        with pytest.raises(meetpoint.SettingError, match="path is .*; set path to a path"):
            meetpoint.Writer(cast(Any, path))


def test_columns_are_arrow_streams(dataset: str) -> None:
    opened = meetpoint.open(dataset)
    assert opened.columns == ["key", "image", "label"]
    for capsule in (
        opened.__arrow_c_stream__(),
        opened.select(["sample", "image"]).__arrow_c_stream__(),
    ):
        # A stream that is never consumed is released with its capsule.
        assert "arrow_array_stream" in repr(capsule)
    with pytest.raises(meetpoint.SettingError, match='"caption".*key, image, label'):
        opened.select(["caption"])


def test_pyarrow_takes_columns(dataset: str, pictures: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    opened = meetpoint.open(dataset)
    table = pyarrow.table(opened)
    assert table.column_names == ["key", "label"] and table.num_rows == COUNT
    assert table["label"].to_pylist() == [at // (COUNT // len(CLASSES)) for at in range(COUNT)]
    assert table["key"].to_pylist() == [opened.key(at) for at in range(COUNT)]
    table = pyarrow.table(opened.select(["image", "sample"]))
    assert table["sample"].to_pylist() == list(range(COUNT))
    images = table["image"].to_pylist()
    assert images[5] == (pictures / opened.key(5)).read_bytes()


def test_a_dataset_is_taken_by_its_columns_and_not_by_its_samples(
    pictures: Path, tmp_path: Path
) -> None:
    """The content is made unreadable, to show that it is not read."""
    folder = Path(meetpoint.pack(pictures, tmp_path / "damaged.set").destination)
    for part in folder.glob("part-*.arrow"):
        part.write_bytes(part.read_bytes().replace(b"IDAT", b"idat"))
    opened = meetpoint.open(folder)
    with pytest.raises(meetpoint.SampleError):
        opened[0]
    # Polars and others take elements one by one of what is a sequence.
    assert not isinstance(opened, abc.Sequence)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(opened)
    assert frame.columns == ["key", "label"] and frame["key"].to_list()[5] == opened.key(5)


def test_a_dataset_is_written_sample_by_sample(tmp_path: Path, pictures: Path) -> None:
    files = sorted(pictures.glob("*/*.png"))
    with meetpoint.Writer(tmp_path / "own.set") as writer:
        for file in files:
            writer.add(file.name, file.read_bytes(), file.parent.name)
    opened = meetpoint.open(tmp_path / "own.set")
    assert opened.label_names == list(CLASSES) and len(opened) == COUNT
    for index, file in enumerate(files):
        assert opened[file.name].image == file.read_bytes()
        assert CLASSES[opened[index].label or 0] == file.parent.name
    recipe = T.Compose([T.CenterCrop((HEIGHT, WIDTH))])
    with meetpoint.Loader(tmp_path / "own.set", recipe=recipe, batch_size=7) as loader:
        assert sum(len(labels) for _, labels in loader) == COUNT


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(meetpoint.PackError, match='key "a" already exists'):
        with meetpoint.Writer(tmp_path / "own.set", labels=["x"]) as writer:
            writer.add("a", b"1", "x")
            writer.add("a", b"2", "x")
    with pytest.raises(meetpoint.PackError, match="'y' is none of those given"):
        with meetpoint.Writer(tmp_path / "own.set", labels=["x"]) as writer:
            writer.add("a", b"1", "y")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(meetpoint.ClosedError):
        writer.close()


def test_missing_files_and_samples_are_errors_of_their_kind(dataset: str, tmp_path: Path) -> None:
    opened = meetpoint.open(dataset)
    with pytest.raises(IndexError, match=f"sample {COUNT} of {COUNT}; they count from 0"):
        opened[COUNT]
    with pytest.raises(TypeError, match="number, its key, or a slice"):
        opened[None]  # type: ignore[call-overload]
    with pytest.raises(KeyError):
        opened["dog/000.png"]
    with pytest.raises(meetpoint.DatasetError, match="dataset.json") as caught:
        meetpoint.open(tmp_path)
    assert caught.value.file == str(tmp_path)
    assert "meetpoint.pack" in (caught.value.remedy or "")


def test_a_damaged_sample_is_named(dataset: str, tmp_path: Path, pictures: Path) -> None:
    copy = tmp_path / "damaged.set"
    shutil.copytree(dataset, copy)
    part = next(copy.glob("part-*.arrow"))
    content = bytearray(part.read_bytes())
    picture = (pictures / "bee" / "030.png").read_bytes()
    content[bytes(content).index(picture) + len(picture) // 2] ^= 1
    part.write_bytes(content)
    for mapped in (False, True):
        with pytest.raises(meetpoint.SampleError) as caught:
            meetpoint.open(copy, mapped=mapped)[30]
        assert (caught.value.row, caught.value.key) == (30, "bee/030.png")
    recipe = T.Compose([T.CenterCrop((HEIGHT, WIDTH))])
    with meetpoint.Loader(copy, recipe=recipe, batch_size=10) as loader:
        with pytest.raises(meetpoint.SampleError, match="checksum") as caught:
            list(loader)
        assert (caught.value.row, caught.value.key) == (30, "bee/030.png")
        assert caught.value.file == str(part) and "pack again" in (caught.value.remedy or "")


def test_a_file_in_place_that_is_gone_is_named_with_its_sample(
    tmp_path: Path, pictures: Path
) -> None:
    copy, indexed = tmp_path / "pictures", tmp_path / "in.set"
    shutil.copytree(pictures, copy)
    command = [sys.executable, "-m", "meetpoint", "index", str(copy), str(indexed)]
    subprocess.run(command, check=True, capture_output=True)
    gone = copy / "bee" / "030.png"
    gone.unlink()
    recipe = T.Compose([T.CenterCrop((HEIGHT, WIDTH))])
    loader = meetpoint.Loader(indexed, recipe=recipe, batch_size=10)
    with loader, pytest.raises(meetpoint.SampleError) as of_loader:
        list(loader)
    with pytest.raises(meetpoint.SampleError) as of_dataset:
        meetpoint.open(indexed)[30]
    for caught in (of_loader, of_dataset):
        error = caught.value
        assert (error.file, error.row, error.key) == (str(gone), 30, "bee/030.png")
        assert "index the source again" in (error.remedy or "")
    # Another content with the properties of the one that was indexed.
    file = copy / "bee" / "031.png"
    before, content = file.stat(), bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(meetpoint.SampleError, match="checksum") as changed:
        meetpoint.open(indexed)[31]
    assert (changed.value.file, changed.value.key) == (str(file), "bee/031.png")
    assert "restore the file" in (changed.value.remedy or "")


def test_a_part_that_was_shortened_is_named_with_its_remedy(dataset: str, tmp_path: Path) -> None:
    copy = tmp_path / "short.set"
    shutil.copytree(dataset, copy)
    opened = meetpoint.open(copy)
    part = next(copy.glob("part-*.arrow"))
    with part.open("r+b") as file:
        file.truncate(part.stat().st_size // 2)
    with pytest.raises(meetpoint.DatasetError, match="ends early") as caught:
        list(opened)
    assert part.name in str(caught.value) and "pack again" in (caught.value.remedy or "")


def test_a_part_that_is_gone_is_named_with_its_remedy(dataset: str, tmp_path: Path) -> None:
    copy = tmp_path / "less.set"
    shutil.copytree(dataset, copy)
    part = next(copy.glob("part-*.arrow"))
    part.unlink()
    with pytest.raises(meetpoint.DatasetError, match=part.name) as caught:
        meetpoint.open(copy)
    assert caught.value.file == str(part) and "pack again" in (caught.value.remedy or "")


def test_packing_reports_its_progress(pictures: Path, tmp_path: Path) -> None:
    reports: List[Tuple[Optional[int], ...]] = []
    packed = meetpoint.pack(pictures, tmp_path / "a.set", progress=lambda *it: reports.append(it))
    assert packed.samples == COUNT and packed.labels == list(CLASSES)
    assert reports[0][0] == 0 and reports[-1][:2] == (COUNT, COUNT) and reports[-1][2] == reports[-1][3]
    with pytest.raises(meetpoint.PackError, match="force"):
        meetpoint.pack(pictures, tmp_path / "a.set")
    assert meetpoint.pack(pictures, tmp_path / "a.set", force=True).replaced


def test_an_exception_in_the_progress_function_ends_packing(
    pictures: Path, tmp_path: Path
) -> None:
    def refuse(*_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        meetpoint.pack(pictures, tmp_path / "b.set", progress=refuse)
    assert list(tmp_path.iterdir()) == []


def test_undecodable_pictures_are_left_out_on_request(
    pictures: Path, tmp_path: Path
) -> None:
    shutil.copytree(pictures, tmp_path / "with")
    (tmp_path / "with" / "ant" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n rest is missing")
    with pytest.raises(meetpoint.PackError, match="ant/bad.png"):
        meetpoint.pack(tmp_path / "with", tmp_path / "c.set")
    packed = meetpoint.pack(tmp_path / "with", tmp_path / "c.set", on_error="skip")
    assert packed.samples == COUNT
    assert [left_out.path for left_out in packed.unreadable] == ["ant/bad.png"]
