"""timm's training script with Meetpoint's loaders: nothing in the script changes.

    meetpoint pack imagenet/train sets/train.set; meetpoint pack imagenet/val sets/validation.set
    python timm_train.py pytorch-image-models/train.py sets --no-prefetcher --model resnet50 ...
    python timm_train.py --quick      an epoch of the same steps on a few pictures that it makes

``create_dataset`` and ``create_loader`` of timm are replaced before the script runs; all of its
other arguments work as before. ``--no-prefetcher`` leaves normalising to the recipe, and mixup to
the script. What the recipe cannot express is an error.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any, List, NamedTuple

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

try:
    import timm.data
    import timm.loss
    import timm.optim
    import timm.scheduler
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch timm")
    sys.exit(0)

# Arguments of create_loader that would change the pictures, and the values that do not.
PLAIN = {
    "use_prefetcher": (False,),
    "re_count": (1,),
    "re_split": (False,),
    "train_crop_mode": (None, "", "rrc"),
    "color_jitter_prob": (None,),
    "grayscale_prob": (0.0, None),
    "gaussian_blur_prob": (0.0, None),
    "auto_augment": (None, ""),
    "num_aug_splits": (0,),
    "crop_mode": (None, "", "center"),
    "tf_preprocessing": (False,),
}


class Split(NamedTuple):
    """Stands for a dataset of timm until ``create_loader`` opens it."""

    path: Path


def create_dataset(name: str, root: str, split: str = "validation", **_: Any) -> Split:
    """In place of timm's: ``ROOT/SPLIT.set``."""
    return Split(Path(root) / f"{split}.set")


def create_loader(
    dataset: Split, input_size: Any, batch_size: int, is_training: bool = False, **given: Any
) -> "meetpoint.Loader[Any]":
    """In place of timm's, with its arguments."""
    for name, values in PLAIN.items():
        if name in given and given[name] not in values:
            raise ValueError(f"{name}={given[name]!r} is not supported; use {values[0]!r}")
    side = (input_size, input_size) if isinstance(input_size, int) else tuple(input_size)[-2:]
    to_tensor = [
        T.ToTensor(),
        T.Normalize(
            given.get("mean") or timm.data.IMAGENET_DEFAULT_MEAN,
            given.get("std") or timm.data.IMAGENET_DEFAULT_STD,
        ),
    ]
    interpolation = given.get("interpolation") or "bilinear"
    if is_training and not given.get("no_aug"):
        operations = augmentations(side, interpolation, given) + to_tensor
        if given.get("re_prob"):
            # The names in timm: a colour per pixel, one per rectangle, or black.
            mode = {"pixel": "random", "const": 0}.get(given.get("re_mode", "const"))
            if mode is None:
                raise ValueError(f"re_mode={given['re_mode']!r} is not supported; use 'pixel'")
            operations.append(
                T.RandomErasing(given["re_prob"], (0.02, 1 / 3), (0.3, 10 / 3), value=mode)
            )
    else:
        whole = int(min(side) / (given.get("crop_pct") or timm.data.DEFAULT_CROP_PCT))
        operations = [T.Resize(whole, interpolation), T.CenterCrop(side), *to_tensor]
    repeats = int(given.get("num_aug_repeats") or 0)
    return meetpoint.Loader(
        dataset.path,
        recipe=T.Compose(operations),
        batch_size=batch_size,
        shuffle=is_training and not repeats,
        sampler=meetpoint.samplers.Repeated(repeats) if is_training and repeats else None,
        drop_last=is_training,
        num_workers=given.get("num_workers", 1),
        pin_memory=bool(given.get("pin_memory")),
        output="torch",
    )


def augmentations(side: Any, interpolation: str, given: Any) -> List[T.Transform]:
    """The operations of timm on a picture for training."""
    scale = tuple(given.get("scale") or (0.08, 1.0))
    ratio = tuple(given.get("ratio") or (3 / 4, 4 / 3))
    if interpolation == "random":
        crops = [T.RandomResizedCrop(side, scale, ratio, it) for it in ("bilinear", "bicubic")]
        operations: List[T.Transform] = [T.RandomChoice(crops)]
    else:
        operations = [T.RandomResizedCrop(side, scale, ratio, interpolation)]
    operations.append(T.RandomHorizontalFlip(given.get("hflip", 0.5)))
    if given.get("vflip"):
        operations.append(T.RandomVerticalFlip(given["vflip"]))
    jitter = given.get("color_jitter", 0.4)
    if jitter:
        factors = tuple(jitter) if isinstance(jitter, (list, tuple)) else (jitter,) * 3
        operations.append(T.ColorJitter(*factors))
    return operations


def quick() -> None:
    """The steps of the script in an epoch, on a small network."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        for split in ("train", "validation"):
            make_pictures(Path(temporary) / split, 48)
            meetpoint.pack(Path(temporary) / split, Path(temporary) / f"{split}.set")
        train, val = (
            create_loader(
                create_dataset("", temporary, split),
                input_size=(3, 32, 32),
                batch_size=8,
                is_training=split == "train",
                re_prob=0.25,
                re_mode="pixel",
                interpolation="random" if split == "train" else "bicubic",
                use_prefetcher=False,
            )
            for split in ("train", "validation")
        )
        model: Any = timm.create_model("resnet18", num_classes=2)
        mixup = timm.data.Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=2)
        loss_of = timm.loss.SoftTargetCrossEntropy()
        optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
        schedule, epochs = timm.scheduler.create_scheduler_v2(
            optimizer, num_epochs=2, warmup_epochs=0, updates_per_epoch=len(train)
        )
        with train, val:
            for epoch in range(2):
                model.train()
                train.batch_sampler.set_epoch(epoch)
                for images, labels in train:
                    images, targets = mixup(images, labels)
                    loss = loss_of(model(images), targets)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                schedule.step(epoch + 1)
                model.eval()
                with torch.no_grad():
                    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in val)
                print(f"epoch {epoch}: loss {loss.item():.3f}, {right} of 48 right")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few pictures, a few steps")
    parser.add_argument("script", nargs="?", help="timm's train.py; its arguments follow")
    arguments, of_script = parser.parse_known_args()
    if arguments.quick:
        quick()
        return
    if arguments.script is None:
        parser.error("give the path of timm's train.py, or --quick")
    timm.data.create_dataset, timm.data.create_loader = create_dataset, create_loader
    sys.argv = [arguments.script, *of_script]
    runpy.run_path(arguments.script, run_name="__main__")


if __name__ == "__main__":
    main()
