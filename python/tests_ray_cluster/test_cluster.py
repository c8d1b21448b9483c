"""Packing on several nodes, and agents: with a node, agents and their owners killed."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import meetpoint
import meetpoint.ray as on_ray
import numpy
import pytest
from conftest import (
    PATIENCE,
    command,
    cut,
    hashes,
    kill_node,
    make_photos,
    processes,
    wait_until,
)

ray: Any = pytest.importorskip("ray")

NODES = ("one", "two", "three")
RECIPE = meetpoint.transforms.Compose(
    [meetpoint.transforms.RandomResizedCrop(16), meetpoint.transforms.RandomHorizontalFlip()]
)


def _address(node: str) -> str:
    """The address that scripts/netns.sh gives: the head is the first host."""
    return f"10.213.77.{NODES.index(node) + 2}"


def _meeting(folder: Path) -> Any:
    """The task of a shard, which records its node and first waits until each node has a task."""
    original = on_ray._run_shard
    nodes = len(NODES)
    limit = PATIENCE

    def run(place: str, shard: int, threads: int) -> Any:
        import os
        import time

        import ray

        (folder / ray.util.get_node_ip_address()).touch()
        deadline = time.monotonic() + limit
        while len(os.listdir(folder)) < nodes and time.monotonic() < deadline:
            time.sleep(0.02)
        return original(place, shard, threads)

    return run


def test_one_process_four_shards_and_three_nodes_give_the_same_files(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"part_samples": 8}
    meetpoint.pack(photos, tmp_path / "alone.set", **rule)
    plan = meetpoint.shards.plan("pack", photos, tmp_path / "shards.set", shards=4, **rule)
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "meetpoint", "shards", "run", plan.folder, "--shard", str(it)],
            stdout=subprocess.DEVNULL,
        )
        for it in range(4)
    ]
    assert [it.wait(PATIENCE) for it in running] == [0] * 4
    meetpoint.shards.commit(plan.folder)

    met = tmp_path / "met"
    met.mkdir()
    monkeypatch.setattr(on_ray, "_run_shard", _meeting(met))
    on_ray.pack(photos, tmp_path / "tasks.set", shards=6, **rule)
    assert sorted(os.listdir(met)) == [_address(node) for node in NODES]

    expected = hashes(tmp_path / "alone.set")
    assert len(expected) == 15 + 2, "15 parts, the index of keys and the manifest"
    assert hashes(tmp_path / "shards.set") == expected
    assert hashes(tmp_path / "tasks.set") == expected
    left = sorted(os.listdir(tmp_path))
    assert left == ["alone.set", "met", "shards.set", "tasks.set"]


def _epochs(dataset: Path, count: int, **named: Any) -> List[Dict[int, bytes]]:
    """The batches of some epochs."""
    with _loader(dataset, **named) as loader:
        return [_by_samples(loader) for _ in range(count)]


def _loader(dataset: Path, **named: Any) -> Any:
    return meetpoint.Loader(
        dataset,
        recipe=RECIPE,
        batch_size=4,
        shuffle=True,
        seed=3,
        columns=["image", "sample"],
        workers=1,
        **named,
    )


def _by_samples(batches: Iterable[Any]) -> Dict[Any, bytes]:
    """The images of an epoch by the samples of their batch."""
    found: Dict[Any, bytes] = {}
    for batch in batches:
        samples = tuple(numpy.asarray(batch["sample"]).tolist())
        assert samples not in found, "every batch once"
        found[samples] = numpy.asarray(batch["image"]).tobytes()
    return found


def _agents_on(node: str) -> List[int]:
    return [it for it in processes(node) if " agent --listen" in command(it).replace("--json ", "")]


def _serving(agents: Any, generations: List[int]) -> bool:
    status = agents.status()
    return [it.generation for it in status] == generations and all(
        it.state == "serving" for it in status
    )


def test_agents_are_supervised_and_their_batches_are_those_of_the_host(
    photos: Path, tmp_path: Path
) -> None:
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, part_samples=8)
    alone = _epochs(of, 4, strategy="host-only")
    with on_ray.agents("storage=nvme", roots={"photos": of}, threads=1) as agents:
        status = agents.status()
        assert [it.address.split(":")[1] for it in status] == [
            f"//{_address('one')}",
            f"//{_address('two')}",
        ]
        assert [it.generation for it in status] == [1, 1]
        assert len(_agents_on("one")) == len(_agents_on("two")) == 1 and not _agents_on("three")
        with _loader(of, device=agents.devices, strategy="device-only") as loader:
            assert _by_samples(loader) == alone[0]

            # An agent is killed within an epoch.
            def killing() -> Iterator[Any]:
                for number, batch in enumerate(loader):
                    yield batch
                    if number == 2:
                        os.kill(_agents_on("one")[0], signal.SIGKILL)

            assert _by_samples(killing()) == alone[1]
            wait_until(lambda: _serving(agents, [2, 1]), "the agent is started again")
            again = agents.status()[0]
            assert again.address == status[0].address

            # The owner of the other one is killed: its agent ends with it.
            before = _agents_on("two")[0]
            owner = [it for it in processes("two") if command(it).startswith("ray::AgentOwner")]
            os.kill(owner[0], signal.SIGKILL)
            wait_until(lambda: _serving(agents, [2, 2]), "the owner is replaced")
            assert before not in _agents_on("two")
            assert agents.status()[1].address == status[1].address
            assert _by_samples(loader) == alone[2]
            assert _by_samples(loader) == alone[3]
        summaries = agents.shutdown()
    # Both were used after they were started again.
    assert all(it.summary is not None and it.summary["batches"] > 0 for it in summaries), summaries
    assert not _agents_on("one") and not _agents_on("two")
    with pytest.raises(meetpoint.ClosedError):
        agents.status()


def test_agents_end_with_a_driver_that_is_killed(photos: Path, tmp_path: Path) -> None:
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, part_samples=8)
    code = (
        "import os, signal, ray, meetpoint.ray\n"
        "ray.init(address='auto', log_to_driver=False, logging_level='ERROR')\n"
        f"agents = meetpoint.ray.agents('storage=nvme', roots={str(of)!r}, num_cpus=0)\n"
        "print(len(agents.devices), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    driver = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, timeout=PATIENCE
    )
    assert (driver.returncode, driver.stdout) == (-signal.SIGKILL, b"2\n")
    wait_until(lambda: not _agents_on("one") and not _agents_on("two"), "the agents end")


def test_agents_are_used_by_a_loader_inside_ray_train(photos: Path, tmp_path: Path) -> None:
    train: Any = pytest.importorskip("ray.train")
    trainers: Any = pytest.importorskip("ray.train.v2.api.data_parallel_trainer")
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, part_samples=8)
    alone = _epochs(of, 1, strategy="host-only")[0]
    recipe = RECIPE

    def loop(config: Any) -> None:
        import tempfile

        loader = on_ray.loader(
            config["set"],
            recipe=recipe,
            batch_size=4,
            shuffle=True,
            seed=3,
            workers=1,
            columns=["image", "sample"],
            device=config["agents"],
            strategy="device-only",
        )
        is_first = train.get_checkpoint() is None
        for number, batch in enumerate(loader, 1):
            with open(config["seen"], "a", encoding="utf-8") as file:
                file.write(f"{batch['sample'].tolist()} {int(batch['image'].sum())}\n")
            if is_first and number == 5:
                break
        with tempfile.TemporaryDirectory() as folder:
            on_ray.save(loader, folder)
            train.report({}, checkpoint=train.Checkpoint.from_directory(folder))
        if is_first:
            raise RuntimeError("a failure of the training after five steps")

    seen = tmp_path / "seen"
    with on_ray.agents("storage=nvme", roots=of, count=1, num_cpus=0) as agents:
        trainer = trainers.DataParallelTrainer(
            loop,
            train_loop_config={"set": str(of), "seen": str(seen), "agents": agents},
            scaling_config=train.ScalingConfig(
                num_workers=1, resources_per_worker={"CPU": 1}, label_selector={"storage": "none"}
            ),
            run_config=train.RunConfig(
                name="run",
                storage_path=str(tmp_path / "runs"),
                failure_config=train.FailureConfig(max_failures=1),
            ),
        )
        trainer.fit()
        summaries = agents.shutdown()
    expected = sorted(
        f"{list(samples)} {int(numpy.frombuffer(image, numpy.uint8).sum())}"
        for samples, image in alone.items()
    )
    assert sorted(seen.read_text().splitlines()) == expected, "every batch of the epoch once"
    assert summaries[0].summary is not None and summaries[0].summary["jobs"] == 2, summaries


def test_ranks_of_torch_on_two_nodes_share_agents(photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    train: Any = pytest.importorskip("ray.train")
    trainers: Any = pytest.importorskip("ray.train.torch")
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, part_samples=8)
    recipe = RECIPE

    def loop(config: Any) -> None:
        loader = on_ray.loader(
            config["set"],
            recipe=recipe,
            batch_size=4,
            shuffle=True,
            workers=1,
            columns=["sample"],
            device=config["agents"],
            strategy="wrr",
        )
        rank = train.get_context().get_world_rank()
        with open(f"{config['seen']}-{rank}", "w", encoding="utf-8") as file:
            file.writelines(f"{sample}\n" for batch in loader for sample in batch["sample"])

    with on_ray.agents("storage=nvme", roots=of, num_cpus=0) as agents:
        trainer = trainers.TorchTrainer(
            loop,
            train_loop_config={"set": str(of), "seen": str(tmp_path / "seen"), "agents": agents},
            scaling_config=train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(name="run", storage_path=str(tmp_path / "runs")),
        )
        trainer.fit()
    seen = [(tmp_path / f"seen-{rank}").read_text().split() for rank in (0, 1)]
    assert [len(it) for it in seen] == [60, 60]
    assert sorted(map(int, seen[0] + seen[1])) == list(range(120)), "the ranks share the epoch"


def test_a_profile_is_measured_on_the_nodes_that_have_a_label(
    photos: Path, tmp_path: Path
) -> None:
    of = tmp_path / "a.set"
    meetpoint.pack(photos, of, part_samples=8)
    options = {"samples": 8, "runs": 1, "codecs": ("none",)}
    found = on_ray.profile(RECIPE, of, label="storage=nvme", count=None, **options)
    assert [it.address for it in found] == [_address("one"), _address("two")]
    for each in found:
        assert each.profile.best in each.profile.results
        assert {it["threads"] for it in each.profile.results} == {1}, "the CPUs of the node"


def test_a_node_killed_within_a_part_costs_neither_files_nor_batches(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    make_photos(photos, 300, 128)
    rule = {"part_samples": 50}
    meetpoint.pack(photos, tmp_path / "alone.set", **rule)
    to = tmp_path / "tasks.set"
    plan = Path(f"{to}.shards")
    dead = tmp_path / "dead"
    victim = _address("two")
    limit = PATIENCE

    original = on_ray._run_shard

    def run(place: str, shard: int, threads: int) -> Any:
        """Works on the node that is killed; elsewhere only after that."""
        import os
        import time

        import ray

        deadline = time.monotonic() + limit
        while ray.util.get_node_ip_address() != victim and not os.path.exists(dead):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return original(place, shard, threads)

    result: List[Any] = []

    def work() -> None:
        result.append(on_ray.pack(photos, to, shards=3, **rule))

    label = "storage=in(nvme, none)"
    of = tmp_path / "alone.set"
    with pytest.MonkeyPatch.context() as patch, on_ray.agents(
        label, roots=of, count=2, num_cpus=0
    ) as agents, _loader(
        of, device=agents.devices, strategy="device-only", stall_timeout=5
    ) as loader, _loader(of, strategy="host-only") as alone:
        patch.setattr(on_ray, "_run_shard", run)
        assert [it.address.split("//")[1].split(":")[0] for it in agents.status()] == [
            _address("one"),
            victim,
        ]
        batches = iter(loader)
        first = [next(batches) for _ in range(3)]
        thread = threading.Thread(target=work)
        thread.start()
        left = _killed_within_a_part(plan, "two")
        dead.touch()
        begun = time.monotonic()
        assert left, "an attempt of the killed node"

        assert _by_samples(itertools.chain(first, batches)) == _by_samples(alone)
        print(f"the epoch ended {time.monotonic() - begun:.1f} s after the node was killed")

        thread.join(PATIENCE)
        assert result and result[0].samples == 300
        print(f"the pack ended {time.monotonic() - begun:.1f} s after the node was killed")
        assert hashes(to) == hashes(tmp_path / "alone.set")
        assert sorted(os.listdir(tmp_path)) == ["alone.set", "dead", "photos", "tasks.set"]

        def has_moved() -> bool:
            moved = agents.status()[1]
            return moved.state == "serving" and _address("three") in str(moved.address)

        wait_until(has_moved, "the agent moves to a node with the label")
        assert agents.status()[1].generation > 1
        print(f"the agent had moved {time.monotonic() - begun:.1f} s after the node was killed")
        deadline = time.monotonic() + PATIENCE
        while not _has_reopened(loader):
            assert _by_samples(loader) == _by_samples(alone)
            assert time.monotonic() < deadline, "the same loader finds the agent"
        print(f"the loader had found it {time.monotonic() - begun:.1f} s after the node was killed")
        assert _by_samples(loader) == _by_samples(alone)
        loader.close()
        moved = agents.shutdown()[1].summary
        assert moved is not None and moved["batches"] > 0, "batches of the agent on its new node"


def test_an_agent_behind_a_partition_is_replaced_and_ends(tmp_path: Path) -> None:
    make_photos(tmp_path / "photos", 120, 64)
    of = tmp_path / "a.set"
    meetpoint.pack(tmp_path / "photos", of, part_samples=8)
    expected = _epochs(of, 1, strategy="host-only")[0]
    label = "storage=in(nvme, none)"
    with on_ray.agents(label, roots=of, count=1, num_cpus=0) as agents, _loader(
        of, device=agents.devices, strategy="device-only", stall_timeout=5
    ) as loader:
        assert _address("one") in str(agents.status()[0].address)
        batches = iter(loader)
        first = [next(batches) for _ in range(3)]
        (old,) = _agents_on("one")
        cut("one")
        begun = time.monotonic()
        assert _by_samples(itertools.chain(first, batches)) == expected
        print(f"the epoch ended {time.monotonic() - begun:.1f} s after the link was cut")

        wait_until(lambda: _serving(agents, [2]), "another owner is used")
        assert _address("one") not in str(agents.status()[0].address)
        print(f"the agent had moved {time.monotonic() - begun:.1f} s after the link was cut")
        with _loader(of, device=agents.devices, strategy="device-only") as moved:
            assert _by_samples(moved) == expected
        # The old owner still runs. It ends its agent because the supervisor cannot contact it.
        wait_until(lambda: old not in _agents_on("one"), "the old agent ends")
        print(f"the old agent had ended {time.monotonic() - begun:.1f} s after the link was cut")


def _has_reopened(loader: Any) -> bool:
    epochs = loader.report()["epochs"]
    return any(it["kind"] == "device_reopened" for it in epochs[-1]["events"])


def _killed_within_a_part(plan: Path, node: str) -> List[str]:
    """Kills a node while it writes a part; returns the files that the attempt left."""
    workers: Tuple[int, ...] = ()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if plan.is_dir() and any(it.startswith(".attempt-") for it in os.listdir(plan)):
            # Stopped first, so that the attempt cannot finish in between.
            workers = tuple(it for it in processes(node) if command(it).startswith("ray::run"))
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)
            left = [it for it in os.listdir(plan) if it.startswith(".attempt-")]
            if workers and left:
                kill_node(node)
                return left
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
        time.sleep(0.001)
    return []
