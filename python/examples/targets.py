"""Loads pictures with what is in them: boxes and labels for detection, masks for segmentation.

    python targets.py --detection boxes.set --segmentation masks.set
    python targets.py --quick          with a few pictures that it makes (needs pyarrow)

Detection: columns ``boxes`` (lists of four numbers: x, y, width, height) and ``category`` (a label
for each box). Segmentation: a column ``mask`` with a PNG for each picture.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Tuple

import numpy
from quickstart import png

import meetpoint
from meetpoint import transforms as T

DETECTION = T.Compose(
    [
        T.RandomZoomOut(fill=114),
        T.RandomIoUCrop(),
        T.RandomHorizontalFlip(),
        T.Resize((64, 64)),
    ],
    targets={
        "boxes": T.Boxes("xywh", to_format="xyxy", min_size=1, filters=["category"]),
    },
)
SEGMENTATION = T.Compose(
    [
        T.RandomAffine(15, scale=(0.8, 1.2), interpolation="bilinear"),
        T.RandomResizedCrop((48, 64), scale=(0.5, 1)),
        T.RandomHorizontalFlip(),
        T.ColorJitter(0.4, 0.4),
    ],
    targets={"mask": T.Mask(fill=255)},
)


def make(folder: Path, count: int) -> Tuple[str, str]:
    """Packs pictures of bright rectangles, with their boxes and with masks of where they are."""
    import pyarrow
    import pyarrow.parquet

    noise = numpy.random.default_rng(0)
    pictures, boxes, masks = [], [], []
    for number in range(count):
        height, width = (80, 60) if number % 3 == 0 else (60, 80)
        picture = noise.integers(0, 60, (height, width, 3), numpy.uint8)
        mask = numpy.zeros((height, width), numpy.uint8)
        inside = []
        for category in range(int(noise.integers(1, 4))):
            x, y = (int(noise.integers(0, side - 20)) for side in (width, height))
            w, h = (int(noise.integers(8, 20)) for _ in range(2))
            picture[y : y + h, x : x + w] += numpy.uint8(150)
            mask[y : y + h, x : x + w] = category + 1
            inside.append([x, y, w, h])
        pictures.append(png(picture))
        boxes.append(inside)
        masks.append(png(mask))
    (folder / "pictures").mkdir()
    (folder / "masks").mkdir()
    for number, (picture, mask) in enumerate(zip(pictures, masks)):
        (folder / "pictures" / f"{number:03}.png").write_bytes(picture)
        (folder / "masks" / f"{number:03}.png").write_bytes(mask)

    # Detection: pictures and boxes in one Parquet file.
    four = pyarrow.list_(pyarrow.list_(pyarrow.float32(), 4))
    table = {
        "image": pyarrow.array(pictures, pyarrow.binary()),
        "boxes": pyarrow.array(boxes, four),
        "category": pyarrow.array([list(range(len(it))) for it in boxes]),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "detection.parquet")
    meetpoint.pack(folder / "detection.parquet", folder / "detection.set", content="image")

    # Segmentation: a folder of pictures and one of masks with the same names.
    files = sorted(path.name for path in (folder / "pictures").iterdir())
    table = {
        "key": pyarrow.array(files),
        "image": pyarrow.array([(folder / "pictures" / it).read_bytes() for it in files]),
        "mask": pyarrow.array([(folder / "masks" / it).read_bytes() for it in files]),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "segmentation.parquet")
    meetpoint.pack(folder / "segmentation.parquet", folder / "segmentation.set", content="image")
    return str(folder / "detection.set"), str(folder / "segmentation.set")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detection", help="folder of a packed dataset")
    parser.add_argument("--segmentation", help="folder of a packed dataset")
    parser.add_argument("--quick", action="store_true", help="make them of a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and (arguments.detection is None or arguments.segmentation is None):
        parser.error("give --detection and --segmentation, or --quick")

    with tempfile.TemporaryDirectory() as temporary:
        detection, segmentation = arguments.detection, arguments.segmentation
        if arguments.quick:
            detection, segmentation = make(Path(temporary), 24)

        columns = ["image", "boxes", "category"]
        with meetpoint.Loader(detection, recipe=DETECTION, batch_size=8, columns=columns) as loader:
            for batch in loader:
                boxes, sizes = batch["boxes"].padded()
                categories, _ = batch["category"].padded(fill=-1)
                assert boxes.shape[:2] == categories.shape and (boxes <= 64).all()
                print(f"detection: {batch['image'].shape}, {boxes.shape}, sizes {sizes.tolist()}")

        columns = ["image", "mask"]
        with meetpoint.Loader(
            segmentation, recipe=SEGMENTATION, batch_size=8, columns=columns
        ) as loader:
            for batch in loader:
                image, mask = batch["image"], batch["mask"]
                assert image.shape[:3] == mask.shape
                # Rectangles are bright, and their masks lie where they do.
                inside, outside = image[(mask > 0) & (mask < 255)], image[mask == 0]
                assert inside.mean() > outside.mean() + 40
                print(f"segmentation: {image.shape}, {mask.shape}, classes {numpy.unique(mask)}")


if __name__ == "__main__":
    main()
