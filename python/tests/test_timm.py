"""timm's data configurations: their translations, and errors by name."""

from __future__ import annotations

from typing import Any, Dict

import pytest

import meetpoint
from meetpoint import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_evaluation_is_the_default() -> None:
    config = {"input_size": (3, 224, 224), "interpolation": "bicubic", "crop_pct": 0.9}
    end = [T.ToTensor(), T.Normalize(MEAN, STD)]
    expected = T.Compose([T.Resize(248, "bicubic"), T.CenterCrop(224), *end])
    assert T.from_timm(config) == expected
    squash = T.from_timm(config, crop_mode="squash", crop_pct=1.0)
    assert squash == T.Compose([T.Resize([224, 224], "bicubic"), T.CenterCrop(224), *end])


def test_training_follows_the_arguments() -> None:
    made = T.from_timm(
        {"input_size": 160, "interpolation": "random", "is_training": True},
        auto_augment="3a",
        color_jitter=(0.1, 0.2, 0.3, 0.05),
        color_jitter_prob=0.8,
        re_prob=0.2,
        re_count=3,
    )
    crops = [T.RandomResizedCrop(160, interpolation=name) for name in ("bilinear", "bicubic")]
    assert made == T.Compose(
        [
            T.RandomChoice(crops),
            T.RandomHorizontalFlip(),
            T.ThreeAugment(),
            T.RandomApply([T.ColorJitter(0.1, 0.2, 0.3, 0.05)], 0.8),
            T.ToTensor(),
            T.Normalize(MEAN, STD),
            T.RandomErasing(0.2, (0.02, 1 / 3), (0.3, 1 / 0.3), "const", max_count=3),
        ]
    )


def test_rand_augment_turns_the_jitter_off() -> None:
    made = T.from_timm({"is_training": True, "auto_augment": "rand-m5", "interpolation": "bilinear"})
    names = [type(it).__name__ for it in made]
    assert "TimmRandAugment" in names and "ColorJitter" not in names
    forced = T.from_timm({"is_training": True, "auto_augment": "rand-m5", "force_color_jitter": True})
    assert "ColorJitter" in [type(it).__name__ for it in forced]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"input_sizes": 224}, "input_sizes=224 .did you mean input_size"),
        ({"crop_mode": "border"}, "crop_mode='border' .use center or squash"),
        ({"crop_border_pixels": 2}, "crop_border_pixels=2"),
        ({"input_size": (3, 224, 160)}, "only a square"),
        ({"input_size": (1, 28, 28)}, "pictures have 3 channels"),
        ({"is_training": True, "auto_augment": "original-mstd0.5"}, "auto_augment='original-mstd0.5'"),
        ({"is_training": True, "auto_augment": "rand-m9-t1"}, "'t1' chooses other operations"),
        ({"is_training": True, "gaussian_blur_prob": 0.5}, "within 1 of it"),
        ({"is_training": True, "train_crop_mode": "rkrc"}, "train_crop_mode='rkrc'"),
        ({"is_training": True, "re_prob": 0.1, "use_prefetcher": True}, "the prefetcher erases"),
        ({"is_training": True, "re_prob": 0.1, "re_num_splits": 2}, "re_num_splits=2"),
        ({"naflex": True}, "naflex=True"),
        ({"tf_preprocessing": True, "separate": True}, "tf_preprocessing=True.*separate=True"),
    ],
)
def test_what_a_recipe_cannot_hold_is_refused_by_name(config: Dict[str, Any], words: str) -> None:
    with pytest.raises(meetpoint.RecipeError, match=words):
        T.from_timm(config)
