"""Do random operations change pictures as often, and as much, as torchvision's and timm's?

    python distributions.py [--values 100000] [--only random_rotation] [--json FILE]

The same picture goes through an operation of Meetpoint and through the original that many times.
What comes out is observed at five pixels, and by its mean; each observation is compared by the
two-sample test of Kolmogorov and Smirnov. Since equal random parameters give equal bits, which
other tests show, a parameter with another distribution gives other observations. Seeds are fixed.
Needs torch, torchvision, timm, scipy and Pillow, and for the operations of crumpets the packages
crumpets 3.0.0a5, simplejpeg and OpenCV. Exit code 1 where a distribution differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import numpy
import timm
import torch
import torchvision
from PIL import Image, ImageOps
from scipy.stats import ks_2samp
from timm.data.auto_augment import rand_augment_transform
from timm.data.random_erasing import RandomErasing as TimmErasing
from torchvision.transforms import v2

import meetpoint
from magnitudes import linspace
from meetpoint import transforms as T

SIDES = (32, 24)  # width, height
CROP = 16
PICTURES = 1000
BATCH = 500
# Probability that some observation is called different although none is.
ALPHA = 1e-3
SEED = 20261123

Observed = numpy.ndarray
POSTERIZE = ImageOps.posterize


def posterize(image: Image.Image, bits: int) -> Image.Image:
    """Of 0 bits a black picture, as before Pillow 13, which refuses what timm draws there."""
    return POSTERIZE(image, bits) if bits else image.point([0] * 256 * len(image.getbands()))


ImageOps.posterize = posterize
Original = Callable[[Image.Image], Any]


def picture() -> Image.Image:
    """Two gradients and a texture: geometry and colour both change what is observed."""
    width, height = SIDES
    y, x = numpy.mgrid[0:height, 0:width]
    texture = numpy.random.default_rng(SEED).integers(0, 256, (height, width))
    return Image.fromarray(numpy.stack([x * 8, y * 10, texture], -1).astype(numpy.uint8))


def observe(images: numpy.ndarray) -> Observed:
    """Rows of observations of pictures [N, C, H, W]: five pixels and the mean of each channel."""
    height, width = images.shape[2:]
    places = [(0, 0), (height // 2, width // 2), (height - 1, width - 1),
              (height // 4, width - 2), (height - 2, width // 3)]
    values = [images[:, :, y, x] for y, x in places]
    values.append(images.mean((2, 3)))
    return numpy.concatenate(values, 1)


def ours(operations: List[Any], dataset: Path, values: int) -> Observed:
    rows = []
    # Changes nothing; from here on the shape is known before a picture is.
    operations = [T.Resize((SIDES[1], SIDES[0])), *operations]
    with meetpoint.Loader(dataset, recipe=operations, batch_size=BATCH, seed=SEED,
                          columns=["image"]) as loader:
        for _ in range(values // PICTURES):
            for batch in loader:
                images = numpy.asarray(batch["image"])
                rows.append(observe(images if images.shape[1] == 3 else images.transpose(0, 3, 1, 2)))
    return numpy.concatenate(rows)


def theirs(original: Original, source: Image.Image, values: int) -> Observed:
    torch.manual_seed(SEED)
    random.seed(SEED)
    numpy.random.seed(SEED % 2**32)
    results = []
    rows = []
    for count in range(1, values + 1):
        result = original(source)
        results.append(numpy.asarray(result if isinstance(result, torch.Tensor)
                                     else v2.functional.pil_to_tensor(result)))
        if len(results) == BATCH or count == values:
            rows.append(observe(numpy.stack(results)))
            results = []
    return numpy.concatenate(rows)


class AugMixOfPillow(v2.AugMix):
    """Executes the operations by Pillow, as ``aug_mix`` does, and computes weights in float64.

    torchvision executes the operations on tensors, which gives other pixels, and normalises weights in
    float32. The sum of weighted pictures is truncated, so the rounding of weights decides how often
    a pixel that no chain changes becomes one less.
    """

    def _sample_dirichlet(self, params: torch.Tensor) -> torch.Tensor:
        return torch._sample_dirichlet(params.double()).float()

    def _apply_image_or_video_transform(self, image: torch.Tensor, *args: Any, **keys: Any) -> Any:
        source = v2.functional.to_pil_image(image[0])
        result = super()._apply_image_or_video_transform(source, *args, **keys)
        return v2.functional.pil_to_tensor(result)[None]


def with_defined_magnitudes(original: Original) -> Original:
    """The original, without the dependence of its magnitudes on the processor."""

    def run(source: Image.Image) -> Any:
        with mock.patch.object(torch, "linspace", linspace):
            return original(source)

    return run


def pairs() -> Dict[str, Tuple[List[Any], Original]]:
    """Each name's operations of Meetpoint, and the original."""
    plain = {
        "random_horizontal_flip": ("RandomHorizontalFlip", {"p": 0.3}),
        "random_vertical_flip": ("RandomVerticalFlip", {"p": 0.7}),
        "random_resized_crop": ("RandomResizedCrop", {"size": CROP}),
        "random_crop": ("RandomCrop", {"size": 20, "padding": 4}),
        "random_rotation": ("RandomRotation", {"degrees": 30}),
        "random_affine": ("RandomAffine", {"degrees": 15, "translate": (0.2, 0.3),
                                           "scale": (0.7, 1.4), "shear": (-10, 10, -5, 5)}),
        "random_perspective": ("RandomPerspective", {"distortion_scale": 0.6, "p": 0.8}),
        "random_zoom_out": ("RandomZoomOut", {"side_range": (1.0, 3.0)}),
        "random_resize": ("RandomResize", {"min_size": 20, "max_size": 40}),
        "random_shortest_size": ("RandomShortestSize", {"min_size": [18, 24, 30, 36]}),
        "scale_jitter": ("ScaleJitter", {"target_size": (24, 32), "scale_range": (0.8, 1.6)}),
        "color_jitter": ("ColorJitter", {"brightness": 0.4, "contrast": 0.3, "saturation": 0.5,
                                         "hue": 0.1}),
        "random_grayscale": ("RandomGrayscale", {"p": 0.2}),
        "random_photometric_distort": ("RandomPhotometricDistort", {}),
        "random_channel_permutation": ("RandomChannelPermutation", {}),
        "random_autocontrast": ("RandomAutocontrast", {"p": 0.4}),
        "random_equalize": ("RandomEqualize", {"p": 0.4}),
        "random_invert": ("RandomInvert", {"p": 0.4}),
        "random_posterize": ("RandomPosterize", {"bits": 3, "p": 0.4}),
        "random_solarize": ("RandomSolarize", {"threshold": 128, "p": 0.4}),
        "random_adjust_sharpness": ("RandomAdjustSharpness", {"sharpness_factor": 2, "p": 0.4}),
        "gaussian_blur": ("GaussianBlur", {"kernel_size": 5, "sigma": (0.1, 2.0)}),
        "elastic_transform": ("ElasticTransform", {"alpha": 40.0, "sigma": 3.0}),
        "auto_augment": ("AutoAugment", {}),
        "rand_augment": ("RandAugment", {"num_ops": 2, "magnitude": 9}),
        "trivial_augment_wide": ("TrivialAugmentWide", {}),
        "aug_mix": ("AugMix", {}),
    }
    varying = {"random_zoom_out", "random_resize", "random_shortest_size", "scale_jitter"}
    policies = {"auto_augment", "rand_augment", "trivial_augment_wide", "aug_mix"}
    result: Dict[str, Tuple[List[Any], Original]] = {}
    for name, (class_name, keys) in plain.items():
        mine = [getattr(T, class_name)(**keys)]
        original: Original = (AugMixOfPillow() if name == "aug_mix"
                              else getattr(v2, class_name)(**keys))
        if name in varying:
            mine.append(T.CenterCrop(CROP))
            original = v2.Compose([original, v2.CenterCrop(CROP)])
        if name in policies:
            original = with_defined_magnitudes(original)
        result[name] = (mine, original)
    flips = ([T.RandomHorizontalFlip(1.0), T.RandomInvert(1.0), T.RandomGrayscale(1.0)],
             [v2.RandomHorizontalFlip(1.0), v2.RandomInvert(1.0), v2.RandomGrayscale(1.0)])
    result["random_apply"] = ([T.RandomApply(flips[0], p=0.3)], v2.RandomApply(flips[1], p=0.3))
    shares = [0.2, 0.5, 0.3]
    result["random_choice"] = ([T.RandomChoice(flips[0], p=shares)],
                               v2.RandomChoice(flips[1], p=shares))
    orders = ([T.RandomSolarize(100, p=1.0), T.RandomInvert(1.0), T.RandomPosterize(2, p=1.0)],
              [v2.RandomSolarize(100, p=1.0), v2.RandomInvert(1.0), v2.RandomPosterize(2, p=1.0)])
    result["random_order"] = ([T.RandomOrder(orders[0])], v2.RandomOrder(orders[1]))
    result["random_erasing"] = (
        [T.ToImage(), T.RandomErasing(p=0.6, value=77)],
        v2.Compose([v2.ToImage(), v2.RandomErasing(p=0.6, value=77)]))
    timm_erasing = TimmErasing(probability=0.7, min_count=1, max_count=3, device="cpu")
    result["random_erasing (timm)"] = (
        [T.ToImage(), T.RandomErasing(p=0.7, scale=(0.02, 1 / 3), ratio=(0.3, 1 / 0.3), value=0,
                                      min_count=1, max_count=3)],
        lambda source: timm_erasing(v2.functional.pil_to_tensor(source)))
    for policy in ("rand-m7-mstd0.5-inc1", "rand-m5-n3-mstd0.7"):
        result[f"timm_rand_augment {policy}"] = (
            [T.RandAugment.from_timm(policy)],
            rand_augment_transform(policy, {"translate_const": 10, "img_mean": (128, 128, 128)}))
    result.update(crumpets_pairs())
    return result


