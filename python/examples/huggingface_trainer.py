"""Trains with the Trainer of transformers: one method returns the loader.

    meetpoint pack photos/train train.set; meetpoint pack photos/val val.set
    python huggingface_trainer.py --train train.set --val val.set
    python huggingface_trainer.py --quick      two epochs on a few pictures that it makes

``batch_transform`` gives the columns the names of the model's arguments.
``resume_from_checkpoint`` resumes in the middle of an epoch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T

try:
    import accelerate  # noqa: F401
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}; pip install torch transformers accelerate")
    sys.exit(0)


def as_arguments(batch: Any) -> Dict[str, Any]:
    """The arguments of a model's ``forward``."""
    images, labels = batch
    return {"pixel_values": images, "labels": labels}


class Trainer(transformers.Trainer):
    """The Trainer with loaders in place of datasets."""

    def __init__(self, train: Any, val: Any, **keys: Any) -> None:
        super().__init__(**keys)
        self._loaders = train, val

    def get_train_dataloader(self) -> Any:
        return self._loaders[0]

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return self._loaders[1]


def loader_of(path: str, side: int, batch_size: int, is_training: bool) -> Any:
    """Pictures as a ViT takes them: scaled to -1..1."""
    to_tensor = [T.ToImage(), T.ToDtype("float32", scale=True), T.Normalize([0.5] * 3, [0.5] * 3)]
    augmented = [T.RandomResizedCrop(side), T.RandomHorizontalFlip()]
    return meetpoint.Loader(
        path,
        recipe=[*(augmented if is_training else [T.Resize((side, side))]), *to_tensor],
        batch_size=batch_size,
        shuffle=is_training,
        output="torch",
        batch_transform=as_arguments,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", help="a packed dataset")
    parser.add_argument("--val", help="a packed dataset")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--output", default="checkpoints", help="folder of the checkpoints")
    parser.add_argument("--resume", help="a checkpoint")
    parser.add_argument("--quick", action="store_true", help="a few pictures, a few steps")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.train is None or arguments.val is None):
        parser.error("give --train and --val, or --quick")
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.quick:
            torch.set_num_threads(1)
            make_pictures(Path(temporary) / "pictures", 48)
            packed = meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "a.set")
            arguments.train = arguments.val = packed.destination
            arguments.batch_size, arguments.epochs = 8, 2
            arguments.output = str(Path(temporary) / "checkpoints")
        side = 32 if arguments.quick else 224
        train = loader_of(arguments.train, side, arguments.batch_size, True)
        val = loader_of(arguments.val, side, arguments.batch_size, False)
        small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.ViTConfig(
            image_size=side,
            patch_size=side // 8 if arguments.quick else 16,
            num_labels=max(2, len(train.label_names)),
            **({**small, "intermediate_size": 64} if arguments.quick else {}),
        )
        with train, val:
            trainer = Trainer(
                train,
                val,
                model=transformers.ViTForImageClassification(config),
                args=transformers.TrainingArguments(
                    output_dir=arguments.output,
                    num_train_epochs=arguments.epochs,
                    remove_unused_columns=False,
                    report_to=[],
                    use_cpu=arguments.quick,
                    disable_tqdm=arguments.quick,
                ),
            )
            trainer.train(resume_from_checkpoint=arguments.resume)
            print(f"{trainer.state.global_step} steps, {trainer.evaluate()}")


if __name__ == "__main__":
    main()
