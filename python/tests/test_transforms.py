"""Recipes in Python: text and back, equality, and what is refused."""

from __future__ import annotations

import inspect
import json
import pickle
from typing import Any, Dict, List

import numpy as np
import pytest

import meetpoint
from meetpoint import _native
from meetpoint import _registry, transforms as T

EVERY = T.Compose(
    [
        T.Decode(orient=True, on_error="lenient"),
        T.RandomResize(64, 65),
        T.RandomShortestSize((64, 65), 128),
        T.ScaleJitter((80, 90), (1, 1.5)),
        T.Resize(40, "bicubic", 80, antialias=False),
        T.Pad((1, 2), padding_mode="reflect"),
        T.RandomZoomOut((1, 2, 3)),
        T.RandomRotation((-10, 20), "bicubic", True),
        T.RandomAffine(5, (0.1, 0.2), (0.5, 1.5), (1, 2), size=(60, 50), supersampling="auto"),
        T.CrumpetsAffine((60, 50), (0.5, 2), (-1, 1), 15, 0.1, (-0.1, 0.1), fill=3),
        T.RandomPerspective(),
        T.ElasticTransform((30, 40), 3.5),
        T.RandomCrop(48, 4, padding_mode="edge"),
        T.RandomResizedCrop((32, 30), scale=(0.25, 1), ratio=(1, 1.5)),
        T.CenterCrop([16]),
        T.RandomHorizontalFlip(0.25),
        T.RandomVerticalFlip(0.75),
        T.ColorJitter(0.4, contrast=(0.5, 2), hue=0.1),
        T.RandomGrayscale(),
        T.RandomApply([T.RandomSolarize(128, 1), T.AdjustGamma(2)], 0.25),
        T.RandomChoice([T.RandomInvert(), [T.RandomEqualize(), T.RandomPosterize(3)]], p=[1, 2]),
        T.RandomOrder([T.RandomAutocontrast(), T.RandomOrder([T.SigmoidContrast(-0.5)])]),
        T.RandomPhotometricDistort(hue=(0, 0.25), p=1),
        T.RandomAdjustSharpness(2),
        T.RandomChannelPermutation(),
        T.GaussianBlur((3, 5), 0.5),
        T.PillowGaussianBlur((0.5, 1), 0.25),
        T.GaussianNoise(0.25, clip=False),
        T.AutoAugment("svhn", "bilinear", (1, 2, 3)),
        T.RandAugment(3, 4, 5, "bicubic", 6),
        T.RandAugment.from_timm("rand-m9-mstd0.5-inc1"),
        T.TrivialAugmentWide(),
        T.ThreeAugment(),
        T.AugMix(4, chain_depth=-1, fill=3),
        T.RandomSensorNoise(0.25, 1),
        T.RandomGamma((-0.5, 0.25), color=0.5, contrast=(-1, 1), p=0.75),
        T.RandomSigmoidContrast((-0.5, 0.5)),
        T.GaussianBlur(sigma_relative=(0.01, 0.02)),
        T.Grayscale(3),
        T.ToDtype("float32", scale=True),
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        T.ToImage(),
        T.RandomErasing(0.25, value=(1, 2, 3), max_count=2),
        T.OneHot(5),
        T.RandomChoice([T.MixUp(num_classes=5), T.CutMix(alpha=0.5, num_classes=5)]),
        T.TimmMixup(0.8, 1.0, mode="pair", label_smoothing=0, num_classes=5),
    ]
)


def test_a_recipe_survives_text_pickle_and_print() -> None:
    assert T.Compose.from_toml(EVERY.to_toml()) == EVERY
    assert T.Compose.from_toml(EVERY.to_toml()).to_toml() == EVERY.to_toml()
    assert pickle.loads(pickle.dumps(EVERY)) == EVERY
    assert eval(repr(EVERY), vars(T)) == EVERY
    assert hash(T.Compose.from_toml(EVERY.to_toml())) == hash(EVERY)
    assert EVERY.output == {"shape": [3, 16, 16], "dtype": "float32", "layout": "NCHW"}
    assert not EVERY.is_deterministic


def test_a_single_transform_in_place_of_a_list_is_an_error_that_asks_for_a_list() -> None:
    for single in (T.Resize(3), T.Compose([T.Resize(3)])):
        with pytest.raises(meetpoint.RecipeError, match="takes a list of transforms.*in brackets"):
            T.Compose(single)  # type: ignore[arg-type]


def test_a_misspelled_transform_has_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="did you mean 'Normalize'?"):
        getattr(T, "Normalise")


