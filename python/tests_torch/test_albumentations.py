"""Translations of albumentations give its pixels and boxes; all others are refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import pytest
from quickstart import png

import meetpoint
from meetpoint import transforms as T

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
A = pytest.importorskip("albumentations")
pyarrow = pytest.importorskip("pyarrow")

SIZES = [(60, 84), (84, 62), (64, 64), (50, 98), (40, 40)]
NEAREST_EXACT = 6
BOXES = [
    [[4, 6, 20, 30], [30, 20, 18, 25], [0, 0, 5, 5]],
    [[0, 0, 62, 84]],
    [[2, 1, 9, 10], [8, 9, 30, 40]],
    [[60, 10, 37, 8]],
    [],
]


def picture(number: int) -> Any:
    """Noise on a gradient, in which no channel is like another."""
    height, width = SIZES[number]
    noise = numpy.random.default_rng(number).normal(0, 40, (height, width, 3))
    ramp = numpy.linspace(0, 255, width)[None, :, None] * [1.0, 0.7, 0.5]
    return numpy.clip(ramp + noise, 0, 255).astype(numpy.uint8)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pictures with boxes, labels and points."""
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("albumentations")
    floats = pyarrow.float32()
    columns = {
        "image": pyarrow.array([png(picture(it)) for it in range(len(SIZES))], pyarrow.binary()),
        "bboxes": pyarrow.array(BOXES, pyarrow.list_(pyarrow.list_(floats, 4))),
        "category": pyarrow.array([list(range(len(it))) for it in BOXES]),
        "points": pyarrow.array(
            [[[[10.0, 12.0]]]] * len(SIZES), pyarrow.list_(pyarrow.list_(pyarrow.list_(floats, 2), 1))
        ),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "table.parquet")
    return meetpoint.pack(folder / "table.parquet", folder / "a.set", content="image").destination


def ours(table: str, recipe: T.Compose, sample: int, columns: List[str]) -> Dict[str, Any]:
    sampler = meetpoint.samplers.Indices([sample])
    with meetpoint.Loader(
        table, recipe=recipe, batch_size=1, sampler=sampler, columns=columns
    ) as loader:
        return dict(next(iter(loader)))


def fitted(recipe: T.Compose, pixels: Any) -> T.Compose:
    """With a crop of all, since the size of a result has to be known."""
    at = next((at for at, it in enumerate(recipe) if isinstance(it, _ON_ELEMENTS)), len(recipe))
    parts = list(recipe)
    return T.Compose([*parts[:at], T.CenterCrop(pixels.shape[:2]), *parts[at:]], recipe.targets)


_ON_ELEMENTS = (T.ToDtype, T.Normalize, T.ToImage)

EXACT: Dict[str, Callable[[], List[Any]]] = {
    "mirrored": lambda: [A.HorizontalFlip(p=1), A.VerticalFlip(p=0)],
    "upside down": lambda: [A.VerticalFlip(p=1)],
    "inverted": lambda: [A.InvertImg(p=1)],
    "resized": lambda: [A.Resize(40, 51, interpolation=NEAREST_EXACT)],
    "enlarged": lambda: [A.Resize(140, 151, interpolation=NEAREST_EXACT)],
    "padded": lambda: [A.Pad((3, 4, 5, 6), fill=(9, 8, 7))],
    "padded by axis": lambda: [A.Pad((3, 4), fill=7)],
    "padded, edge": lambda: [A.Pad(5, border_mode=1)],
    "padded, mirror": lambda: [A.Pad((3, 4, 5, 6), border_mode=2)],
    "padded, mirror without edge": lambda: [A.Pad((3, 4, 5, 6), border_mode=4)],
    "solarized": lambda: [A.Solarize(threshold_range=(0.3, 0.3), p=1)],
    "posterized": lambda: [A.Posterize(num_bits=3, p=1)],
    "to floats": lambda: [A.HorizontalFlip(p=1), A.ToFloat(max_value=255)],
    "scaled": lambda: [A.Normalize((0, 0, 0), (1, 1, 1))],
    "unscaled": lambda: [A.Normalize((0, 0, 0), (1, 1, 1), max_pixel_value=1)],
    "one of one": lambda: [A.OneOf([A.InvertImg(p=0.2)], p=1), A.NoOp()],
    "one or other": lambda: [A.OneOrOther(A.InvertImg(), A.VerticalFlip(), p=1)],
    "in sequence": lambda: [A.Sequential([A.HorizontalFlip(p=1), A.InvertImg(p=1)], p=1)],
}


@pytest.mark.parametrize("name", EXACT)
def test_a_translation_gives_albumentations_pixels(table: str, name: str) -> None:
    for number in range(len(SIZES)):
        expected = A.Compose(EXACT[name]())(image=picture(number))["image"]
        recipe = fitted(meetpoint.from_albumentations(A.Compose(EXACT[name]())), expected)
        image = ours(table, recipe, number, ["image"])["image"][0]
        assert image.dtype == expected.dtype and (image == expected).all(), name


