"""Transforms of torchvision become recipes with the same meaning, or are refused."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

import meetpoint
from meetpoint import transforms as T


def imitation(name: str, **attributes: Any) -> Any:
    """An object that has class and attributes of one of torchvision's."""
    made = type(name, (), {"__module__": "torchvision.transforms.v2._imitation"})()
    vars(made).update(attributes)
    return made


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
