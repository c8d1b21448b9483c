#!/usr/bin/env python3
"""Writes docs/torchvision.md: the translation of every class of torchvision.transforms.v2.

    python3 scripts/torchvision_table.py [--check]

Which classes are translated, and why others are not, comes from the translation of the installed
package meetpoint; what an operation does, from its declaration. The script adds which oracle an
operation is compared with, and where. With --check it writes nothing and fails if the document
is stale. python/tests checks that, python/tests_torch that no class of torchvision is missing.
"""

import argparse
import json
import pathlib
import sys

from meetpoint import _native, _torchvision, _torchvision_targets

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "torchvision.md"
GOLDEN = "kernels/tests/golden"

PILLOW = "Pillow 13.0.0, bit for bit"
NUMPY = "NumPy 2.4.6, bit for bit"
TENSORS = "torchvision 0.29.2 on tensors, within 1"
TORCHVISION = "torchvision 0.29.2, bit for bit"

# Class of torchvision: operation, oracle, golden files.
OPERATIONS = {
    "AugMix": ("aug_mix", PILLOW, ["policies.txt"]),
    "AutoAugment": ("auto_augment", PILLOW, ["policies.txt"]),
    "CenterCrop": ("center_crop", PILLOW, ["recipes.txt", "targets.txt"]),
    "ColorJitter": ("color_jitter", PILLOW, ["colours.txt"]),
    "ConvertImageDtype": ("to_dtype", NUMPY, ["tensors.txt"]),
    "CutMix": ("cut_mix", TORCHVISION, ["batch.txt"]),
    "ElasticTransform": ("elastic_transform", TENSORS, ["geometry.txt", "targets.txt"]),
    "FiveCrop": ("five_crop", TORCHVISION, ["crops_of_one.txt"]),
    "GaussianBlur": ("gaussian_blur", TENSORS, ["policies.txt"]),
    "GaussianNoise": ("gaussian_noise", NUMPY, ["policies.txt"]),
    "Grayscale": ("grayscale", PILLOW, ["colours.txt"]),
    "MixUp": ("mix_up", TORCHVISION, ["batch.txt"]),
    "Normalize": ("normalize", NUMPY, ["tensors.txt"]),
    "PILToTensor": ("layout", NUMPY, ["tensors.txt"]),
    "Pad": ("pad", PILLOW, ["geometry.txt", "targets.txt"]),
    "RandAugment": ("rand_augment", PILLOW, ["policies.txt"]),
    "RandomAdjustSharpness": ("random_adjust_sharpness", PILLOW, ["operations.txt"]),
    "RandomAffine": ("random_affine", PILLOW, ["geometry.txt", "warps.txt", "targets.txt"]),
    "RandomApply": ("random_apply", PILLOW, ["operations.txt"]),
    "RandomAutocontrast": ("random_autocontrast", PILLOW, ["operations.txt"]),
    "RandomChannelPermutation": ("random_channel_permutation", NUMPY, ["operations.txt"]),
    "RandomChoice": ("random_choice", PILLOW, ["operations.txt", "batch.txt"]),
    "RandomCrop": ("random_crop", PILLOW, ["geometry.txt", "targets.txt"]),
    "RandomEqualize": ("random_equalize", PILLOW, ["operations.txt"]),
    "RandomErasing": ("random_erasing", NUMPY, ["operations.txt"]),
    "RandomGrayscale": ("random_grayscale", PILLOW, ["colours.txt"]),
    "RandomHorizontalFlip": ("random_horizontal_flip", PILLOW, ["recipes.txt", "targets.txt"]),
    "RandomInvert": ("random_invert", PILLOW, ["operations.txt"]),
    "RandomIoUCrop": ("random_iou_crop", PILLOW, ["targets.txt"]),
    "RandomOrder": ("random_order", PILLOW, ["operations.txt", "targets.txt"]),
    "RandomPerspective": ("random_perspective", PILLOW, ["geometry.txt", "targets.txt"]),
    "RandomPhotometricDistort": ("random_photometric_distort", PILLOW, ["operations.txt"]),
    "RandomPosterize": ("random_posterize", PILLOW, ["operations.txt"]),
    "RandomResize": ("random_resize", PILLOW, ["geometry.txt"]),
    "RandomResizedCrop": ("random_resized_crop", PILLOW, ["crops.txt", "recipes.txt"]),
    "RandomRotation": ("random_rotation", PILLOW, ["geometry.txt", "targets.txt"]),
    "RandomShortestSize": ("random_shortest_size", PILLOW, ["geometry.txt"]),
    "RandomSolarize": ("random_solarize", PILLOW, ["operations.txt"]),
    "RandomVerticalFlip": ("random_vertical_flip", PILLOW, ["targets.txt"]),
    "RandomZoomOut": ("random_zoom_out", PILLOW, ["geometry.txt", "targets.txt"]),
    "Resize": ("resize", PILLOW, ["resize.txt", "filters.txt", "targets.txt"]),
    "ScaleJitter": ("scale_jitter", PILLOW, ["geometry.txt", "targets.txt"]),
    "TenCrop": ("ten_crop", TORCHVISION, ["crops_of_one.txt"]),
    "ToDtype": ("to_dtype", NUMPY, ["tensors.txt"]),
    "ToImage": ("layout", NUMPY, ["tensors.txt"]),
    "ToTensor": ("to_dtype", NUMPY, ["tensors.txt"]),
    "TrivialAugmentWide": ("trivial_augment_wide", PILLOW, ["policies.txt"]),
}
# Base classes and sequences, which are no transforms of their own.
SEQUENCES = {"Compose": "a sequence becomes its members"}
# What torchvision.transforms.v2 exports beside its transforms.
NOT_TRANSFORMS = ("AutoAugmentPolicy", "InterpolationMode", "Transform")


