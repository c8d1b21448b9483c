"""Trains without labels, by two views of each picture: SimCLR (Chen et al. 2020).

    python simclr_torch.py photos.set
    python simclr_torch.py --quick          a few steps on pictures that it makes

The recipe ``simclr`` makes both views from one decode: a batch has a column ``view``,
[batch, 2, 3, 224, 224]. Recipes with other views, such as ``dinov2``, are used in the same way.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from quickstart import make_pictures

import meetpoint
from meetpoint import recipes

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch")
    sys.exit(0)


def network(features: int) -> Any:
    """A small encoder and the projection that the loss compares."""

    def block(given: int, made: int) -> "list[Any]":
        convolution = torch.nn.Conv2d(given, made, 3, stride=2, padding=1)
        return [convolution, torch.nn.BatchNorm2d(made), torch.nn.ReLU()]

    return torch.nn.Sequential(
        *block(3, 16),
        *block(16, 32),
        *block(32, 64),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(64, features),
    )


def contrast(projected: Any, temperature: float) -> Any:
    """The loss NT-Xent of projections [batch, 2, features]: each view is to find the other."""
    batch = len(projected)
    # First all first views, then all second ones.
    rows = torch.nn.functional.normalize(projected.transpose(0, 1).flatten(0, 1), dim=1)
    alike = rows @ rows.T / temperature
    alike.fill_diagonal_(float("-inf"))
    other = torch.arange(2 * batch).roll(batch)
    return torch.nn.functional.cross_entropy(alike, other)


def train(dataset: str, size: int, batch_size: int, epochs: int, device: Any) -> float:
    """Trains an encoder, and returns the mean loss of the last epoch."""
    # The original blurs by a tenth of the height.
    blur = size // 10 // 2 * 2 + 1
    recipe = recipes.load("simclr", size=size, kernel_size=blur)
    model = network(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    mean = float("nan")
    with meetpoint.Loader(
        dataset,
        recipe=recipe,
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        columns=["view"],
        device=device,
        output="torch",
    ) as loader:
        for epoch in range(epochs):
            losses = []
            for batch in loader:
                views = batch["view"]
                projected = model(views.flatten(0, 1)).unflatten(0, views.shape[:2])
                loss = contrast(projected, temperature=0.5)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch}: loss {mean:.3f}, batches {tuple(views.shape)}")
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="?", help="folder of a packed dataset")
    parser.add_argument("--size", type=int, default=224, help="height and width of the views")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--emulated", action="store_true", help="prepare from both ends")
    parser.add_argument("--quick", action="store_true", help="make a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and arguments.dataset is None:
        parser.error("name a dataset, or give --quick")
    device = meetpoint.Emulated(allow_shared=True) if arguments.emulated else None
    torch.manual_seed(0)
    if not arguments.quick:
        train(arguments.dataset, arguments.size, arguments.batch_size, arguments.epochs, device)
        return
    with tempfile.TemporaryDirectory() as temporary:
        make_pictures(Path(temporary) / "pictures", 64)
        meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "set")
        train(str(Path(temporary) / "set"), 32, 16, 2, device)


if __name__ == "__main__":
    main()
