"""Hugging Face's Trainer, accelerate and Fabric, each resumed in the middle of an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest
import torch
from conftest import torchrun

import meetpoint
from meetpoint import transforms as T


def make(dataset: str, **more: Any) -> Any:
    settings: Any = dict(
        recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]),
        batch_size=3,
        shuffle=True,
        seed=7,
        output="torch",
        columns=["image", "label", "sample"],
    )
    return meetpoint.Loader(dataset, **{**settings, **more})


def epochs(dataset: str, count: int) -> List[List[int]]:
    with make(dataset) as loader:
        return [[sample for batch in loader for sample in batch["sample"].tolist()] for _ in range(count)]


class Model(torch.nn.Module):
    """Records the samples that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen: List[int] = []

    def forward(self, image: Any, label: Any, sample: Any) -> Any:
        self.seen += sample.tolist()
        return {"loss": self.layer(image.mean().reshape(1, 1)).sum()}


def test_the_trainer_of_transformers_resumes_in_the_middle_of_an_epoch(
    dataset: str, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Trainer(transformers.Trainer):  # type: ignore[name-defined,misc]
        loader: Any

        def get_train_dataloader(self) -> Any:
            return self.loader

    def train(steps: int, **resume: Any) -> List[int]:
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=steps,
            save_steps=30,
            learning_rate=0.0,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        model = Model()
        trainer = Trainer(model=model, args=arguments)
        with make(dataset) as trainer.loader:
            trainer.train(**resume)
        return model.seen

    # 22 steps are an epoch: it stops in the middle of the second.
    begun = train(30)
    resumed = train(50, resume_from_checkpoint=str(tmp_path / "checkpoint-30"))
    first, second, third = epochs(dataset, 3)
    assert begun == first + second[: 8 * 3]
    assert resumed == second[8 * 3 :] + third[: 6 * 3]


def test_accelerate_prepares_a_loader_and_skips_batches_of_it(dataset: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    first, second = epochs(dataset, 2)
    with make(dataset) as loader:
        prepared = accelerator.prepare_data_loader(loader)
        assert len(prepared) == 22
        for expected in (first, second):
            assert [sample for batch in prepared for sample in batch["sample"].tolist()] == expected
            assert accelerator.gradient_state.end_of_dataloader is False
    with make(dataset) as loader:
        prepared = accelerator.prepare_data_loader(loader)
        prepared.set_epoch(1)
        skipped = accelerator.skip_first_batches(prepared, 9)
        assert len(skipped) == 13
        assert [sample for batch in skipped for sample in batch["sample"].tolist()] == second[27:]
    with make(dataset) as loader:
        # Without preparing it, too.
        skipped = accelerate.skip_first_batches(loader, 9)
        assert [sample for batch in skipped for sample in batch["sample"].tolist()] == first[27:]


RANKS = """
import json, os, sys
import accelerate, torch
from accelerate.data_loader import prepare_data_loader
import meetpoint
from meetpoint import transforms as T
def make():
    return meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]),
        batch_size=3, seed=7, shuffle=True, output="torch", columns=["image", "sample"])
loader = make()
accelerator = accelerate.Accelerator(cpu=True)
reports = {}
try:
    list(accelerator.prepare_data_loader(make()))
except (meetpoint.MeetpointError, ValueError) as error:
    reports["dealt_out_again"] = type(error).__name__
kept = accelerator.prepare(loader)
reports["is_kept"] = kept is loader
prepared = prepare_data_loader(loader, accelerator.device, num_processes=1, process_index=0,
    put_on_device=True)
reports["epoch"] = [sample for batch in prepared for sample in batch["sample"].tolist()]
reports["skipped"] = [sample for batch in accelerate.skip_first_batches(prepared, 4)
    for sample in batch["sample"].tolist()]
with open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "w") as file:
    json.dump(reports, file)
loader.close()
"""


def test_accelerate_s_ranks_share_an_epoch(dataset: str, folder: Path) -> None:
    pytest.importorskip("accelerate")
    reports = torchrun(RANKS, 2, folder, dataset)
    assert sorted(reports[0]["epoch"] + reports[1]["epoch"]) == list(range(66))
    for it in reports:
        assert it["is_kept"] and it["dealt_out_again"] in ("ValueError", "StateError")
        assert len(it["skipped"]) == 7 * 3


FABRIC = """
import json, os, sys
import torch
from lightning.fabric import Fabric
import meetpoint
from meetpoint import transforms as T
def make():
    return meetpoint.Loader(sys.argv[1], recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]),
        batch_size=3, seed=7, shuffle=True, output="torch", columns=["image", "sample"])
loader = make()
fabric = Fabric(accelerator="cpu", devices=2, num_nodes=1, strategy="ddp")
fabric.launch()
batches = fabric.setup_dataloaders(loader.as_torch())
epochs = [[sample for batch in batches for sample in batch["sample"].tolist()] for _ in range(2)]
begun = []
for at, batch in enumerate(batches):
    begun += batch["sample"].tolist()
    if at == 3:
        state = loader.state_dict()
        break
loader.close()
other = make()
other.load_state_dict(state)
resumed = fabric.setup_dataloaders(other.as_torch())
assert len(resumed) == 11
rest = [sample for batch in resumed for sample in batch["sample"].tolist()]
after = [sample for batch in resumed for sample in batch["sample"].tolist()]
with open(os.path.join(os.environ["OUT"], str(fabric.global_rank)), "w") as file:
    json.dump({"epochs": epochs, "begun": begun, "rest": rest, "after": after}, file)
other.close()
"""


def test_fabric_s_ranks_resume_in_the_middle_of_an_epoch(dataset: str, folder: Path) -> None:
    pytest.importorskip("lightning.fabric")
    reports = torchrun(FABRIC, 2, folder, dataset)
    both = [
        reports[0]["epochs"][0] + reports[1]["epochs"][0],
        reports[0]["epochs"][1] + reports[1]["epochs"][1],
        [sample for it in reports for sample in it["begun"] + it["rest"]],
        [sample for it in reports for sample in it["after"]],
    ]
    for epoch in both:
        assert sorted(epoch) == list(range(66))
    assert reports[0]["after"] not in (reports[0]["epochs"][0], reports[0]["begun"] + reports[0]["rest"])


def test_a_loader_as_a_dataloader_of_torch_is_one(dataset: str) -> None:
    first, second = epochs(dataset, 2)
    with make(dataset) as loader:
        as_torch = loader.as_torch()
        assert isinstance(as_torch, torch.utils.data.DataLoader)
        assert isinstance(as_torch.sampler, torch.utils.data.DistributedSampler)
        assert len(as_torch) == 22 and len(as_torch.dataset) == 66
        assert [sample for batch in as_torch for sample in batch["sample"].tolist()] == first
        # One that is built of the parts continues where the loader is.
        built = torch.utils.data.DataLoader(
            loader.dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn
        )
        assert [sample for batch in built for sample in batch["sample"].tolist()] == second
        # The dataset alone is a map-style one, read by worker processes too.
        alone = torch.utils.data.DataLoader(
            loader.dataset, batch_size=6, num_workers=1, collate_fn=_numbers,
            multiprocessing_context="spawn",
        )  # fmt: skip
        assert [number for batch in alone for number in batch] == list(range(66))


def _numbers(samples: Any) -> List[int]:
    return [sample.number for sample in samples]
