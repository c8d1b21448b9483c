"""Commands divided into shards from Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import meetpoint
import pytest
from meetpoint.errors import SettingError


def _files(folder: Path) -> "dict[str, bytes]":
    return {it.name: it.read_bytes() for it in folder.iterdir()}


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(11):
        (folder / f"{number}.txt").write_text(f"text {number}")
    return folder


def test_shards_give_the_files_of_one_call(texts: Path, tmp_path: Path) -> None:
    meetpoint.pack(texts, tmp_path / "alone.set", kind="text", part_samples=2)
    to = tmp_path / "a.set"
    plan = meetpoint.shards.plan("pack", texts, to, shards=3, kind="text", part_samples=2)
    assert (plan.command, plan.shards, plan.parts, plan.samples) == ("pack", 3, 6, 11)
    assert meetpoint.shards.open(plan.folder) == plan
    for shard in range(3):
        ran = meetpoint.shards.run(plan.folder, shard)
        assert (ran.shard, ran.parts, ran.parts_before) == (shard, 2, 0)
        assert [line["plan"] for line in ran.lines] == [plan.sha256] * 2
    assert meetpoint.shards.run(plan.folder, 0).parts_before == 2
    packed = meetpoint.shards.commit(plan.folder)
    assert isinstance(packed, meetpoint.Packed) and packed.samples == 11
    there, alone = _files(to), _files(tmp_path / "alone.set")
    assert {name: it for name, it in there.items() if name.endswith(".arrow")} == {
        name: it for name, it in alone.items() if name.endswith(".arrow")
    }
    assert not Path(plan.folder).exists()


def test_verification_in_shards_is_that_of_one_call(texts: Path, tmp_path: Path) -> None:
    of = tmp_path / "a.set"
    meetpoint.pack(texts, of, kind="text", part_samples=2)
    with pytest.raises(SettingError, match="cache_size has no effect on a plan"):
        meetpoint.shards.plan("verify", of, shards=2, cache_size="1MiB")
    plan = meetpoint.shards.plan("verify", of, shards=2)
    for shard in range(2):
        meetpoint.shards.run(plan.folder, shard)
    assert meetpoint.shards.commit(plan.folder) == meetpoint.verify(of)


def test_invalid_calls_are_refused_with_a_remedy(texts: Path, tmp_path: Path) -> None:
    to = tmp_path / "a.set"
    with pytest.raises(TypeError):
        meetpoint.shards.plan("pack", texts, to, shards=2, part_sample=1)
    with pytest.raises(meetpoint.SettingError):
        meetpoint.shards.plan("pack", texts, to, shards=0, kind="text")
    with pytest.raises(meetpoint.SettingError, match="resume"):
        meetpoint.shards.plan("pack", texts, to, shards=2, kind="text", resume=True)
    plan = meetpoint.shards.plan("pack", texts, to, shards=2, kind="text", part_samples=2)
    with pytest.raises(meetpoint.PackError, match=r"0\.\.2"):
        meetpoint.shards.run(plan.folder, 2)
    with pytest.raises(meetpoint.PackError, match="shard 1: 3 parts") as raised:
        meetpoint.shards.commit(plan.folder)
    assert "meetpoint.shards.run()" in str(raised.value)
    # Errors of tasks cross processes.
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.remedy) == (str(raised.value), raised.value.remedy)
    with pytest.raises(meetpoint.PackError, match="2 shards"):
        meetpoint.shards.plan("pack", texts, to, shards=4, kind="text")
    with pytest.raises(meetpoint.PackError, match=r"plan\.json"):
        meetpoint.shards.open(tmp_path)
