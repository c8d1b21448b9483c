"""Batches of every mode of ``decode``, from host and device, as NumPy arrays and by DLPack."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import modes
import numpy
import pytest

import meetpoint
from meetpoint import transforms as T


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, str]:
    folder = tmp_path_factory.mktemp("modes")
    return {
        mode: meetpoint.pack(modes.make(folder / mode, mode), folder / f"{mode}.set").destination
        for mode in modes.MODES
    }


def recipe_of(mode: str, layout: str) -> T.Compose:
    return T.Compose(
        [T.Decode(mode=mode), T.CenterCrop((modes.HEIGHT, modes.WIDTH)), T.Layout(layout)]
    )


@pytest.mark.parametrize("end", ["host-only", "device-only"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("mode", modes.MODES)
def test_batches_hold_the_pixels_of_the_files(
    sets: Dict[str, str], mode: str, layout: str, end: str
) -> None:
    device = None if end == "host-only" else meetpoint.Emulated(allow_shared=True)
    for output in ("numpy", "dlpack"):
        with meetpoint.Loader(
            sets[mode],
            recipe=recipe_of(mode, layout),
            batch_size=4,
            columns=["image", "sample"],
            output=output,
            strategy=end,
            device=device,
        ) as loader:
            seen = 0
            for batch in loader:
                arrays = {name: numpy.from_dlpack(it) for name, it in batch.items()}
                seen += modes.check(arrays, mode, layout)
        assert seen == modes.COUNT


@pytest.mark.parametrize("end", ["host-only", "device-only"])
@pytest.mark.parametrize("mode", ["rgba", "gray16", "rgb16"])
def test_pictures_of_every_mode_are_inverted_at_both_ends(
    sets: Dict[str, str], mode: str, end: str
) -> None:
    recipe = T.Compose([*list(recipe_of(mode, "NHWC"))[:2], T.RandomInvert(1.0)])
    device = None if end == "host-only" else meetpoint.Emulated(allow_shared=True)
    with meetpoint.Loader(
        sets[mode], recipe=recipe, batch_size=4, columns=["image", "sample"], strategy=end, device=device
    ) as loader:
        for batch in loader:
            for image, sample in zip(batch["image"], batch["sample"]):
                expected = numpy.invert(modes.pixels(mode, int(sample)))
                numpy.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize("mode", ["gray", "gray16", "rgb16", "float"])
def test_floats_of_every_mode_are_scaled_by_its_largest_value(
    sets: Dict[str, str], mode: str
) -> None:
    recipe = T.Compose([*recipe_of(mode, "NHWC"), T.ToDtype("float32", scale=True)])
    with meetpoint.Loader(
        sets[mode], recipe=recipe, batch_size=4, columns=["image", "sample"]
    ) as loader:
        batch = next(iter(loader))
    dtype = modes.MODES[mode][0]
    # Floats have no largest value: they stay.
    scale = 1 if dtype == "float32" else numpy.float32(1 / numpy.iinfo(dtype).max)
    for image, sample in zip(batch["image"], batch["sample"]):
        expected = modes.pixels(mode, int(sample)).astype(numpy.float32) * scale
        numpy.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize(
    ("given", "mode"), [("gray", "gray16"), ("rgb", "rgb16"), ("gray16", "float")]
)
def test_a_file_that_does_not_hold_the_numbers_of_a_mode_is_damaged(
    sets: Dict[str, str], given: str, mode: str
) -> None:
    with meetpoint.Loader(sets[given], recipe=recipe_of(mode, "NHWC"), batch_size=4) as loader:
        with pytest.raises(meetpoint.SampleError, match="00[0-9]"):
            list(loader)


def test_a_picture_is_converted_to_another_colour_space(sets: Dict[str, str]) -> None:
    recipe = T.Compose([T.CenterCrop((modes.HEIGHT, modes.WIDTH)), T.ConvertColor("ycrcb")])
    with meetpoint.Loader(
        sets["rgb"], recipe=recipe, batch_size=4, columns=["image", "sample"]
    ) as loader:
        batch: Any = next(iter(loader))
    for image, sample in zip(batch["image"], batch["sample"]):
        red, green, blue = numpy.moveaxis(modes.pixels("rgb", int(sample)).astype(float), -1, 0)
        # ITU-R BT.601, to which OpenCV's integers are within 1.
        luma = 0.299 * red + 0.587 * green + 0.114 * blue
        expected = [luma, (red - luma) * 0.713 + 128, (blue - luma) * 0.564 + 128]
        for channel, values in enumerate(expected):
            assert abs(image[..., channel] - values.clip(0, 255)).max() <= 1
    with pytest.raises(meetpoint.RecipeError, match="`convert_color` to hsv|hsv"):
        T.Compose([T.ConvertColor("hsv"), T.ColorJitter(0.5)])
    with pytest.raises(meetpoint.RecipeError, match="`space`"):
        T.Compose([T.ConvertColor("hsb")])