def crumpets_pairs() -> Dict[str, Tuple[List[Any], Original]]:
    """The random parameters of crumpets' MixtureRNG, with its own arithmetic of colours.

    Its warp is computed by Pillow with crumpets' map, which so begins at the corner of a pixel and
    not at its centre, as with OpenCV.
    """
    try:
        from crumpets import augmentation, augmentation_cpu
        from crumpets.rng import MixtureRNG
    except ImportError:
        print("crumpets is not installed: its operations are left out")
        return {}

    def lighting(rng: Any) -> Original:
        def run(source: Image.Image) -> Image.Image:
            drawn = rng(None, None)
            made = augmentation_cpu.add_gamma(
                numpy.array(source), True, drawn["gamma_gray"], drawn["gamma_color"],
                drawn["contrast"])
            return Image.fromarray(made)

        return run

    warp_rng = MixtureRNG(prob=1, scale_range=(0.5, 2), shift_range=(-1, 1), rotation_sigma=15,
                          aspect_sigma=0.1, shear_range=(-0.1, 0.1))

    def warp(source: Image.Image) -> Image.Image:
        drawn = warp_rng(None, None)
        keys = {key: drawn[key] for key in ("angle", "scale", "aspect", "shift", "shear")}
        width, height = source.size
        matrix = augmentation.make_transform((height, width), (CROP, CROP), **keys)
        return source.transform((CROP, CROP), Image.Transform.AFFINE, tuple(matrix.reshape(-1)),
                                Image.Resampling.BILINEAR)

    unit = (-0.5, 0.5)
    return {
        "random_gamma (crumpets)": (
            [T.RandomGamma(unit, color=unit, contrast=(-1, 1), p=0.5)],
            lighting(MixtureRNG(prob=0.5, brightness_range=unit, color_range=unit,
                                contrast_range=(-1, 1)))),
        "random_sigmoid_contrast (crumpets)": (
            [T.RandomSigmoidContrast((-1, 1), p=0.5)],
            lighting(MixtureRNG(prob=0.5, contrast_range=(-1, 1)))),
        "crumpets_affine": (
            [T.CrumpetsAffine(CROP, scale=(0.5, 2), shift=(-1, 1), rotation_sigma=15,
                              aspect_sigma=0.1, shear=(-0.1, 0.1), supersampling=1)],
            warp),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    values = max(arguments.values // PICTURES, 1) * PICTURES
    chosen = {name: pair for name, pair in pairs().items()
              if not arguments.only or any(only in name for only in arguments.only)}
    source = picture()
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "pictures"
        folder.mkdir()
        for number in range(PICTURES):
            source.save(folder / f"{number:05}.png")
        meetpoint.pack(folder, Path(temporary) / "set")
        print(f"{values} values each; torchvision {torchvision.__version__}, timm {timm.__version__}")
        for name, (operations, original) in chosen.items():
            began = time.perf_counter()
            mine = ours(operations, Path(temporary) / "set", values)
            other = theirs(original, source, values)
            results[name] = compare(mine, other)
            it = results[name]
            print(f"{name}: {it['distinct']} distinct results, distance at most "
                  f"{it['distance_most']}, least p {it['p_least']:.2g} "
                  f"({time.perf_counter() - began:.0f} s)", flush=True)
    tests = sum(it["observations"] for it in results.values())
    different = [name for name, it in results.items() if it["p_least"] < ALPHA / tests]
    print(f"{len(results)} operations, {tests} observations, least p "
          f"{min(it['p_least'] for it in results.values()):.2g} (bound {ALPHA / tests:.2g}); "
          f"different: {', '.join(different) or 'none'}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 1 if different else 0


def compare(mine: Observed, other: Observed) -> Dict[str, Any]:
    """The least agreement of all observations that vary."""
    found = []
    for at in range(mine.shape[1]):
        test = ks_2samp(mine[:, at], other[:, at], method="asymp")
        found.append((float(test.pvalue), float(test.statistic)))
    p, distance = min(found)
    distinct = len(numpy.unique(numpy.concatenate([mine, other]), axis=0))
    return {"observations": len(found), "distinct": distinct, "p_least": p,
            "distance_most": round(distance, 5)}


if __name__ == "__main__":
    sys.exit(main())
