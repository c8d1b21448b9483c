"""Trains a small network with Keras 3, on its torch or its JAX backend.

    meetpoint pack photos/train train.set; meetpoint pack photos/val val.set
    KERAS_BACKEND=torch python keras_train.py --train train.set --val val.set
    KERAS_BACKEND=jax python keras_train.py --quick      two epochs on a few pictures that it makes

With torch, ``fit`` takes ``loader.as_torch()``, else a ``PyDataset``; ``shuffle=False`` there, since
the loader shuffles. Keras takes one batch before the first epoch, so training begins at epoch 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

os.environ.setdefault("KERAS_BACKEND", "jax")
try:
    import keras
except ImportError as missing:
    print(f"skipped: {missing}; pip install keras jax")
    sys.exit(0)


class Batches(keras.utils.PyDataset):
    """The batches of an epoch by their index, which Keras counts up where it does not shuffle."""

    def __init__(self, loader: "meetpoint.Loader[Any]") -> None:
        super().__init__()
        self._loader = loader
        self._batches: Iterator[Any] = iter(())

    def __len__(self) -> int:
        return len(self._loader)

    def __getitem__(self, index: int) -> Any:
        if index == 0:
            self._batches = iter(self._loader)
        return next(self._batches)


def for_keras(loader: "meetpoint.Loader[Any]") -> Any:
    """The input of ``fit`` and ``evaluate``."""
    return loader.as_torch() if keras.backend.backend() == "torch" else Batches(loader)


def network(side: int, classes: int) -> Any:
    """Two convolutions."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((side, side, 3)),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.Conv2D(32, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", help="a packed dataset")
    parser.add_argument("--val", help="a packed dataset")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a few pictures, a few steps")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.train is None or arguments.val is None):
        parser.error("give --train and --val, or --quick")
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.quick:
            make_pictures(Path(temporary) / "pictures", 48)
            packed = meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "a.set")
            arguments.train = arguments.val = packed.destination
            arguments.batch_size, arguments.epochs = 8, 2
        side = 32 if arguments.quick else 224
        output = keras.backend.backend()
        settings: Any = {
            "batch_size": arguments.batch_size,
            "output": output if output in ("torch", "jax") else "numpy",
        }
        # Channels come last, as Keras expects them.
        to_float = T.ToDtype("float32", scale=True)
        train = meetpoint.Loader(
            arguments.train,
            recipe=[T.RandomResizedCrop(side), T.RandomHorizontalFlip(), to_float],
            shuffle=True,
            **settings,
        )
        val = meetpoint.Loader(
            arguments.val, recipe=[T.Resize((side, side)), to_float], **settings
        )
        with train, val:
            model = network(side, max(2, len(train.label_names)))
            model.compile(
                optimizer="adam",
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                metrics=["accuracy"],
            )
            model.fit(
                for_keras(train),
                epochs=arguments.epochs,
                shuffle=False,
                validation_data=for_keras(val),
                verbose=2,
            )
        print(f"trained with Keras {keras.__version__} on {output}")


if __name__ == "__main__":
    main()
