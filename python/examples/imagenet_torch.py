"""Trains a ResNet on a packed ImageNet with torch, on one process or several (DDP).

    meetpoint pack imagenet/train train.set; meetpoint pack imagenet/val val.set
    python imagenet_torch.py --train train.set --val val.set
    torchrun --nproc-per-node 4 imagenet_torch.py --train train.set --val val.set
    python imagenet_torch.py --quick      two steps on a few pictures that it makes, on the CPU

What is Meetpoint's are the two loaders; the rest is as in torch's own example. A checkpoint holds
the state of the training loader of every rank, so a run resumes in the middle of an epoch, also
with another number of ranks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, List

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

try:
    import torch
    import torch.distributed as dist
    import torchvision
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch torchvision")
    sys.exit(0)

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def loaders(arguments: argparse.Namespace, side: int) -> List[meetpoint.Loader]:
    """One to train with, one to validate with."""
    normalized = [T.ToImage(), T.ToDtype("float32", scale=True), T.Normalize(MEAN, STD)]
    augmented = [T.RandomResizedCrop(side), T.RandomHorizontalFlip(), *normalized]
    centred = [T.Resize(side * 8 // 7), T.CenterCrop(side), *normalized]
    common = {"batch_size": arguments.batch_size, "num_workers": arguments.workers}
    # Ranks and their number come from torch.distributed.
    train = meetpoint.Loader(
        arguments.train,
        recipe=T.Compose(augmented),
        shuffle=True,
        strategy=arguments.strategy,
        device=arguments.device,
        pin_memory=torch.cuda.is_available(),
        output="torch",
        **common,
    )
    val = meetpoint.Loader(arguments.val, recipe=T.Compose(centred), output="torch", **common)
    return [train, val]


def save(path: Path, model: nn.Module, optimizer: Any, loader: meetpoint.Loader) -> None:
    """Writes a checkpoint with the loader's states of all ranks."""
    states: List[Any] = [loader.state_dict()]
    if dist.is_initialized():
        states = [None] * dist.get_world_size()
        dist.all_gather_object(states, loader.state_dict())
    if not dist.is_initialized() or dist.get_rank() == 0:
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**saved, "loaders": states}, path)


def validate(model: nn.Module, loader: meetpoint.Loader, place: torch.device) -> float:
    """Accuracy over all ranks, in percent."""
    model.eval()
    counts = torch.zeros(2, device=place)
    with torch.no_grad():
        for images, labels in loader:
            guessed = model(images.to(place, non_blocking=True)).argmax(1)
            counts += torch.tensor([(guessed.cpu() == labels).sum(), len(labels)], device=place)
    if dist.is_initialized():
        dist.all_reduce(counts)
    return float(counts[0] / counts[1] * 100.0)


def run(arguments: argparse.Namespace, temporary: Path) -> None:
    local = int(os.environ.get("LOCAL_RANK", 0))
    is_several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    place = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if is_several:
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    is_first = not is_several or dist.get_rank() == 0
    if arguments.quick:
        # Threads that spin are slow with few cores.
        torch.set_num_threads(1)
        # Every process has its own copy; all are the same.
        make_pictures(temporary / "pictures", 48)
        packed = meetpoint.pack(temporary / "pictures", temporary / "pictures.set")
        arguments.train = arguments.val = packed.destination
        arguments.batch_size, arguments.epochs = 8, 1
        arguments.device = meetpoint.Emulated(allow_shared=True)
    train, val = loaders(arguments, side=32 if arguments.quick else 224)
    model: nn.Module = torchvision.models.resnet18(num_classes=max(2, len(train.label_names)))
    model.to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    if arguments.resume:
        saved = torch.load(arguments.resume, map_location=place)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        train.load_state_dict(saved["loaders"])
    plain = model
    if is_several:
        model = DistributedDataParallel(model, [local] if place.type == "cuda" else None)
    for epoch in range(train.epoch, arguments.epochs):
        model.train()
        for step, (images, labels) in enumerate(train):
            images, labels = images.to(place, non_blocking=True), labels.to(place)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if is_first and step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
            if step % 1000 == 999:
                save(Path(arguments.checkpoint), plain, optimizer, train)
        save(Path(arguments.checkpoint), plain, optimizer, train)
        share = validate(model, val, place)
        if is_first:
            print(f"epoch {epoch}: {share:.2f} % right", flush=True)
    train.close()
    val.close()
    if is_several:
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", help="a packed dataset")
    parser.add_argument("--val", help="a packed dataset")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--device", default=None, help='"emulated", or "unix:PATH" of a device')
    parser.add_argument("--checkpoint", default=None)
    parser.add_argument("--resume", help="a checkpoint")
    parser.add_argument("--quick", action="store_true", help="a few pictures, a few steps")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.train is None or arguments.val is None):
        parser.error("give --train and --val, or --quick")
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.checkpoint is None:
            quick = Path(temporary) / "checkpoint.pt"
            arguments.checkpoint = str(quick) if arguments.quick else "checkpoint.pt"
        run(arguments, Path(temporary))


if __name__ == "__main__":
    main()