def test_equality_compares_the_meaning() -> None:
    assert T.Compose([T.Decode(), T.CenterCrop(8)]) == T.Compose([T.CenterCrop((8, 8))])
    assert T.Compose([T.CenterCrop(8)]) != T.Compose([T.CenterCrop(9)])
    tensor = T.Compose([T.CenterCrop(8), T.ToTensor()])
    scaled = [T.CenterCrop(8), T.ToImage(), T.ToDtype("float32", scale="divide")]
    assert tensor == T.Compose(scaled)
    assert tensor != T.Compose([*scaled[:2], T.ToDtype("float32", scale=True)])
    assert T.Compose([T.CenterCrop(8)]) != "CenterCrop"
    assert T.Compose([T.Resize(8)]).output is None


@pytest.mark.parametrize(
    ("transforms", "words"),
    [
        ([T.ToTensor(), T.CenterCrop(8)], r"operation 2 \(CenterCrop\): takes an image"),
        ([T.Resize(0)], "size"),
        ([T.RandomHorizontalFlip(float("nan"))], r"operation 1 \(RandomHorizontalFlip\): `p`"),
        ([T.Normalize([0.5] * 3, [0.0] * 3)], r"operation 1 \(Normalize\)"),
        ([T.Resize(8, "mitchell")], "mitchell"),
        ([T.Resize(8, max_size=8)], "max_size"),
        ([T.Resize((8, 9), max_size=20)], "max_size"),
        ([T.RandomAffine(10, translate=(0.5, 1.5))], "translate"),
        ([T.RandomAffine(10, scale=(0, 1))], "scale"),
        ([T.RandomAffine(10, shear=(5, -5))], "shear"),
        ([T.RandomAffine(10, supersampling=4)], "supersampling"),
        ([T.ElasticTransform(sigma=(0, 1))], "sigma"),
        ([T.ElasticTransform(interpolation="bicubic")], "bicubic"),
        ([T.Pad(-1)], "padding"),
        ([T.Pad((1, 2, 3))], "padding"),
        ([T.Pad(1, padding_mode="circular")], "padding_mode"),
        ([T.CenterCrop(8), T.RandomCrop(9)], "padded picture of 8 x 8"),
        ([T.RandomZoomOut(side_range=(0.5, 2))], "side_range"),
        ([T.RandomResize(9, 9)], "max_size"),
        ([T.RandomShortestSize([])], "min_size"),
        ([T.ScaleJitter((9,))], "target_size"),
        ([T.ToDtype("complex64")], "complex64"),
        ([T.ColorJitter(hue=0.6)], "hue"),
        ([T.ColorJitter(brightness=-1)], "brightness"),
        ([T.RandomRotation(400)], "degrees"),
        ([T.RandomRotation(10, fill=256)], "fill"),
        ([T.RandomRotation(10, fill=(1, 2))], "fill"),
        ([T.RandomRotation(10, center=(1,))], "center"),
        ([T.RandomPerspective(1.5)], "distortion_scale"),
        ([T.Grayscale(), T.RandomRotation(10, fill=(1, 2, 3))], "3 numbers"),
        ([T.Grayscale(2)], "num_output_channels"),
        ([T.Grayscale(), T.ToDtype("float32"), T.Normalize([0.5] * 3, [0.5] * 3)], "channels is 1"),
        ([lambda picture: picture], "from_torchvision"),
        ([T.RandomApply([T.Grayscale()])], "operation 1.1 .Grayscale in RandomApply.*channels"),
        ([T.RandomApply([])], "operations"),
        ([T.RandomChoice([T.RandomInvert()], p=[0])], "not all 0"),
        ([T.RandomChoice([T.RandomInvert()], p=[1, 2])], "2 weights"),
        ([T.RandomOrder([T.ToTensor()])], "several operations"),
        ([T.RandomPosterize(0)], "bits"),
        ([T.GaussianBlur(4)], "kernel_size. holds 4, which is even"),
        ([T.GaussianBlur(3, 0)], "sigma"),
        ([T.RandAugment(magnitude=31)], "magnitude. is 31, but there are 31"),
        ([T.AutoAugment("mnist")], "policy"),
        ([T.Grayscale(), T.TrivialAugmentWide(fill=(1, 2, 3))], "1 channel"),
        ([T.RandomErasing(mode="pixel")], "values are uint8"),
        ([T.RandomErasing(value=0.5)], "0.5, which is not a finite uint8"),
        ([T.RandomErasing(min_count=3)], "max_count. is 1, below"),
        ([T.RandomErasing(), T.ToDtype("float32")], "move `to_dtype` up, before `random_erasing`"),
        ([T.RandomSolarize(257)], "threshold"),
        ([T.RandomGamma((-2, 0))], "brightness"),
        ([T.RandomSigmoidContrast((1, -1))], "contrast"),
        ([T.GaussianBlur(sigma=(1, 2), sigma_relative=0.1)], "sigma_relative"),
        ([T.CrumpetsAffine(8, scale_mode="longer")], "scale_mode"),
        ([T.CrumpetsAffine(8, rotation_sigma=-1)], "rotation_sigma"),
        ([T.Decode(mode="rgba"), T.RandomAutocontrast()], "uint8 with 4"),
        ([T.Decode(mode="rgb16"), T.ColorJitter(hue=0.1)], "hue"),
        ([T.Decode(mode="float"), T.RandomSolarize(128)], "threshold"),
    ],
)
def test_invalid_recipes_are_refused(transforms: Any, words: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match=words):
        T.Compose(transforms)


