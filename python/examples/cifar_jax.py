"""Trains a small network on a packed CIFAR-10 with JAX.

    meetpoint pack cifar10/train train.set; meetpoint pack cifar10/test test.set
    python cifar_jax.py --train train.set --test test.set
    python cifar_jax.py --quick      an epoch on a few pictures that it makes

Batches reach JAX through DLPack without a copy; channels come last, as JAX expects them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    print(f"skipped: {missing}; pip install jax")
    sys.exit(0)

CROP = 28
Weights = List[Dict[str, Any]]


def make_weights(key: Any, classes: int) -> Weights:
    """Three convolutions and a linear layer."""
    weights: Weights = []
    for given, made in [(3, 32), (32, 64), (64, 128)]:
        key, own = jax.random.split(key)
        scale = (2.0 / (9 * given)) ** 0.5
        kernel = scale * jax.random.normal(own, (3, 3, given, made))
        weights.append({"kernel": kernel, "bias": jnp.zeros(made)})
    kernel = 0.01 * jax.random.normal(key, (128, classes))
    return [*weights, {"kernel": kernel, "bias": jnp.zeros(classes)}]


def guess(weights: Weights, images: Any) -> Any:
    """Scores of each class, for [batch, height, width, 3]."""
    x = images
    for layer in weights[:-1]:
        x = jax.lax.conv_general_dilated(
            x, layer["kernel"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + layer["bias"])
    return x.mean((1, 2)) @ weights[-1]["kernel"] + weights[-1]["bias"]


def loss_of(weights: Weights, images: Any, labels: Any) -> Any:
    scores = jax.nn.log_softmax(guess(weights, images))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


@jax.jit
def step(weights: Weights, images: Any, labels: Any) -> Any:
    """The weights after a step, and the loss before it."""
    loss, slopes = jax.value_and_grad(loss_of)(weights, images, labels)
    return jax.tree.map(lambda own, slope: own - 0.05 * slope, weights, slopes), loss


def accuracy(weights: Weights, loader: meetpoint.Loader) -> float:
    """In percent."""
    right = [
        int((guess(weights, images).argmax(1) == labels).sum()) for images, labels in loader
    ]
    return 100.0 * sum(right) / loader.samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", help="a packed dataset")
    parser.add_argument("--test", help="a packed dataset")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--quick", action="store_true", help="make a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.train is None or arguments.test is None):
        parser.error("give --train and --test, or --quick")
    device = None
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.quick:
            make_pictures(Path(temporary) / "pictures", 64)
            packed = meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "set")
            arguments.train = arguments.test = packed.destination
            arguments.epochs = 1
            device = meetpoint.Emulated(allow_shared=True)
        scaled = T.ToDtype("float32", scale=True)
        augmented = T.Compose([T.RandomResizedCrop(CROP, scale=(0.5, 1.0)),
                               T.RandomHorizontalFlip(), scaled])  # fmt: skip
        train = meetpoint.Loader(
            arguments.train, recipe=augmented, batch_size=16, shuffle=True, drop_last=True,
            strategy=arguments.strategy, device=device, output="jax",
        )  # fmt: skip
        centred = T.Compose([T.CenterCrop(CROP), scaled])
        test = meetpoint.Loader(arguments.test, recipe=centred, batch_size=16, output="jax")
        weights = make_weights(jax.random.key(0), max(2, len(train.label_names)))
        with train, test:
            for epoch in range(arguments.epochs):
                losses = []
                for images, labels in train:
                    weights, loss = step(weights, images, labels)
                    losses.append(float(loss))
                mean = sum(losses) / len(losses)
                print(f"epoch {epoch}: loss {mean:.3f}, {accuracy(weights, test):.1f} % right")


if __name__ == "__main__":
    main()
