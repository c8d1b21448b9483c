"""The loader with other tools of torch's users: torchdata's stateful loader, Lightning, pinning."""

from __future__ import annotations

import warnings
from typing import Any, Callable, List

import pytest
import torch

import meetpoint
from meetpoint import transforms as T

Make = Callable[..., meetpoint.Loader]

# The conventions are the same at the host and at a device.
ENDS = {
    "host-only": None,
    "device-only": meetpoint.Emulated(allow_shared=True),
}


@pytest.fixture(params=list(ENDS))
def make(request: pytest.FixtureRequest) -> Make:
    def make(dataset: str, **more: Any) -> meetpoint.Loader:
        settings = dict(
            recipe=T.Compose([T.CenterCrop(8), T.ToTensor()]),
            batch_size=3,
            shuffle=True,
            seed=7,
            output="torch",
            strategy=request.param,
            device=ENDS[request.param],
        )
        return meetpoint.Loader(dataset, **{**settings, **more})

    return make


def test_batches_are_tensors_that_own_their_memory(make: Make, dataset: str) -> None:
    with make(dataset) as loader:
        kept = [(images, images.clone()) for images, _ in loader]
    assert len(kept) == 22
    for images, copy in kept:
        assert images.dtype == torch.float32 and images.shape[1:] == (3, 8, 8)
        assert torch.equal(images, copy)
    with make(dataset) as loader:
        for images, labels in loader:
            assert labels.dtype == torch.int64
            # Writable like any tensor.
            before = images.clone()
            images.add_(1.0)
            assert torch.equal(images, before + 1.0)


def test_states_are_taken_and_loaded_as_torchdata_does(make: Make, dataset: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    theirs = stateful.StatefulDataLoader(range(22), batch_size=1)
    ours = make(dataset)
    for loader in (theirs, ours):
        whole: List[Any] = [_first(batch) for batch in loader]
        if loader is ours:
            ours.set_epoch(0)
        seen = []
        state: Any = None
        for at, batch in enumerate(loader):
            seen.append(_first(batch))
            if at == 9:
                state = loader.state_dict()
                break
        loader.load_state_dict(state)
        seen += [_first(batch) for batch in loader]
        assert seen == whole, loader
    with make(dataset) as other:
        other.load_state_dict(state)
        assert [_first(batch) for batch in other] == seen[10:]
    ours.close()


def _first(batch: Any) -> Any:
    """A value that distinguishes batches."""
    return batch[0].sum().item() if isinstance(batch, (list, tuple)) else batch.tolist()


def test_a_state_survives_torch_save(make: Make, dataset: str, tmp_path: Any) -> None:
    with make(dataset) as loader:
        batches = iter(loader)
        for _ in range(5):
            next(batches)
        torch.save({"loader": loader.state_dict()}, tmp_path / "checkpoint.pt")
        rest = [_first(batch) for batch in batches]
    with make(dataset) as other:
        other.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["loader"])
        assert [_first(batch) for batch in other] == rest


def test_lightning_resumes_in_the_middle_of_an_epoch(
    make: Make, dataset: str, tmp_path: Any
) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    seen: List[float] = []

    class Module(lightning.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            seen.append(_first(batch))
            return self.layer(batch[0].mean().reshape(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    def fit(loader: meetpoint.Loader, steps: int, checkpoint: Any = None) -> Any:
        trainer = lightning.Trainer(
            max_steps=steps, accelerator="cpu", devices=1, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer.fit(Module(), loader, ckpt_path=checkpoint, **more)
        return trainer

    import inspect

    accepted = inspect.signature(lightning.Trainer.fit).parameters
    more = {"weights_only": False} if "weights_only" in accepted else {}
    with make(dataset) as whole:
        expected = [_first(batch) for _ in range(2) for batch in whole]
    with make(dataset) as loader:
        fit(loader, 9).save_checkpoint(tmp_path / "middle.ckpt")
    with make(dataset) as loader:
        fit(loader, 30, tmp_path / "middle.ckpt")
    assert seen == expected[:30]


def test_pinning_without_cuda_is_a_warning_and_has_no_effect(make: Make, dataset: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with make(dataset, pin_memory=True) as loader:
            images, labels = next(iter(loader))
    if torch.cuda.is_available():
        assert images.is_pinned() and labels.is_pinned()
    else:
        assert [str(it.message) for it in caught] == [
            "pin_memory does nothing here: torch finds no CUDA device"
        ]


def test_rank_and_world_size_are_one_without_a_group(make: Make, dataset: str) -> None:
    with make(dataset) as loader:
        assert (loader.state_dict()["rank"], loader.state_dict()["world_size"]) == (0, 1)


def test_ranges_are_made_by_torch_itself(
    make: Make, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.version.cuda is None:
        pytest.skip("this torch was built without CUDA")
    pushed: List[str] = []
    push = torch.cuda.nvtx.range_push

    def record(name: str) -> Any:
        pushed.append(name)
        return push(name)

    monkeypatch.setattr(torch.cuda.nvtx, "range_push", record)
    with make(dataset, nvtx=True) as loader:
        assert len(list(loader)) == 22
    assert len(pushed) == 2 * 22 + 1