def test_random_translations_give_one_of_albumentations_pictures(table: str) -> None:
    whole = picture(2)
    turns = [numpy.rot90(whole, turn) for turn in range(4)]
    recipe = fitted(meetpoint.from_albumentations(A.Compose([A.RandomRotate90(p=1)])), whole)
    permuted = fitted(meetpoint.from_albumentations(A.ChannelShuffle(p=1)), whole)
    crop = meetpoint.from_albumentations([A.RandomCrop(30, 20, p=1), A.ToTensorV2()])
    seen = set()
    sampler = meetpoint.samplers.Indices([2])
    for one in (recipe, permuted, crop):
        with meetpoint.Loader(table, recipe=one, sampler=sampler) as loader:
            for _ in range(16):
                image = next(iter(loader))[0][0]
                list(loader)
                if one is recipe:
                    seen.add(next(at for at, turn in enumerate(turns) if (image == turn).all()))
                elif one is permuted:
                    assert sorted(image.sum((0, 1))) == sorted(whole.sum((0, 1)))
                else:
                    assert image.shape == (3, 30, 20)
                    windows = numpy.lib.stride_tricks.sliding_window_view(
                        whole.transpose(2, 0, 1), (3, 30, 20)
                    )
                    assert (windows == image).all((3, 4, 5)).any()
    assert len(seen) > 2


def test_probabilities_and_weights_are_preserved() -> None:
    two = A.OneOf([A.InvertImg(p=0.75), A.VerticalFlip(p=0.25)], p=0.5)
    found = meetpoint.from_albumentations(A.Compose([two, A.HorizontalFlip(p=0.3)], p=0.9))
    choice = T.RandomChoice([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0)], [0.75, 0.25])
    inside = [T.RandomApply([choice], 0.5), T.RandomHorizontalFlip(0.3)]
    assert found == T.Compose([T.RandomApply(inside, 0.9)])
    with_p = meetpoint.from_albumentations(A.Pad(3, p=0.5))
    assert with_p == T.Compose([T.RandomApply([T.Pad([3], [0])], 0.5)])


@pytest.mark.parametrize(
    ("made", "bound"),
    [
        (lambda: A.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), 1e-6),
        (lambda: A.ToGray(p=1), 1),
        (lambda: A.Resize(120, 150, p=1), 1),
    ],
)
def test_the_nearest_operation_is_used_on_request(
    table: str, made: Callable[[], Any], bound: float
) -> None:
    name = type(made()).__name__
    with pytest.raises(meetpoint.RecipeError, match=f"{name} .*T\\..*nearest="):
        meetpoint.from_albumentations(A.Compose([made()]))
    for number in range(len(SIZES)):
        expected = A.Compose([made()])(image=picture(number))["image"]
        recipe = meetpoint.from_albumentations(A.Compose([made()]), nearest=[name])
        image = ours(table, fitted(recipe, expected), number, ["image"])["image"][0]
        assert image.dtype == expected.dtype
        difference = numpy.abs(image.astype(float) - expected.astype(float))
        assert 0 < difference.max() <= bound


def test_a_centre_crop_is_at_most_one_pixel_aside(table: str) -> None:
    recipe = meetpoint.from_albumentations(A.CenterCrop(39, 37), nearest=["CenterCrop"])
    for number, (height, width) in enumerate(SIZES):
        image = ours(table, recipe, number, ["image"])["image"][0]
        top, left = (height - 39) // 2, (width - 37) // 2
        near = [(top + down, left + right) for down in (0, 1) for right in (0, 1)]
        assert any((image == picture(number)[y : y + 39, x : x + 37]).all() for y, x in near)


@pytest.mark.parametrize(
    ("transforms", "words"),
    [
        (lambda: [A.GaussianBlur(), A.Rotate()], "GaussianBlur .*T.GaussianBlur.*Rotate .*T.Random"),
        (lambda: [A.RandomResizedCrop((8, 8))], "RandomResizedCrop .*Pillow"),
        (lambda: [A.RandomCrop(8, 8, pad_if_needed=True)], "RandomCrop .with pad_if_needed"),
        (lambda: [A.Solarize((0.1, 0.5))], "a range of thresholds"),
        (lambda: [A.Posterize((2, 5))], "a range of bits"),
        (lambda: [A.ToTensorV2(), A.VerticalFlip()], "VerticalFlip .after a conversion"),
        (lambda: [A.ToFloat(), A.InvertImg()], "InvertImg .after a conversion"),
        (lambda: [A.ToFloat(p=0.5)], "ToFloat .with p=0.5"),
        (lambda: [A.ToFloat(1000)], "max_value=1000"),
        (lambda: [A.Normalize(normalization="image")], "normalization='image'"),
        (lambda: [A.ToGray(method="max")], "method='max'"),
        (lambda: [A.RandomFog()], "RandomFog .no operation has its pixels"),
        (lambda: [A.SomeOf([A.VerticalFlip()], n=1)], "SomeOf"),
        (lambda: [lambda image: image], "function .not known"),
    ],
)
def test_what_has_other_pixels_is_refused_by_name(
    transforms: Callable[[], List[Any]], words: str
) -> None:
    with pytest.raises(meetpoint.RecipeError, match=words):
        meetpoint.from_albumentations(transforms())


