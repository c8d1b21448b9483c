"""Trains with Lightning: the loaders are passed to ``fit``, and resume with its checkpoints.

    meetpoint pack photos/train train.set; meetpoint pack photos/val val.set
    python lightning_train.py --train train.set --val val.set
    python lightning_train.py --quick      two epochs on a few pictures that it makes

A checkpoint has the state of the training loader, so ``--resume`` resumes in the middle of an
epoch. With several devices, ranks come from Lightning's strategy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

try:
    import lightning.pytorch as lightning
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch torchvision lightning")
    sys.exit(0)


class Classifier(lightning.LightningModule):
    """A ResNet with a loss and an accuracy."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torchvision.models.resnet18(num_classes=classes)

    def training_step(self, batch: Any, _: int) -> Any:
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images), labels)

    def validation_step(self, batch: Any, _: int) -> None:
        images, labels = batch
        right = (self.net(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, batch_size=len(labels), sync_dist=True)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", help="a packed dataset")
    parser.add_argument("--val", help="a packed dataset")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--resume", help="a checkpoint of Lightning")
    parser.add_argument("--quick", action="store_true", help="a few pictures, a few steps")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.train is None or arguments.val is None):
        parser.error("give --train and --val, or --quick")
    side = 32 if arguments.quick else 224
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.quick:
            torch.set_num_threads(1)
            make_pictures(Path(temporary) / "pictures", 48)
            packed = meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "a.set")
            arguments.train = arguments.val = packed.destination
            arguments.batch_size, arguments.epochs = 8, 2
        to_tensor = [T.ToImage(), T.ToDtype("float32", scale=True)]
        train = meetpoint.Loader(
            arguments.train,
            recipe=[T.RandomResizedCrop(side), T.RandomHorizontalFlip(), *to_tensor],
            batch_size=arguments.batch_size,
            shuffle=True,
            output="torch",
        )
        val = meetpoint.Loader(
            arguments.val,
            recipe=[T.Resize(side), T.CenterCrop(side), *to_tensor],
            batch_size=arguments.batch_size,
            output="torch",
        )
        with train, val:
            trainer = lightning.Trainer(
                max_epochs=arguments.epochs,
                default_root_dir=temporary if arguments.quick else None,
                accelerator="cpu" if arguments.quick else "auto",
                enable_progress_bar=not arguments.quick,
                enable_model_summary=False,
                logger=False,
            )
            model = Classifier(max(2, len(train.label_names)))
            trainer.fit(model, train, val, ckpt_path=arguments.resume)
            assert trainer.global_step == arguments.epochs * len(train) or arguments.resume
            accuracy = float(trainer.callback_metrics["accuracy"])
            print(f"{trainer.global_step} steps, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
