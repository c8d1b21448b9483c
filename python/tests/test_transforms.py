"""Recipes in Python: text and back, equality, and torchvision's objects."""

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


def imitation(name: str, **attributes: Any) -> Any:
    """An object that has class and attributes of one of torchvision's."""
    made = type(name, (), {"__module__": "torchvision.transforms.v2._imitation"})()
    vars(made).update(attributes)
    return made


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


def test_objects_of_torchvision_are_translated() -> None:
    class Enum:
        value = "bicubic"

    class Dtype:
        def __str__(self) -> str:
            return "torch.float32"

    crop = imitation(
        "RandomResizedCrop",
        size=[24, 24],
        scale=(0.08, 1.0),
        ratio=(0.75, 4 / 3),
        interpolation=Enum(),
        antialias=True,
    )
    compose = imitation(
        "Compose",
        transforms=[
            imitation("RGB"),
            crop,
            imitation("RandomHorizontalFlip", p=0.5),
            imitation("ToImage"),
            imitation("ToDtype", dtype=Dtype(), scale=True),
            imitation("Normalize", mean=[0.5, 0.5, 0.5], std=[0.25, 0.25, 0.25]),
        ],
    )
    expected = T.Compose(
        [
            T.RandomResizedCrop(24, interpolation="bicubic"),
            T.RandomHorizontalFlip(),
            T.ToImage(),
            T.ToDtype("float32", scale=True),
            T.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    assert meetpoint.from_torchvision(compose) == expected
    old = [imitation("Resize", size=32, interpolation=2, antialias="warn", max_size=None)]
    assert meetpoint.from_torchvision(old) == T.Compose([T.Resize(32)])


def test_colours_of_torchvision_are_translated() -> None:
    compose = [
        imitation("RandomVerticalFlip", p=0.25),
        imitation("ColorJitter", brightness=(0.6, 1.4), contrast=None, saturation=None, hue=(0, 0.1)),
        imitation("RandomGrayscale", p=0.2),
        imitation("Grayscale", num_output_channels=3),
    ]
    expected = T.Compose(
        [
            T.RandomVerticalFlip(0.25),
            T.ColorJitter((0.6, 1.4), hue=(0, 0.1)),
            T.RandomGrayscale(0.2),
            T.Grayscale(3),
        ]
    )
    assert meetpoint.from_torchvision(compose) == expected


def test_turns_of_torchvision_are_translated() -> None:
    turn = imitation(
        "RandomRotation",
        degrees=[-30.0, 30.0],
        interpolation="bilinear",
        expand=True,
        center=None,
        fill=(9.5, 8, 7),
    )
    tilt = imitation(
        "RandomPerspective", distortion_scale=0.25, p=0.75, interpolation="bicubic", fill=0
    )
    expected = T.Compose(
        [T.RandomRotation(30, "bilinear", True, fill=(9, 8, 7)), T.RandomPerspective(0.25, 0.75, "bicubic")]
    )
    assert meetpoint.from_torchvision([turn, tilt]) == expected
    turn.fill = {"image": 0}
    with pytest.raises(meetpoint.RecipeError, match="RandomRotation .with a fill for each type"):
        meetpoint.from_torchvision(turn)


def test_containers_of_torchvision_are_translated() -> None:
    invert = imitation("RandomInvert", p=0.5)
    compose = [
        imitation("RandomApply", transforms=[imitation("RandomPosterize", bits=2, p=1.0)], p=0.25),
        imitation(
            "RandomChoice",
            transforms=[imitation("Compose", transforms=[invert, invert]), imitation("Identity")],
            p=[0.25, 0.75],
        ),
        imitation("RandomChoice", transforms=[invert, invert], p=[0.5, 0.5]),
        imitation("RandomOrder", transforms=[imitation("RandomSolarize", threshold=7.0, p=0.5)]),
    ]
    inverts = [T.RandomInvert(), T.RandomInvert()]
    expected = T.Compose(
        [
            T.RandomApply([T.RandomPosterize(2, 1.0)], 0.25),
            T.RandomChoice([inverts, T.RandomInvert(0)], p=[0.25, 0.75]),
            T.RandomChoice(inverts),
            T.RandomOrder([T.RandomSolarize(7)]),
        ]
    )
    assert meetpoint.from_torchvision(compose) == expected


def test_policies_of_torchvision_are_translated() -> None:
    class Enum:
        value = "cifar10"

    keys: Dict[str, Any] = {"interpolation": "bilinear", "fill": (1.5, 2, 3)}
    compose = [
        imitation("AutoAugment", policy=Enum(), **keys),
        imitation("RandAugment", num_ops=1, magnitude=2, num_magnitude_bins=3, **keys),
        imitation("TrivialAugmentWide", num_magnitude_bins=4, interpolation="nearest", fill=None),
    ]
    expected = T.Compose(
        [
            T.AutoAugment("cifar10", "bilinear", (1, 2, 3)),
            T.RandAugment(1, 2, 3, "bilinear", (1, 2, 3)),
            T.TrivialAugmentWide(4),
        ]
    )
    assert meetpoint.from_torchvision(compose) == expected


@pytest.mark.parametrize("name", ["AutoAugment", "RandAugment", "TrivialAugmentWide"])
def test_policies_of_the_first_version_are_refused_with_those_of_the_second(name: str) -> None:
    policy = imitation(name, interpolation="nearest", fill=None, policy="imagenet")
    vars(policy).update(num_ops=2, magnitude=9, num_magnitude_bins=31)
    assert meetpoint.from_torchvision(policy) == T.Compose([getattr(T, name)()])
    type(policy).__module__ = "torchvision.transforms.autoaugment"
    remedy = f"{name} .of the first version.*use torchvision.transforms.v2.{name}"
    with pytest.raises(meetpoint.RecipeError, match=remedy):
        meetpoint.from_torchvision(policy)


@pytest.mark.parametrize("name", ["GaussianBlur", "GaussianNoise", "AugMix"])
def test_what_torchvision_computes_on_tensors_is_refused_with_what_is_like_it(name: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match=f"{name} .computed on tensors.*T.{name}"):
        meetpoint.from_torchvision([imitation(name)])


def test_the_nearest_operation_is_used_where_the_class_is_named() -> None:
    made = [
        imitation("GaussianBlur", kernel_size=(3, 5), sigma=[0.1, 2.0]),
        imitation(
            "ElasticTransform", alpha=[9.0, 8.0], sigma=[3.0, 3.0], interpolation="nearest", fill=7
        ),
        imitation("GaussianNoise", mean=0.0, sigma=0.2, clip=False),
        imitation(
            "AugMix",
            severity=2,
            mixture_width=3,
            chain_depth=-1,
            alpha=0.5,
            all_ops=False,
            interpolation="bilinear",
            fill=None,
        ),
    ]
    names = [type(it).__name__ for it in made]
    expected = T.Compose(
        [
            T.GaussianBlur((5, 3), (0.1, 2.0)),
            T.ElasticTransform((9, 8), (3, 3), "nearest", 7),
            T.GaussianNoise(0, 0.2, clip=False),
            T.AugMix(2, 3, 0, 0.5, False, "bilinear"),
        ]
    )
    assert meetpoint.from_torchvision(made, nearest=names) == expected
    with pytest.raises(meetpoint.RecipeError, match="AugMix .computed on tensors"):
        meetpoint.from_torchvision(made, nearest=names[:3])
    with pytest.raises(meetpoint.RecipeError, match="'Resize', which have no nearest.*AugMix"):
        meetpoint.from_torchvision(made, nearest=["Resize"])
    with pytest.raises(meetpoint.RecipeError, match="GaussianBlur .after a conversion"):
        meetpoint.from_torchvision([imitation("ToImage"), made[0]], nearest=names)


def test_transforms_of_boxes_are_translated_where_a_target_does_the_same() -> None:
    sanitize = imitation("SanitizeBoundingBoxes", min_size=2.0, min_area=3.0)
    convert = imitation("ConvertBoundingBoxFormat", format="XYXY")
    clamp = imitation("ClampBoundingBoxes", clamping_mode="auto")
    mode = imitation("SetClampingMode", clamping_mode="soft")
    flip = imitation("RandomHorizontalFlip", p=0.5)
    boxes = {"boxes": T.Boxes("xywh", to_format="xyxy", min_size=2)}
    made = meetpoint.from_torchvision([mode, flip, clamp, sanitize, convert], boxes)
    assert made == T.Compose([T.RandomHorizontalFlip()], boxes)
    points = {"points": T.Keypoints()}
    assert meetpoint.from_torchvision([imitation("ClampKeyPoints"), flip], points)
    for transforms, targets, words in [
        ([clamp], {}, "T.Boxes are always clamped.*targets="),
        ([sanitize], {"b": T.Boxes("xyxy", min_size=1)}, "set min_size=2, min_area=3 of T.Boxes"),
        ([sanitize], {"b": T.Boxes("xyxy", min_size=2, min_area=9)}, "min_area=3"),
        ([convert], {"b": T.Boxes("xywh")}, 'set to_format="xyxy"'),
        ([imitation("SetClampingMode", clamping_mode=None)], boxes, "without clamping"),
        ([sanitize, imitation("CenterCrop", size=8)], boxes, "after SanitizeBoundingBoxes"),
        ([imitation("SanitizeKeyPoints")], points, 'outside="zero"'),
        ([imitation("ClampKeyPoints")], {"p": T.Keypoints(outside="keep")}, 'outside="clamp"'),
        ([imitation("RandomApply", transforms=[clamp], p=0.5)], boxes, "not applied at random"),
    ]:
        with pytest.raises(meetpoint.RecipeError, match=words):
            meetpoint.from_torchvision(transforms, targets)


def test_a_conversion_to_pil_is_nothing_before_one_to_a_tensor() -> None:
    pil, image = imitation("ToPILImage"), imitation("ToImage")
    assert meetpoint.from_torchvision([pil, image]) == T.Compose([T.ToImage()])
    with pytest.raises(meetpoint.RecipeError, match="ToPILImage .after"):
        meetpoint.from_torchvision([image, pil])


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


def test_erasing_of_torchvision_is_translated() -> None:
    keys: Dict[str, Any] = {"p": 0.25, "scale": (0.02, 0.33), "ratio": (0.3, 3.3)}
    compose = [
        imitation("ToTensor"),
        imitation("RandomErasing", value=[0.0], **keys),
        imitation("RandomErasing", value=None, **keys),
    ]
    expected = T.Compose([T.ToTensor(), T.RandomErasing(0.25), T.RandomErasing(0.25, mode="pixel")])
    zero = T.RandomErasing(0.25, value=0)
    random = T.RandomErasing(0.25, value="random")
    assert meetpoint.from_torchvision(compose) == T.Compose([T.ToTensor(), zero, random])
    assert T.Compose([T.ToTensor(), zero, random]) == expected
    with pytest.raises(meetpoint.RecipeError, match="RandomErasing .before a conversion"):
        meetpoint.from_torchvision(compose[1:])
    with pytest.raises(meetpoint.RecipeError, match="'noise'"):
        T.RandomErasing(value="noise")


def test_what_a_container_of_torchvision_cannot_hold_is_named_with_it() -> None:
    inner = [imitation("ElasticTransform"), imitation("ToImage")]
    apply = imitation("RandomApply", transforms=inner, p=0.5)
    words = "ElasticTransform .computed on.* inside of RandomApply, a conversion to a tensor inside"
    with pytest.raises(meetpoint.RecipeError, match=words):
        meetpoint.from_torchvision([apply])


def test_an_object_that_is_no_operation_is_refused_inside_of_another() -> None:
    with pytest.raises(meetpoint.RecipeError, match="'blur' is not a transform"):
        T.RandomApply(["blur"])  # type: ignore[list-item]  # pyright: ignore


def test_the_geometry_of_torchvision_is_translated() -> None:
    made = [
        imitation("Resize", size=[32], max_size=64, interpolation="lanczos"),
        imitation("RandomResize", min_size=8, max_size=16, interpolation="bilinear"),
        imitation("RandomShortestSize", min_size=[8, 9], max_size=None, interpolation="bicubic"),
        imitation("ScaleJitter", target_size=(30, 20), scale_range=(0.5, 2), interpolation="box"),
        imitation("Pad", padding=[1, 2, 3, 4], fill=5, padding_mode="constant"),
        imitation("RandomZoomOut", fill=(1, 2, 3), side_range=(1, 2.5), p=0.25),
        imitation(
            "RandomAffine",
            degrees=[-10.0, 10.0],
            translate=(0.1, 0.2),
            scale=None,
            shear=[-5.0, 5.0],
            interpolation="bilinear",
            fill=0,
            center=[3, 4],
        ),
        imitation(
            "RandomCrop",
            size=(8, 9),
            padding=[1, 3, 2, 4],
            pad_if_needed=True,
            fill=0,
            padding_mode="reflect",
        ),
    ]
    expected = T.Compose(
        [
            T.Resize(32, "lanczos", 64),
            T.RandomResize(8, 16),
            T.RandomShortestSize([8, 9], interpolation="bicubic"),
            T.ScaleJitter((30, 20), (0.5, 2), "box"),
            T.Pad((1, 2, 3, 4), 5),
            T.RandomZoomOut((1, 2, 3), (1, 2.5), 0.25),
            T.RandomAffine(10, (0.1, 0.2), shear=5, interpolation="bilinear", center=(3, 4)),
            T.RandomCrop((8, 9), (1, 2, 3, 4), True, padding_mode="reflect"),
        ]
    )
    assert meetpoint.from_torchvision(made) == expected
    crops = [imitation("FiveCrop", size=8), imitation("TenCrop", size=8, vertical_flip=True)]
    for crop, ours in zip(crops, [T.FiveCrop(8), T.TenCrop(8, vertical_flip=True)]):
        assert meetpoint.from_torchvision(crop) == T.Compose([ours])
    with pytest.raises(meetpoint.RecipeError, match="T.ElasticTransform is within 1"):
        meetpoint.from_torchvision(imitation("ElasticTransform", alpha=[9.0, 9.0], fill=0))
    made[4].padding = [-1, 0, 0, 0]
    with pytest.raises(meetpoint.RecipeError, match="Pad .with a negative padding"):
        meetpoint.from_torchvision(made)


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


def test_pictures_are_antialiased_whatever_torchvision_says_of_tensors() -> None:
    resize = imitation("Resize", size=32, interpolation="bilinear", antialias=False)
    assert meetpoint.from_torchvision(resize) == T.Compose([T.Resize(32)])


def test_the_first_version_divides_and_the_second_multiplies() -> None:
    def to_float(module: str) -> T.Compose:
        convert = imitation("ConvertImageDtype", dtype="float32")
        type(convert).__module__ = module
        return meetpoint.from_torchvision([imitation("PILToTensor"), convert])

    first, second = "torchvision.transforms.transforms", "torchvision.transforms.v2._misc"
    divided = T.Compose([T.ToImage(), T.ToDtype("float32", scale="divide")])
    assert to_float(first) == divided == meetpoint.from_torchvision(imitation("ToTensor"))
    assert to_float(second) == T.Compose([T.ToImage(), T.ToDtype("float32", scale=True)])


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (["ToImage", "Resize"], "Resize"),
        (["ToTensor", "RandomHorizontalFlip"], "RandomHorizontalFlip"),
        (["ToTensor", "RandomVerticalFlip"], "RandomVerticalFlip"),
        (["ToImage", "ColorJitter"], "ColorJitter"),
        (["ToImage", "Grayscale"], "Grayscale"),
        (["ToDtype", "ToImage"], "ToDtype"),
        (["Normalize"], "Normalize"),
        (["PILToTensor", "ToTensor"], "ToTensor"),
    ],
)
def test_operations_with_another_meaning_at_their_position_are_refused(
    names: List[str], refused: str
) -> None:
    attributes: Dict[str, Any] = {"size": 8, "p": 0.5, "dtype": "float32", "mean": [0.5] * 3}
    compose = [imitation(name, std=[0.5] * 3, **attributes) for name in names]
    with pytest.raises(meetpoint.RecipeError, match=refused + " .(after|before) a conversion"):
        meetpoint.from_torchvision(compose)


def test_a_transform_of_somebody_else_is_not_taken_for_torchvisions() -> None:
    class Resize:
        size = 8

    with pytest.raises(meetpoint.RecipeError, match="Resize .not known"):
        meetpoint.from_torchvision([imitation("RGB"), Resize()])


def test_what_cannot_be_translated_is_named_all_at_once() -> None:
    compose = imitation(
        "Compose",
        transforms=[
            imitation("GaussianBlur", kernel_size=(3, 3), sigma=(0.1, 2.0)),
            imitation("Resize", size=None, max_size=64, interpolation="bilinear"),
            imitation("CenterCrop", size=8),
        ],
    )
    with pytest.raises(meetpoint.RecipeError, match="GaussianBlur.*Resize .without a size"):
        meetpoint.from_torchvision(compose)


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