def test_names_without_a_nearest_operation_are_refused() -> None:
    with pytest.raises(meetpoint.RecipeError, match="'Fog'.*choose from.*Normalize"):
        meetpoint.from_albumentations(A.Compose([A.VerticalFlip()]), nearest=["Fog"])


def with_boxes(transforms: List[Any], **more: Any) -> Any:
    settings = {"format": "coco", "label_fields": ["category"], **more}
    return A.Compose(transforms, bbox_params=A.BboxParams(**settings))


@pytest.mark.parametrize(
    ("transforms", "more"),
    [
        (lambda: [A.HorizontalFlip(p=1), A.VerticalFlip(p=1)], {}),
        (lambda: [A.Pad((3, 4, 5, 6))], {"format": "pascal_voc"}),
        (lambda: [A.Resize(40, 50, interpolation=NEAREST_EXACT)], {"min_width": 8, "min_height": 8}),
        (lambda: [A.Resize(40, 50, interpolation=NEAREST_EXACT)], {"min_area": 200}),
        # The margins of all pictures are even, so the crop is the same.
        (lambda: [A.CenterCrop(40, 40)], {}),
    ],
)
def test_boxes_move_as_those_of_albumentations(
    table: str, transforms: Callable[[], List[Any]], more: Dict[str, Any]
) -> None:
    for number, boxes in enumerate(BOXES):
        if more.get("format") == "pascal_voc":
            # As corners, these boxes lie inside of their pictures too, or are left out.
            boxes = [box for box in boxes if box[2] > box[0] and box[3] > box[1]]
            if boxes != BOXES[number]:
                continue
        theirs = with_boxes(transforms(), **more)
        labels = list(range(len(boxes)))
        expected = theirs(image=picture(number), bboxes=boxes, category=labels)
        recipe = meetpoint.from_albumentations(theirs, nearest=["CenterCrop"])
        recipe = fitted(recipe, expected["image"])
        batch = ours(table, recipe, number, ["image", "bboxes", "category"])
        assert (batch["image"][0] == expected["image"]).all()
        found = numpy.asarray(batch["bboxes"][0], numpy.float64).reshape(-1, 4)
        wanted = numpy.asarray(expected["bboxes"], numpy.float64).reshape(-1, 4)
        assert numpy.abs(found - wanted).max(initial=0) < 1e-4
        assert batch["category"][0].tolist() == [int(it) for it in expected["category"]]


def test_points_move_as_those_of_albumentations(table: str) -> None:
    theirs = A.Compose(
        [A.Pad((3, 4, 5, 6))], keypoint_params=A.KeypointParams("xy", remove_invisible=False)
    )
    expected = theirs(image=picture(0), keypoints=[[10.0, 12.0]])
    recipe = meetpoint.from_albumentations(theirs, keypoints="points")
    batch = ours(table, fitted(recipe, expected["image"]), 0, ["image", "points"])
    assert batch["points"][0].tolist() == [[[10.0 + 3.0, 12.0 + 4.0]]]
    assert numpy.asarray(expected["keypoints"]).tolist() == [[13.0, 16.0]]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"format": "yolo"}, "format='yolo'.*pixels"),
        ({"min_visibility": 0.5}, "min_visibility"),
        ({"min_width": 3}, "min_width and min_height that differ"),
        ({"clip": True}, "clip .*damage"),
    ],
)
def test_parameters_of_boxes_that_do_not_map_are_refused(
    more: Dict[str, Any], words: str
) -> None:
    with pytest.raises(meetpoint.RecipeError, match=f"bbox_params .*{words}"):
        meetpoint.from_albumentations(with_boxes([A.VerticalFlip()], **more))


def test_parameters_of_points_and_orders_that_do_not_map_are_refused() -> None:
    points = A.KeypointParams("xy", remove_invisible=False)
    with pytest.raises(meetpoint.RecipeError, match="keypoint_params .HorizontalFlip.*half a pixel"):
        meetpoint.from_albumentations(A.Compose([A.HorizontalFlip()], keypoint_params=points))
    with pytest.raises(meetpoint.RecipeError, match="keypoint_params .remove_invisible"):
        meetpoint.from_albumentations(
            A.Compose([A.InvertImg()], keypoint_params=A.KeypointParams("xy"))
        )
    with pytest.raises(meetpoint.RecipeError, match="Pad after a crop.*check_each_transform"):
        meetpoint.from_albumentations(with_boxes([A.RandomCrop(8, 8), A.Pad(2)]))
    with pytest.raises(meetpoint.RecipeError, match="additional_targets"):
        meetpoint.from_albumentations(
            A.Compose([A.InvertImg()], additional_targets={"other": "image"})
        )


def test_a_loader_takes_the_object_itself(table: str) -> None:
    recipe = A.Compose([A.Resize(8, 8, interpolation=NEAREST_EXACT), A.ToTensorV2()])
    with meetpoint.Loader(table, recipe=recipe, batch_size=4) as loader:
        assert next(iter(loader))[0].shape == (4, 3, 8, 8)
    assert Path(table).is_dir()
