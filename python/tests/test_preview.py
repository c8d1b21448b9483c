"""Contact sheets: what is on them, and what cannot be drawn."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, Dict

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T


def pixels(png: bytes) -> Any:
    """The rows of a PNG of 8 bits a channel, without a library."""
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert (depth, colour) == (8, 2)
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    rows = numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(height, 1 + 3 * width)
    made = numpy.zeros((height, width, 3), numpy.uint8)
    for y, row in enumerate(rows):
        line = row[1:].reshape(width, 3).astype(int)
        above = made[y - 1].astype(int) if y else numpy.zeros((width, 3), int)
        left, corner = numpy.zeros(3, int), numpy.zeros(3, int)
        for x in range(width):
            guess = left + above[x] - corner
            near = [abs(guess - it) for it in (left, above[x], corner)]
            paeth = numpy.where(
                (near[0] <= near[1]) & (near[0] <= near[2]),
                left,
                numpy.where(near[1] <= near[2], above[x], corner),
            )
            predicted = [0 * left, left, above[x], (left + above[x]) // 2, paeth][row[0]]
            left, corner = (line[x] + predicted) % 256, above[x]
            made[y, x] = left
    return made


RECIPE = T.Compose(
    [
        T.RandomResizedCrop(40),
        T.RandomHorizontalFlip(),
        T.ToImage(),
        T.ToDtype("float32", scale=True),
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)


def test_a_sheet_holds_what_a_loader_gives(dataset: str) -> None:
    sheet = T.preview(dataset, 3, recipe=RECIPE, draws=2, seed=5, epoch=1)
    assert sheet.epochs == [1, 2] and len(sheet.rows) == 3
    # Results of 40 are enlarged by 4, and lie 4 apart.
    assert sheet.size == (4 + 3 * 164, 4 + 3 * 164)
    drawn = pixels(sheet.png)
    with meetpoint.Loader(
        dataset, recipe=RECIPE, batch_size=1, seed=5, columns=["image", "sample"]
    ) as loader:
        for column, epoch in enumerate(sheet.epochs, 1):
            loader.set_epoch(epoch)
            seen: Dict[int, Any] = {int(it["sample"][0]): it["image"][0].copy() for it in loader}
            for row, (sample, _) in enumerate(sheet.rows):
                top, left = 4 + 164 * row, 4 + 164 * column
                tile = drawn[top : top + 160 : 4, left : left + 160 : 4]
                mean, std = (numpy.array(it).reshape(3, 1, 1) for it in
                             ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
                values = (seen[sample] * std + mean) * 255
                assert numpy.array_equal(tile, values.round().astype(numpy.uint8).transpose(1, 2, 0))


VIEWS = T.Compose(
    [
        T.Views(
            {
                "large": T.View([T.RandomResizedCrop(130), T.ToImage()], count=2),
                "small": T.View([T.RandomResizedCrop((60, 70))], count=3),
            }
        )
    ]
)
CROPS = T.Compose([T.Resize((160, 160)), T.TenCrop(128)])


# Left and top of every picture behind the stored one: rows of small ones beside large ones, or
# rows of five; 2 pixels apart.
@pytest.mark.parametrize(
    ("recipe", "side", "width", "places"),
    [
        (
            VIEWS,
            130,
            2 * 132 + 2 * 72 - 2,
            {
                "large": [(0, 0), (132, 0)],
                "small": [(264, 0), (336, 0), (264, 62)],
            },
        ),
        (
            CROPS,
            128,
            5 * 130 - 2,
            {"image": [(130 * (n % 5), 130 * (n // 5)) for n in range(10)]},
        ),
    ],
    ids=["views", "ten_crop"],
)
def test_a_sheet_holds_all_pictures_of_a_sample(
    dataset: str, recipe: T.Compose, side: int, width: int, places: Dict[str, Any]
) -> None:
    sheet = T.preview(dataset, 2, recipe=recipe, draws=1, seed=5)
    drawn = pixels(sheet.png)
    tile_height = max(top for all in places.values() for _, top in all) + 128
    tile_height = side if recipe is VIEWS else tile_height
    assert sheet.size == (12 + side + 12 + width + 12, 12 + 2 * (tile_height + 12))
    columns = [*places, "sample"]
    with meetpoint.Loader(
        dataset, recipe=recipe, batch_size=1, seed=5, columns=columns
    ) as loader:
        seen = {
            int(it["sample"][0]): {name: it[name][0].copy() for name in places} for it in loader
        }
    for row, (sample, _) in enumerate(sheet.rows):
        for name, all_places in places.items():
            for picture, (left, top) in zip(seen[sample][name], all_places):
                picture = picture if picture.shape[-1] == 3 else picture.transpose(1, 2, 0)
                height, wide = picture.shape[:2]
                y, x = 12 + row * (tile_height + 12) + top, 12 + side + 12 + left
                numpy.testing.assert_array_equal(drawn[y : y + height, x : x + wide], picture)


def test_a_sheet_is_saved_and_shown_by_notebooks(dataset: str, tmp_path: Path) -> None:
    with meetpoint.open(dataset) as opened:
        sheet = T.preview(opened, 2, recipe="mae", draws=1)
    sheet.save(tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes() == sheet.png == sheet._repr_png_()
    assert repr(sheet) == f"Preview(2 samples, epochs [0], size={sheet.size})"


def test_pictures_of_different_sizes_are_drawn_as_they_are_padded(dataset: str) -> None:
    recipe = [T.RandomShortestSize([16, 30]), T.ToImage()]
    sheet = T.preview(dataset, 3, recipe=recipe, draws=2)
    assert sheet.size == (4 + 3 * 260, 4 + 3 * 260)
    assert len(sheet.rows) == 3


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"n": 0}, meetpoint.SettingError, "samples is 0; set samples to a number from 1 to 64"),
        ({"draws": 99}, meetpoint.SettingError, "draws is 99"),
        ({"n": "x"}, meetpoint.SettingError, "n is 'x'"),
        ({"recipe": "coco-detection"}, meetpoint.SettingError, "boxes"),
        ({"recipe": "dait"}, meetpoint.RecipeError, "`deit`"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    dataset: str, arguments: Dict[str, Any], kind: type, words: str
) -> None:
    with pytest.raises(kind, match=words):
        T.preview(dataset, **{"recipe": RECIPE, **arguments})
