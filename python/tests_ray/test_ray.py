"""Commands as tasks of Ray, datasets of Ray, and a loader inside Ray Train."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, List

import meetpoint
import meetpoint.ray as on_ray
import pytest
from conftest import hashes, png

ray: Any = pytest.importorskip("ray")

RULE = {"part_samples": 4}
PATIENCE = 120.0


def _left(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir())


def test_importing_meetpoint_imports_no_ray() -> None:
    code = "import sys, meetpoint, meetpoint.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_every_command_gives_the_files_of_one_process(photos: Path, tmp_path: Path) -> None:
    alone, tasks = tmp_path / "alone.set", tmp_path / "tasks.set"
    meetpoint.pack(photos, alone, **RULE)
    packed = on_ray.pack(photos, tasks, shards=5, **RULE)
    assert (packed.samples, packed.parts) == (40, 10)
    # The provenance names the source as it was given, which the driver makes absolute.
    assert hashes(tasks) == hashes(alone)

    meetpoint.convert(photos, tmp_path / "alone.tars", to="webdataset", **RULE)
    on_ray.convert(photos, tmp_path / "tasks.tars", shards=20, to="webdataset", **RULE)
    assert hashes(tmp_path / "tasks.tars") == hashes(tmp_path / "alone.tars")

    recipe = [meetpoint.transforms.Resize(16)]
    meetpoint.prepare(recipe, alone, tmp_path / "alone.prepared", cut="resize", **RULE)
    on_ray.prepare(recipe, alone, tmp_path / "tasks.prepared", cut="resize", **RULE)
    assert hashes(tmp_path / "tasks.prepared") == hashes(tmp_path / "alone.prepared")

    assert on_ray.verify(tasks, shards=3) == meetpoint.verify(tasks)
    assert not [name for name in _left(tmp_path) if "shards" in name or "partial" in name]


def test_a_worker_killed_within_a_part_costs_nothing(photos: Path, tmp_path: Path) -> None:
    for number in range(40, 600):
        (photos / "cat" / f"{number}.png").write_bytes(png(number, side=96))
    alone, tasks = tmp_path / "alone.set", tmp_path / "tasks.set"
    rule = {"part_samples": 50}
    meetpoint.pack(photos, alone, **rule)
    plan = Path(f"{tasks}.shards")
    killed: List[int] = []
    result: List[Any] = []

    def work() -> None:
        result.append(on_ray.pack(photos, tasks, shards=2, **rule))

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while thread.is_alive() and not killed and time.monotonic() < deadline:
        if plan.is_dir() and any(name.startswith(".attempt-") for name in os.listdir(plan)):
            killed = _kill_a_worker()
        time.sleep(0.001)
    thread.join(PATIENCE)
    assert killed, "a worker was within a part"
    assert result and result[0].samples == 600
    assert hashes(tasks) == hashes(alone)
    assert _left(tmp_path) == ["alone.set", "photos", "tasks.set"]


def _kill_a_worker() -> List[int]:
    """Kills a worker of this cluster that runs a shard."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read()
        except OSError:
            continue
        if words.startswith(b"ray::_run_shard"):
            os.kill(int(entry), signal.SIGKILL)
            return [int(entry)]
    return []


def test_an_error_of_a_shard_is_raised_and_the_plan_can_be_finished(
    photos: Path, tmp_path: Path
) -> None:
    damaged = photos / "cat" / "20.png"
    sound = damaged.read_bytes()
    damaged.write_bytes(sound[:40] + b"\0" * (len(sound) - 40))
    stamp = damaged.stat().st_mtime_ns
    to = tmp_path / "a.set"
    with pytest.raises(meetpoint.PackError, match="20.png"):
        on_ray.pack(photos, to, shards=4, **RULE)
    assert not to.exists() and Path(f"{to}.shards").is_dir()
    # The same length and time: to the plan, it is the file that was listed.
    damaged.write_bytes(sound)
    os.utime(damaged, ns=(stamp, stamp))
    assert on_ray.finish(f"{to}.shards").samples == 40
    meetpoint.pack(photos, tmp_path / "alone.set", **RULE)
    assert hashes(to) == hashes(tmp_path / "alone.set")


def test_a_dataset_is_read_and_written_as_rows_of_ray(photos: Path, tmp_path: Path) -> None:
    of, to = tmp_path / "a.set", tmp_path / "b.set"
    meetpoint.pack(photos, of, **RULE)
    rows = on_ray.read(of)
    assert rows.count() == 40
    found = {row["key"]: (row["image"], row["label"]) for row in rows.take_all()}
    with meetpoint.open(of) as opened:
        assert found == {it.key: (it.image, it.label) for it in opened}
    copied = on_ray.write(rows.sort("key"), to, labels=["cat", "dog"])
    assert copied.samples == 40
    with meetpoint.open(to) as opened:
        assert {it.key: (it.image, it.label) for it in opened} == found
        assert opened.label_names == ["cat", "dog"]
    assert meetpoint.verify(to).is_sound
    with pytest.raises(meetpoint.PackError, match="exists"):
        on_ray.write(rows, to)
    with pytest.raises(Exception, match="further column"):
        on_ray.write(rows, tmp_path / "c.set", label=None)
    assert _left(tmp_path) == ["a.set", "b.set", "photos"]


def test_a_loader_inside_ray_train_resumes_from_the_checkpoint(
    photos: Path, tmp_path: Path
) -> None:
    train: Any = pytest.importorskip("ray.train")
    # As TorchTrainer, but without torch.
    trainers: Any = pytest.importorskip("ray.train.v2.api.data_parallel_trainer")
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, **RULE)
    seen = tmp_path / "seen"
    seen.mkdir()

    def loop(config: Any) -> None:
        import tempfile

        rank = train.get_context().get_world_rank()
        recipe = [meetpoint.transforms.Resize((16, 16))]
        loader = on_ray.loader(
            config["set"],
            recipe=recipe,
            batch_size=4,
            output="numpy",
            checkpoint=config["checkpoint"],
        )
        steps = 0
        for images, labels in loader:
            steps += 1
            with open(os.path.join(config["seen"], f"{rank}"), "a") as file:
                file.write(f"{len(labels)} {int(images.sum())}\n")
            if steps == config["stop"]:
                break
        with tempfile.TemporaryDirectory() as folder:
            on_ray.save(loader, folder)
            train.report({"steps": steps}, checkpoint=train.Checkpoint.from_directory(folder))

    def fit(stop: int, checkpoint: Any, name: str) -> Any:
        config = {"set": str(of), "seen": str(seen), "stop": stop, "checkpoint": checkpoint}
        trainer = trainers.DataParallelTrainer(
            loop,
            train_loop_config=config,
            scaling_config=train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(name=name, storage_path=str(tmp_path / "runs")),
        )
        return trainer.fit()

    first = fit(2, None, "first")
    fit(100, first.checkpoint, "second")
    lines = sorted("".join(path.read_text() for path in seen.iterdir()).splitlines())
    recipe = [meetpoint.transforms.Resize((16, 16))]
    loader = meetpoint.Loader(of, recipe=recipe, batch_size=4, output="numpy", rank=0, world_size=1)
    whole = sorted(f"{len(labels)} {int(images.sum())}" for images, labels in loader)
    assert lines == whole, "every batch of the epoch once"
