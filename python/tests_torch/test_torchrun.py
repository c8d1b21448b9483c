"""Ranks under torchrun, with gloo on the CPU: introduced to each other by torch.distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest
from conftest import torchrun

STRATEGIES = ["host-only", "device-only", "mte", "mte-feedback", "wrr", "auto"]

# gloo's worker threads and the training's own collectives are there as in a training.
RANK = """
import json, os, signal, sys
import torch, torch.distributed as dist
import meetpoint
from meetpoint import transforms as T
dataset, strategy, doing = sys.argv[1:]
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
loader = meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]), batch_size=3,
    seed=5, shuffle=True, strategy=strategy, device=meetpoint.Emulated(allow_shared=True),
    workers=1, output="torch", columns=["image", "sample"])
def tell(**it):
    path = os.path.join(os.environ["OUT"], str(rank))
    with open(path + "~", "w") as file:
        json.dump(it, file)
    os.replace(path + "~", path)
epochs = []
try:
    for epoch in range(2):
        epochs.append([])
        for batch in loader:
            epochs[-1].append(batch["sample"].tolist())
            total = batch["image"].sum()
            dist.all_reduce(total)
            if doing == "die" and rank == ranks - 1 and len(epochs[-1]) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            if doing == "fail" and rank == ranks - 1 and len(epochs[-1]) == 2:
                raise ValueError("a broken training step")
except meetpoint.RankError as error:
    tell(error=str(error))
    raise SystemExit(1)
except RuntimeError as error:
    # gloo's own: the others noticed as well.
    tell(error="gloo: " + str(error))
    raise SystemExit(1)
kinds = [[row["source"] for row in epoch["records"]] for epoch in loader.report()["epochs"]]
tell(epochs=epochs, kinds=kinds, total=float(total))
loader.close()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_take_equal_steps_of_the_same_kind(
    dataset: str, folder: Path, strategy: str, ranks: int
) -> None:
    reports = torchrun(RANK, ranks, folder, dataset, strategy, "run")
    for epoch in range(2):
        steps: List[Any] = [it["epochs"][epoch] for it in reports]
        assert {len(rank) for rank in steps} == {-(-22 // ranks)}
        samples = [sample for rank in steps for batch in rank for sample in batch]
        assert len(samples) == 66 + 3 * (-22 % ranks)
        assert set(samples) == set(range(66))
        kinds = [it["kinds"][epoch] for it in reports]
        assert all(kind == kinds[0] for kind in kinds)
    assert len({it["total"] for it in reports}) == 1


@pytest.mark.parametrize("doing", ["die", "fail"])
def test_a_rank_that_ends_ends_the_others(dataset: str, folder: Path, doing: str) -> None:
    reports = torchrun(RANK, 2, folder, dataset, "wrr", doing, fails=True)
    assert reports[1] == {}
    # Our decision or the training's own collective fails first. torchrun may also have ended the
    # rank before any output.
    if reports[0]:
        error = reports[0]["error"]
        assert error.startswith("gloo: ") or "rank 1 left epoch 0" in error, error


GROUPS = """
import json, os, sys
import torch.distributed as dist
import meetpoint
from meetpoint import transforms as T
dist.init_process_group("gloo")
rank = dist.get_rank()
said = []
def attempt(**more):
    try:
        meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8)]), batch_size=3,
                         device=meetpoint.Emulated(allow_shared=True), **more).close()
        said.append("made")
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
attempt(rank=rank, world_size=3)
attempt(strategy=["mte", "wrr"][rank])
# Two loaders, one after the other: to train with and to validate with.
attempt(strategy="mte")
attempt(strategy="wrr")
with open(os.path.join(os.environ["OUT"], str(rank)), "w") as file:
    json.dump({"said": said}, file)
dist.destroy_process_group()
"""


def test_ranks_of_different_jobs_get_an_error(dataset: str, folder: Path) -> None:
    for it in torchrun(GROUPS, 2, folder, dataset):
        other, differs, *made = it["said"]
        assert other.startswith("SettingError: rank ") and "rendezvous" in other
        assert differs.startswith("RankError: ") and "rank 1 runs strategy wrr" in differs
        assert made == ["made", "made"]


RESTARTED = """
import json, os, signal, sys
import torch, torch.distributed as dist
import meetpoint
from meetpoint import transforms as T
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
loader = meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8)]), batch_size=3, seed=5,
    shuffle=True, strategy="wrr", device=meetpoint.Emulated(allow_shared=True), workers=1,
    columns=["sample"])
checkpoint = os.path.join(os.environ["OUT"], "checkpoint")
before = []
if attempt:
    saved = torch.load(checkpoint)
    before = saved["batches"]
    loader.load_state_dict(saved["states"])
batches = []
for batch in loader:
    batches.append(batch["sample"].tolist())
    if not attempt and len(batches) == 2:
        states, all_batches = [None] * ranks, [None] * ranks
        dist.all_gather_object(states, loader.state_dict())
        dist.all_gather_object(all_batches, batches)
        if rank == 0:
            torch.save({"states": states, "batches": all_batches}, checkpoint)
        dist.barrier()
        if rank == ranks - 1:
            os.kill(os.getpid(), signal.SIGKILL)
with open(os.path.join(os.environ["OUT"], str(rank)), "w") as file:
    uneven = loader.report()["uneven"]
    json.dump({"batches": batches, "before": before, "uneven": uneven}, file)
loader.close()
dist.destroy_process_group()
"""


def test_ranks_that_torchrun_restarts_resume_the_epoch(dataset: str, folder: Path) -> None:
    reports = torchrun(RESTARTED, 4, folder, dataset, restarts=1)
    before = [batch for rank in reports[0]["before"] for batch in rank]
    assert len(before) == 8
    rest = [batch for it in reports for batch in it["batches"]]
    repeated = [number for row in reports[0]["uneven"] for number in row["batches"]]
    assert len(before) + len(rest) == 22 + len(repeated)
    assert {sample for batch in before + rest for sample in batch} == set(range(66))