def classes():
    """Every class: whether it is translated, its operation or None, and what there is to say."""
    found = {name: ("yes", None, words) for name, words in SEQUENCES.items()}
    found.update({name: ("yes", None, "needs no operation") for name in _torchvision._NOTHING})
    found["ToPILImage"] = ("yes", None, "needs no operation before a conversion to a tensor")
    for name, words in _torchvision_targets.ON_TARGETS.items():
        removes_points = name == "SanitizeKeyPoints"
        found[name] = ("no" if removes_points else "with targets=", None, words)
    declared = {it["name"]: it["about"] for it in json.loads(_native.recipe_schema())["operations"]}
    for name, (operation, _oracle, _golden) in OPERATIONS.items():
        is_translated = "yes" if name in _torchvision._KNOWN else "with nearest="
        why = _torchvision._ON_TENSORS.get(name)
        if is_translated != "yes" and why is None:
            raise SystemExit(f"{name} has an operation, but no translation and no reason for that")
        words = declared[operation]
        found[name] = (is_translated, operation, words if why is None else f"{words}; {why}")
    for name, why in _torchvision._ELSEWHERE.items():
        found[name] = ("no", None, why)
    aliases = {"ConvertDtype"}
    missing = set(_torchvision._KNOWN) - set(found) - aliases
    if missing:
        raise SystemExit(f"translated, but not in the table: {', '.join(sorted(missing))}")
    return dict(sorted(found.items()))


def text():
    """The document."""
    lines = [
        "# Classes of torchvision",
        "",
        "Every class of `torchvision.transforms.v2` (0.29), what `meetpoint.from_torchvision` makes of it, and what",
        "the result is compared with. A translation gives the bits that torchvision gives on PIL images; the",
        "oracle of an operation is the function that torchvision calls for these. Golden files are in",
        f"[{GOLDEN}](../{GOLDEN}/make.py), written by the scripts beside them. Distributions of random parameters are",
        "compared by [distributions.py](../python/studies/distributions.py), whole pipelines by",
        "[test_torchvision.py](../python/tests_torch/test_torchvision.py) and [recipes.py](../python/studies/recipes.py).",
        "`scripts/torchvision_table.py` writes this page from the translation and the declarations of operations.",
        "",
        "*With nearest=*: refused, unless the class is named in `nearest=[...]`; the last column says how the result differs.",
        "*With targets=*: translated at the end of a pipeline where the given targets do the same.",
        "",
        "| class | translated | operation | compared with | golden files | |",
        "|---|---|---|---|---|---|",
    ]
    for name, (is_translated, operation, words) in classes().items():
        _, oracle, golden = OPERATIONS.get(name, (None, "", []))
        for file in golden:
            if not (ROOT / GOLDEN / file).is_file():
                raise SystemExit(f"{name}: there is no {GOLDEN}/{file}")
        cell = f"`{operation}`" if operation else ""
        files = ", ".join(f"`{file}`" for file in golden)
        lines.append(f"| `{name}` | {is_translated} | {cell} | {oracle} | {files} | {words} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where it is stale")
    if not parser.parse_args().check:
        DOCUMENT.write_text(text())
        return 0
    if DOCUMENT.read_text() == text():
        return 0
    print(f"{DOCUMENT} is stale; run scripts/torchvision_table.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
