"""The examples that need a framework, on generated pictures; and the values that they pass to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from conftest import LIMIT

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *command: str, **environment: str) -> str:
    """The output of an example, which is skipped where a framework is not installed."""
    done = subprocess.run(
        [sys.executable, *command, str(EXAMPLES / f"{name}.py"), "--quick"],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.strip())
    return done.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("imagenet_torch", "% right"),
        ("cifar_jax", "right"),
        ("timm_train", "epoch 1: loss"),
        ("lightning_train", "12 steps, accuracy"),
        ("huggingface_trainer", "12 steps, {'eval_loss'"),
        ("simclr_torch", "epoch 1: loss"),
        ("torchvision_references", "segmentation: (4, 3, 48, 48), loss"),
    ],
)
def test_an_example_trains(name: str, expected: str) -> None:
    assert expected in run(name)


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_trains_on_both_backends(backend: str) -> None:
    assert f" on {backend}" in run("keras_train", KERAS_BACKEND=backend)


def test_ranks_train_together() -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    assert "% right" in run("imagenet_torch", *launch)


def test_the_loss_is_low_if_views_of_a_picture_are_alike() -> None:
    import simclr_torch

    # Two views in different directions for each picture, and all alike.
    apart = torch.eye(4).repeat_interleave(2, 0).unflatten(0, (4, 2))
    assert simclr_torch.contrast(apart, 0.1) < 0.01
    alike = torch.ones(4, 2, 4)
    assert abs(float(simclr_torch.contrast(alike, 0.1)) - float(torch.tensor(7.0).log())) < 1e-6


def test_the_loaders_of_the_references_give_what_their_loops_take(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    import torchvision_references as references
    from targets import make

    boxes, masks = make(tmp_path, 12)
    seen = set()
    with references.detection(boxes, [64, 96], 128, batch_size=5) as loader:
        for images, targets in loader:
            assert len(images) == len(targets)
            for image, target in zip(images, targets):
                channels, height, width = image.shape
                assert channels == 3 and max(height, width) <= 128
                assert min(height, width) in (64, 96) or max(height, width) == 128
                seen.add(target["image_id"])
                assert target["boxes"].shape == (len(target["labels"]), 4)
                assert target["labels"].dtype == torch.int64 and target["labels"].min() >= 1
                x0, y0, x1, y1 = target["boxes"].unbind(1)
                assert (x0 < x1).all() and (y0 < y1).all()
                assert x1.max() <= width and y1.max() <= height
    assert seen == set(range(12))
    with references.segmentation(masks, 60, 48, batch_size=4) as loader:
        for images, classes in loader:
            assert images.shape == (4, 3, 48, 48) and images.dtype == torch.float32
            assert classes.shape == (4, 48, 48) and classes.dtype == torch.int64
            assert set(classes.unique().tolist()) <= {0, 1, 2, 3, 255}


def test_arguments_of_timm_that_change_pictures_are_refused() -> None:
    pytest.importorskip("timm")
    import timm_train

    split = timm_train.create_dataset("", "sets", "train")
    assert split.path == Path("sets/train.set")
    changes: Dict[str, Any]
    for changes in (
        {"use_prefetcher": True},
        {"auto_augment": "rand-m9"},
        {"re_prob": 0.5, "re_mode": "rand"},
    ):
        with pytest.raises(ValueError, match="is not supported; use"):
            timm_train.create_loader(split, 32, 8, is_training=True, **changes)