def test_an_error_names_the_argument_and_no_line_of_a_text() -> None:
    with pytest.raises(meetpoint.RecipeError) as refused:
        T.Compose([T.ToTensor(), T.Resize(0)])
    assert "line" not in str(refused.value) and "`size` holds 0" in str(refused.value)
    assert refused.value.cause == "recipe"
    assert refused.value.remedy == "set `size` to pixels from 1 to 65535, or [height, width]"


def test_a_sequence_inside_of_another_transform_is_one_operation() -> None:
    inner = T.Compose([T.RandomCrop(8), T.RandomInvert(0.5)])
    chosen = T.Compose([T.Resize(16), T.RandomChoice([inner, T.CenterCrop(8)])])
    listed = T.RandomChoice([[T.RandomCrop(8), T.RandomInvert(0.5)], T.CenterCrop(8)])
    assert chosen == T.Compose([T.Resize(16), listed])
    assert chosen.output is not None and chosen.output["shape"] == [8, 8, 3]
    flat = T.Compose([T.Compose([T.Resize(16)]), T.CenterCrop(8)])
    assert flat == T.Compose([T.Resize(16), T.CenterCrop(8)])


def test_operations_that_are_always_applied_fix_the_size() -> None:
    always, seldom = (T.Compose([T.RandomApply([T.CenterCrop(8)], p)]) for p in (1.0, 0.5))
    assert always.output is not None and always.output["shape"] == [8, 8, 3]
    assert seldom.output is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: T.RandomApply(transforms=[T.Grayscale()]), "give operations"),
        (lambda: T.RandomChoice(transforms=[T.Grayscale()]), "give operations"),
        (lambda: T.RandomOrder(transforms=[T.Grayscale()]), "give operations"),
        (lambda: T.Normalize([0.5], [0.5], inplace=True), "leave it out"),
        (lambda: T.RandomErasing(inplace=False), "leave it out"),
        (lambda: T.Resize(sise=3), "did you mean size"),
        (lambda: T.AdjustGamma(gama=2.0), "did you mean gamma"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_one_that_was_meant(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_configurations_of_timm_become_keys() -> None:
    usual = T.RandAugment.from_timm("rand-m9-mstd0.5-inc1")
    assert usual == T.TimmRandAugment(
        magnitude=9, magnitude_std=0.5, increasing=True, interpolation="random"
    )
    other = T.RandAugment.from_timm("rand-n3-p0.25-mmax12", interpolation="bicubic", fill=(1, 2, 3))
    assert other == T.TimmRandAugment(
        3, 10, 0, 12, 0.25, interpolation="bicubic", fill=(1, 2, 3)
    )
    for config, words in [
        ("augmix-m3", "augmix"),
        ("rand-m9-tweights", "tweights"),
        ("rand-q3", "'q3' is unknown"),
        ("rand-m2.5", "'m2.5' is unknown"),
        ("rand-mstd", "'mstd' is unknown"),
        ("rand-m9-inc0", "'inc0' is increasing in timm.*use inc1.*leave it out"),
    ]:
        with pytest.raises(meetpoint.RecipeError, match=words):
            T.RandAugment.from_timm(config)


def test_an_object_that_is_no_operation_is_refused_inside_of_another() -> None:
    with pytest.raises(meetpoint.RecipeError, match="'blur' is not a transform"):
        T.RandomApply(["blur"])  # type: ignore[list-item]  # pyright: ignore


def test_a_grey_picture_has_one_channel() -> None:
    grey = T.Compose([T.CenterCrop(8), T.Grayscale(), T.ToImage()])
    assert grey.output == {"shape": [1, 8, 8], "dtype": "uint8", "layout": "NCHW"}


SCHEMA: Dict[str, Any] = {it["name"]: it for it in json.loads(_native.recipe_schema())["operations"]}


def class_of(name: str) -> Any:
    return getattr(T, _registry.class_name(name))


@pytest.mark.parametrize("name", SCHEMA)
def test_a_class_has_the_keys_and_defaults_that_its_operation_declares(name: str) -> None:
    parameters = inspect.signature(class_of(name)).parameters
    keys = {key["name"]: key for key in SCHEMA[name]["keys"]}
    assert set(parameters) == set(keys)
    for parameter in parameters.values():
        key = keys[parameter.name]
        if "default" not in key:
            assert parameter.default is inspect.Parameter.empty, parameter
        elif parameter.default is not None:
            # None leaves the key out, so that the declared default holds.
            default = parameter.default
            default = list(default) if isinstance(default, tuple) else default
            assert default == key["default"] and type(default) is type(key["default"]), parameter


@pytest.mark.parametrize("name", SCHEMA)
def test_a_class_made_from_the_declaration_is_as_good_as_a_written_one(name: str) -> None:
    keys = {key["name"]: key["example"] for key in SCHEMA[name]["keys"] if "example" in key}
    decoders: Dict[str, List[Any]] = {
        "encoded": [],
        "audio": [T.DecodeAudio(sample_rate=16_000)],
        "signal": [T.DecodeSignal(num_channels=2)],
        "text": [T.DecodeText()],
        "tokens": [T.DecodeText(), T.Tokenize("tokenizer.json")],
    }
    before = list(decoders.get(SCHEMA[name]["takes"][0]["kind"], [T.Decode()]))
    before += [T.ToDtype("float32")] if name == "normalize" else []
    if name == "pack_sequences":
        before += [T.PadSequence(8, planes="ids_segments_positions")]
    made = _registry.of_declaration(SCHEMA[name])
    assert made.__name__ == class_of(name).__name__
    targets = {"boxes": T.Boxes("xyxy")} if name == "random_iou_crop" else None
    written = T.Compose([*before, class_of(name)(**keys)], targets)
    assert T.Compose([*before, made(**keys)], targets) == written
    assert T.Compose([*before, made(*keys.values())], targets) == written
    with pytest.raises(TypeError, match="nonsense"):
        made(**keys, nonsense=1)


def test_a_picture_is_decoded_to_the_channels_of_its_mode() -> None:
    grey = T.Compose([T.Decode(mode="gray"), T.CenterCrop(8), T.ToDtype("float32")])
    output = T.Compose([*grey, T.Normalize((0.5,), (0.25,))]).output
    assert output is not None and output["shape"] == [8, 8, 1]
    with pytest.raises(meetpoint.RecipeError, match="number of channels is 1"):
        T.Compose([*grey, T.Normalize((0.5, 0.5, 0.5), (1, 1, 1))])
    for mode, dtype, channels in (("rgba", "uint8", 4), ("rgb16", "uint16", 3), ("float", "float32", 1)):
        output = T.Compose([T.Decode(mode=mode), T.CenterCrop(8)]).output
        assert output is not None and output["shape"] == [8, 8, channels]
        assert output["dtype"] == dtype
        with pytest.raises(meetpoint.RecipeError, match="takes an image of uint8"):
            T.Compose([T.Decode(mode=mode), T.RandomPhotometricDistort()])
    with pytest.raises(meetpoint.RecipeError, match='did you mean "gray"'):
        T.Compose([T.Decode(mode="grey")])


def test_every_operation_has_a_class_and_other_names_have_none() -> None:
    assert {class_of(name).__name__ for name in SCHEMA} <= set(dir(T))
    with pytest.raises(AttributeError, match="Solarise"):
        T.Solarise  # pyright: ignore


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: T.Resize("64"), "size is '64', not a whole number or a sequence of"),
        (lambda: T.Pad("12"), "padding is '12', not"),
        (lambda: T.RandomRotation("30"), "degrees is '30', not"),
        (lambda: T.Normalize("123", "456"), "mean is '123', not"),
        (lambda: T.RandomHorizontalFlip("0.3"), "p is '0.3', not a number"),
        (lambda: T.CenterCrop(20.5), "size is 20.5, not a whole number"),
        (lambda: T.RandomAffine([1, None]), "degrees is None, not a number"),
        (lambda: T.ColorJitter({"low": 1}), "brightness is {'low': 1}, not"),
    ],
)
def test_values_that_are_no_numbers_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(meetpoint.RecipeError) as refused:
        make()
    assert message in str(refused.value)
    assert refused.value.cause == "recipe_value"


def test_numbers_of_numpy_are_numbers() -> None:
    assert T.RandomCrop(np.int64(5)) == T.RandomCrop(5)
    assert T.CenterCrop(np.int32(3)) == T.CenterCrop(3)
    assert T.RandomRotation(np.float32(5)) == T.RandomRotation(5)
    assert T.Resize(np.array([6, 4])) == T.Resize([6, 4])


def test_a_device_is_no_recipe() -> None:
    with pytest.raises(meetpoint.RecipeError, match="/dev/zero.*not a regular file"):
        T.Compose.load("/dev/zero")
