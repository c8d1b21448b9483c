"""A contact sheet: the results of a recipe for some samples, as the model will see them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, List, Tuple, Union

from . import _native
from ._arguments import U32, U64, Recipe, compose, path, whole

if TYPE_CHECKING:
    from ._dataset import Dataset


@dataclass(frozen=True)
class Preview:
    """A contact sheet. Notebooks show it."""

    png: bytes
    """The file."""
    size: Tuple[int, int]
    """Its width and height in pixels."""
    rows: List[Tuple[int, str]]
    """Number and key of the sample in each row."""
    epochs: List[int]
    """The epoch of each column after the first, which holds the pictures as they are stored."""

    def save(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the PNG."""
        Path(file).write_bytes(self.png)

    def __repr__(self) -> str:
        return f"Preview({len(self.rows)} samples, epochs {self.epochs}, size={self.size})"

    def _repr_png_(self) -> bytes:
        return self.png


def preview(
    dataset: Union[str, "os.PathLike[str]", "Dataset"],
    n: int = 8,
    *,
    recipe: Recipe,
    draws: int = 4,
    seed: int = 0,
    epoch: int = 0,
) -> Preview:
    """Draws a contact sheet of the recipe's results.

    ::

        sheet = transforms.preview("photos.set", 8, recipe="deit", draws=6)
        sheet.save("sheet.png")

    Each row is a sample: the stored picture, followed by the results of the recipe in successive
    epochs, prepared as by a loader. Operations on batches mix the samples of the sheet.
    Normalisation is undone; boxes, points and masks of the recipe's targets are drawn. Pictures of
    different sizes are padded, as with ``collate="pad"``.

    :param dataset: the folder of a dataset, or an open one.
    :param n: samples, spread over the dataset, 1 to 64.
    :param recipe: as the argument ``recipe`` of a loader.
    :param draws: results of each sample, one for each epoch, 1 to 32.
    :param seed: seed of the random parameters.
    :param epoch: epoch of the first result.
    :raises RecipeError: a recipe that does not fit a picture.
    :raises SampleError: a damaged sample.
    """
    folder = path("dataset", getattr(dataset, "path", dataset))
    first = whole("epoch", epoch, most=U32)
    count = whole("draws", draws, most=U32)
    png, size, rows = _native.contact_sheet(
        folder,
        compose(recipe).to_toml(),
        whole("n", n, most=U32),
        count,
        whole("seed", seed, most=U64),
        first,
    )
    return Preview(png, size, rows, list(range(first, first + count)))
