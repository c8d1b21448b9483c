"""Loaders that are made before the process group: plain programs under torchrun, and Lightning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import LIMIT, torchrun

LATE = """
import json, os, sys
import torch.distributed as dist
import meetpoint
from meetpoint import transforms as T
dataset, kind = sys.argv[1:]
rank = int(os.environ["RANK"])
if kind == "spawned":
    # Launched by something that sets other variables.
    del os.environ["RANK"], os.environ["WORLD_SIZE"]
device = meetpoint.Emulated(allow_shared=True) if kind == "device" else None
loader = meetpoint.Loader(dataset, recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]), batch_size=3,
    seed=5, shuffle=True, strategy="mte" if device else "auto", device=device, workers=1,
    output="torch", columns=["sample"])
before = [len(loader), loader.state_dict()["world_size"]]
os.environ.update(RANK=str(rank), WORLD_SIZE="2")
dist.init_process_group("gloo")
after = [len(loader), loader.state_dict()["world_size"]]
epochs = [[sample for batch in loader for sample in batch["sample"].tolist()] for _ in range(2)]
with open(os.path.join(os.environ["OUT"], str(rank)), "w") as file:
    json.dump({"before": before, "after": after, "epochs": epochs}, file)
loader.close()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind", ["launched", "spawned", "device"])
def test_ranks_share_an_epoch_although_the_group_comes_late(
    dataset: str, folder: Path, kind: str
) -> None:
    reports = torchrun(LATE, 2, folder, dataset, kind)
    for it in reports:
        assert it["before"] == ([22, 1] if kind == "spawned" else [11, 2])
        assert it["after"] == [11, 2]
    for epoch in range(2):
        assert sorted(reports[0]["epochs"][epoch] + reports[1]["epochs"][epoch]) == list(range(66))


LIGHTNING = """
import json, os, sys, warnings
import torch
import lightning.pytorch as lightning
import meetpoint
from meetpoint import transforms as T

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def training_step(self, batch, _):
        self.seen += batch["sample"].tolist()
        return self.layer(batch["image"].mean().reshape(1, 1)).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

def main():
    loader = meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]),
        batch_size=3, seed=5, shuffle=True, output="torch", columns=["image", "sample"])
    warnings.simplefilter("ignore")
    trainer = lightning.Trainer(devices=2, accelerator="cpu", strategy=sys.argv[2], max_epochs=2,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False)
    module = Module()
    trainer.fit(module, loader)
    with open(os.path.join(os.environ["OUT"], str(trainer.global_rank)), "w") as file:
        json.dump({"seen": module.seen, "steps": trainer.global_step}, file)

if __name__ == "__main__":
    main()
"""


def test_lightning_s_ranks_share_a_loader_that_is_passed_to_fit(
    dataset: str, folder: Path
) -> None:
    pytest.importorskip("lightning.pytorch")
    path = folder / "program.py"
    path.write_text(LIGHTNING)
    environment = {**os.environ, "OUT": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path), dataset, "ddp"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    reports: Any = [json.loads((folder / str(rank)).read_text()) for rank in range(2)]
    assert [it["steps"] for it in reports] == [22, 22]
    for epoch in range(2):
        part = slice(33 * epoch, 33 * (epoch + 1))
        assert sorted(reports[0]["seen"][part] + reports[1]["seen"][part]) == list(range(66))
