#!/usr/bin/env python3
"""Measures each operation on one picture of 224 by 224 beside other libraries.

    cargo build --release -p meetpoint-jpeg-benches --bin operation-times
    pip install pillow==13.0.0 numpy==2.4.6 torch torchvision opencv-python-headless \
        albumentations kornia-rs
    python operations.py [--server PATH] [--only NAME ...] [--markdown FILE]

Every library uses one thread and has the same decoded picture. Times are CPU time of the process, all
its threads included, the least of many turns. Ours are those of a recipe with the operation, less
those of the same recipe without it; those of `mix_up` and `cut_mix` are of the mixing alone, for each
sample of a batch. Ratios are the time of a peer over ours. Peers that compute something else are
marked: `exact` says which of them give our bits. A peer that is not there is left out.
"""

import argparse
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image, ImageChops, ImageEnhance, ImageFilter, ImageOps

SIDE = 224
# Samples of a batch that is mixed.
SAMPLES = 32
ROUNDS, TURN_NS = 9, 8_000_000
SERVER = pathlib.Path(__file__).parents[2] / "target/release/operation-times"


def operation(name, **keys):
    """An operation in TOML."""
    lines = [f"{key} = {value!r}".replace("'", '"').replace("True", "true") for key, value in keys.items()]
    return "\n".join(["[[operation]]", f'name = "{name}"', *lines, ""])


def jitter(**ranges):
    return operation("color_jitter", **ranges)


class Pillow:
    """Functions on `PIL.Image`."""

    def __init__(self, pixels):
        image = self.image = Image.fromarray(pixels)
        turned = (0.866, 0.5, -41.0, -0.5, 0.866, 71.0)
        bilinear = Image.Resampling.BILINEAR
        corners = (1.05, 0.06, -9.0, 0.04, 1.08, -7.0, 0.0002, 0.0003)

        gamma = [int((256 - 1e-3) * (value / 255.0) ** 0.7) for value in range(256)] * 3

        def hue():
            h, s, v = image.convert("HSV").split()
            shifted = np.asarray(h) + np.uint8(25)
            return Image.merge("HSV", (Image.fromarray(shifted), s, v)).convert("RGB")

        self.functions = {
            "resize 160": lambda: image.resize((160, 160), bilinear),
            "horizontal flip": lambda: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
            "vertical flip": lambda: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
            "pad": lambda: ImageOps.expand(image, 8),
            "affine, nearest": lambda: image.transform(
                image.size, Image.Transform.AFFINE, turned, Image.Resampling.NEAREST
            ),
            "affine, bilinear": lambda: image.transform(
                image.size, Image.Transform.AFFINE, turned, bilinear
            ),
            "perspective, bilinear": lambda: image.transform(
                image.size, Image.Transform.PERSPECTIVE, corners, bilinear
            ),
            "affine, bicubic": lambda: image.transform(
                image.size, Image.Transform.AFFINE, turned, Image.Resampling.BICUBIC
            ),
            "rotation, bilinear": lambda: image.rotate(30, bilinear),
            "translation": lambda: image.transform(
                image.size, Image.Transform.AFFINE, (1, 0, -20, 0, 1, -9)
            ),
            "padded random crop": lambda: ImageOps.expand(image, 28).crop((11, 37, 235, 261)),
            "erasing": lambda: image.copy().paste((0, 0, 0), (20, 30, 120, 110)),
            "gamma": lambda: image.point(gamma),
            "brightness": lambda: ImageEnhance.Brightness(image).enhance(1.3),
            "contrast": lambda: ImageEnhance.Contrast(image).enhance(1.3),
            "saturation": lambda: ImageEnhance.Color(image).enhance(1.3),
            "hue": hue,
            "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(1.7),
            "grayscale": lambda: image.convert("L").convert("RGB"),
            "autocontrast": lambda: ImageOps.autocontrast(image),
            "equalize": lambda: ImageOps.equalize(image),
            "invert": lambda: ImageChops.invert(image),
            "posterize": lambda: ImageOps.posterize(image, 4),
            "solarize": lambda: ImageOps.solarize(image, 128),
            "Pillow's gaussian blur": lambda: image.filter(ImageFilter.GaussianBlur(1.5)),
        }


class Torchvision:
    """Functions of torchvision v2 on tensors of uint8."""

    def __init__(self, pixels):
        import torch
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms import v2
        from torchvision.transforms.v2 import functional as F

        torch.set_num_threads(1)
        image = torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
        batch = image.repeat(SAMPLES, 1, 1, 1).float()
        classes = torch.arange(SAMPLES)
        mix_up, cut_mix = v2.MixUp(num_classes=SAMPLES), v2.CutMix(num_classes=SAMPLES)
        distort = v2.RandomPhotometricDistort(p=1.0)
        elastic = v2.ElasticTransform()
        bilinear, nearest = InterpolationMode.BILINEAR, InterpolationMode.NEAREST
        affine = dict(angle=30.0, translate=[0, 0], scale=1.0, shear=[0.0, 0.0])
        start = [[0, 0], [223, 0], [223, 223], [0, 223]]
        end = [[12, 9], [210, 5], [219, 214], [4, 200]]
        self.per_sample = dict.fromkeys(["mix_up", "cut_mix"], SAMPLES)
        self.functions = {
            "rotation, bilinear": lambda: F.rotate(image, 30.0, bilinear),
            "translation": lambda: F.affine(image, 0.0, [20, 9], 1.0, [0.0, 0.0]),
            "elastic": lambda: elastic(image),
            "padded random crop": lambda: F.crop(F.pad(image, [28]), 37, 11, SIDE, SIDE),
            "erasing": lambda: F.erase(image, 30, 20, 80, 100, torch.zeros(3, 1, 1)),
            "gamma": lambda: F.adjust_gamma(image, 0.7),
            "photometric distort": lambda: distort(image),
            "channel permutation": lambda: F.permute_channels(image, [2, 0, 1]),
            "mix_up": lambda: mix_up(batch, classes),
            "cut_mix": lambda: cut_mix(batch, classes),
            "resize 160": lambda: F.resize(image, [160, 160], bilinear, antialias=True),
            "horizontal flip": lambda: F.horizontal_flip(image),
            "vertical flip": lambda: F.vertical_flip(image),
            "pad": lambda: F.pad(image, [8]),
            "affine, nearest": lambda: F.affine(image, interpolation=nearest, **affine),
            "affine, bilinear": lambda: F.affine(image, interpolation=bilinear, **affine),
            "perspective, bilinear": lambda: F.perspective(image, start, end, bilinear),
            "brightness": lambda: F.adjust_brightness(image, 1.3),
            "contrast": lambda: F.adjust_contrast(image, 1.3),
            "saturation": lambda: F.adjust_saturation(image, 1.3),
            "hue": lambda: F.adjust_hue(image, 0.1),
            "sharpness": lambda: F.adjust_sharpness(image, 1.7),
            "grayscale": lambda: F.rgb_to_grayscale(image, 3),
            "autocontrast": lambda: F.autocontrast(image),
            "equalize": lambda: F.equalize(image),
            "invert": lambda: F.invert(image),
            "posterize": lambda: F.posterize(image, 4),
            "solarize": lambda: F.solarize(image, 128),
            "gaussian blur": lambda: F.gaussian_blur(image, [9, 9], [1.5, 1.5]),
            "gaussian noise": lambda: F.gaussian_noise(image.float() / 255),
            "to float32 and normalize": lambda: F.normalize(
                F.to_dtype(image, torch.float32, scale=True),
                [0.485, 0.456, 0.406],
                [0.229, 0.224, 0.225],
            ),
        }


class OpenCV:
    """Functions of OpenCV on arrays of bytes; their rounding is not ours."""

    def __init__(self, pixels):
        import cv2

        cv2.setNumThreads(1)
        turned = cv2.getRotationMatrix2D((112, 112), 30.0, 1.0)
        sharpen = np.float32([[0, -0.2, 0], [-0.2, 1.8, -0.2], [0, -0.2, 0]])
        table = np.clip(np.arange(256) * 1.3, 0, 255).astype(np.uint8)
        corners = np.float32([[0, 0], [223, 0], [223, 223], [0, 223]])
        moved = np.float32([[12, 9], [210, 5], [219, 214], [4, 200]])
        matrix = cv2.getPerspectiveTransform(corners, moved)

        def hue():
            hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV_FULL)
            hsv[..., 0] += 25
            return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL)

        self.functions = {
            "resize 160": lambda: cv2.resize(pixels, (160, 160), interpolation=cv2.INTER_AREA),
            "horizontal flip": lambda: cv2.flip(pixels, 1),
            "vertical flip": lambda: cv2.flip(pixels, 0),
            "pad": lambda: cv2.copyMakeBorder(pixels, 8, 8, 8, 8, cv2.BORDER_CONSTANT),
            "affine, nearest": lambda: cv2.warpAffine(
                pixels, turned, (SIDE, SIDE), flags=cv2.INTER_NEAREST
            ),
            "affine, bilinear": lambda: cv2.warpAffine(pixels, turned, (SIDE, SIDE)),
            "perspective, bilinear": lambda: cv2.warpPerspective(pixels, matrix, (SIDE, SIDE)),
            "affine, bicubic": lambda: cv2.warpAffine(
                pixels, turned, (SIDE, SIDE), flags=cv2.INTER_CUBIC
            ),
            "rotation, bilinear": lambda: cv2.warpAffine(pixels, turned, (SIDE, SIDE)),
            "padded random crop": lambda: cv2.copyMakeBorder(
                pixels, 28, 28, 28, 28, cv2.BORDER_CONSTANT
            )[37 : 37 + SIDE, 11 : 11 + SIDE].copy(),
            "equalize": lambda: [cv2.equalizeHist(channel) for channel in cv2.split(pixels)],
            "sharpness": lambda: cv2.filter2D(pixels, -1, sharpen),
            "solarize": lambda: cv2.LUT(pixels, table),
            "posterize": lambda: cv2.LUT(pixels, table),
            "gamma": lambda: cv2.LUT(pixels, table),
            "channel permutation": lambda: cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR),
            "brightness": lambda: cv2.LUT(pixels, table),
            "hue": hue,
            "grayscale": lambda: cv2.cvtColor(
                cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB
            ),
            "invert": lambda: cv2.bitwise_not(pixels),
            "gaussian blur": lambda: cv2.GaussianBlur(pixels, (9, 9), 1.5),
        }


class Albumentations:
    """Transforms of albumentations, with their own cost of a call; their rounding is OpenCV's."""

    def __init__(self, pixels):
        import albumentations as A
        import cv2

        cv2.setNumThreads(1)
        transforms = {
            "horizontal flip": A.HorizontalFlip(p=1),
            "vertical flip": A.VerticalFlip(p=1),
            "affine, bilinear": A.Affine(rotate=(30, 30), p=1),
            "rotation, bilinear": A.Rotate((30, 30), p=1),
            "perspective, bilinear": A.Perspective(p=1),
            "elastic": A.ElasticTransform(alpha=50, sigma=5, p=1),
            "erasing": A.CoarseDropout(p=1),
            "hue": A.HueSaturationValue((20, 20), 0, 0, p=1),
            "equalize": A.Equalize(p=1),
            "autocontrast": A.AutoContrast(p=1),
            "posterize": A.Posterize(4, p=1),
            "solarize": A.Solarize(p=1),
            "invert": A.InvertImg(p=1),
            "sharpness": A.Sharpen(p=1),
            "grayscale": A.ToGray(p=1),
            "gaussian blur": A.GaussianBlur((9, 9), (1.5, 1.5), p=1),
            "gaussian noise": A.GaussNoise(p=1),
            "gamma": A.RandomGamma((70, 70), p=1),
            "channel permutation": A.ChannelShuffle(p=1),
        }
        self.functions = {
            name: lambda transform=transform: transform(image=pixels)
            for name, transform in transforms.items()
        }


class KorniaRs:
    """Functions of kornia-rs on arrays of bytes; their rounding is not ours."""

    def __init__(self, pixels):
        from kornia_rs import imgproc

        turned = (0.866, 0.5, -41.0, -0.5, 0.866, 71.0)
        functions = {
            "resize 160": lambda: imgproc.resize(pixels, (160, 160), "bilinear"),
            "horizontal flip": lambda: imgproc.horizontal_flip(pixels),
            "vertical flip": lambda: imgproc.vertical_flip(pixels),
            "affine, bilinear": lambda: imgproc.warp_affine(
                pixels, turned, (SIDE, SIDE), "bilinear"
            ),
            "affine, nearest": lambda: imgproc.warp_affine(
                pixels, turned, (SIDE, SIDE), "nearest"
            ),
            "grayscale": lambda: imgproc.rgb_from_gray(imgproc.gray_from_rgb(pixels)),
            "gaussian blur": lambda: imgproc.gaussian_blur(pixels, (9, 9), (1.5, 1.5)),
        }
        self.functions = {}
        for name, function in functions.items():
            try:
                function()
            except (TypeError, ValueError) as error:
                print(f"kornia-rs without {name}: {error}", file=sys.stderr)
                continue
            self.functions[name] = function


PEERS = {
    "Pillow": Pillow,
    "torchvision": Torchvision,
    "OpenCV": OpenCV,
    "albumentations": Albumentations,
    "kornia-rs": KorniaRs,
}

FLOATS = operation("to_dtype", dtype="float32", scale=True) + operation("layout", layout="NCHW")

NORMALIZE = operation("to_dtype", dtype="float32", scale=True) + operation(
    "normalize", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]
)

# Name: the operation, the peers with our bits, and the target for the best of these.
OPERATIONS = {
    "resize 160": (operation("resize", size=[160, 160]), ["Pillow"], 1.5),
    "horizontal flip": (
        operation("random_horizontal_flip", p=1.0), ["Pillow", "torchvision", "OpenCV"], 1.5
    ),
    "vertical flip": (
        operation("random_vertical_flip", p=1.0), ["Pillow", "torchvision", "OpenCV"], 1.5
    ),
    "pad": (operation("pad", padding=8), ["Pillow", "torchvision", "OpenCV"], 1.5),
    "affine, nearest": (operation("random_affine", degrees=[30.0, 30.0]), ["Pillow"], 4.0),
    "affine, bilinear": (
        operation("random_affine", degrees=[30.0, 30.0], interpolation="bilinear"), ["Pillow"], 4.0
    ),
    "perspective, bilinear": (operation("random_perspective", p=1.0), ["Pillow"], 1.5),
    "affine, bicubic": (
        operation("random_affine", degrees=[30.0, 30.0], interpolation="bicubic"), ["Pillow"], 4.0
    ),
    "rotation, bilinear": (
        operation("random_rotation", degrees=[30.0, 30.0], interpolation="bilinear"),
        ["Pillow"],
        1.5,
    ),
    "translation": (
        operation("random_affine", degrees=[0.0, 0.0], translate=[0.2, 0.2]), ["Pillow"], 1.5
    ),
    "elastic": (operation("elastic_transform"), ["torchvision"], 1.5),
    "padded random crop": (
        operation("random_crop", size=SIDE, padding=28), ["Pillow", "torchvision", "OpenCV"], 1.5
    ),
    "erasing": (
        operation("random_erasing", p=1.0, scale=[0.15, 0.17]), ["Pillow", "torchvision"], 1.5
    ),
    "erasing with noise": (
        FLOATS + operation("random_erasing", p=1.0, scale=[0.15, 0.17], mode="pixel"), [], 1.5
    ),
    "gamma": (operation("adjust_gamma", gamma=0.7), ["Pillow"], 1.5),
    "sigmoid contrast": (operation("sigmoid_contrast", contrast=0.5), [], 1.5),
    "photometric distort": (
        operation("random_photometric_distort", p=1.0), ["torchvision"], 1.5
    ),
    "channel permutation": (operation("random_channel_permutation"), ["torchvision"], 1.5),
    "sensor noise": (operation("random_sensor_noise", p=1.0), [], 1.5),
    "rand_augment": (operation("rand_augment"), [], 1.5),
    "mix_up": (
        FLOATS + operation("mix_up", num_classes=SAMPLES), ["torchvision"], 1.5
    ),
    "cut_mix": (
        FLOATS + operation("cut_mix", num_classes=SAMPLES), ["torchvision"], 1.5
    ),
    "brightness": (jitter(brightness=[1.3, 1.3]), ["Pillow"], 1.5),
    "contrast": (jitter(contrast=[1.3, 1.3]), ["Pillow"], 1.5),
    "saturation": (jitter(saturation=[1.3, 1.3]), ["Pillow"], 1.5),
    "hue": (jitter(hue=[0.1, 0.1]), ["Pillow"], 4.0),
    "sharpness": (
        operation("random_adjust_sharpness", sharpness_factor=1.7, p=1.0), ["Pillow"], 1.5
    ),
    "grayscale": (operation("random_grayscale", p=1.0), ["Pillow"], 1.5),
    "autocontrast": (operation("random_autocontrast", p=1.0), ["Pillow"], 1.5),
    "equalize": (operation("random_equalize", p=1.0), ["Pillow"], 1.5),
    "invert": (operation("random_invert", p=1.0), ["Pillow", "torchvision", "OpenCV"], 1.5),
    "posterize": (operation("random_posterize", bits=4, p=1.0), ["Pillow", "torchvision"], 1.5),
    "solarize": (
        operation("random_solarize", threshold=128, p=1.0), ["Pillow", "torchvision"], 1.5
    ),
    "gaussian blur": (
        operation("gaussian_blur", kernel_size=9, sigma=[1.5, 1.5]), ["torchvision"], 1.5
    ),
    "Pillow's gaussian blur": (
        operation("pillow_gaussian_blur", radius=[1.5, 1.5]), ["Pillow"], 1.5
    ),
    "gaussian noise": (operation("gaussian_noise"), ["torchvision"], 1.5),
    "to float32 and normalize": (
        NORMALIZE + operation("layout", layout="NCHW"), ["torchvision"], 1.5
    ),
}

MIXED = ["mix_up", "cut_mix"]


def generated(chance):
    """A picture like a photograph: shades, edges and a little noise."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    planes = [np.sin(x / (9 + 7 * c)) * np.cos(y / (13 - 3 * c)) * 90 + 120 for c in range(3)]
    pixels = np.stack(planes, axis=-1) + chance.normal(0, 9, (SIDE, SIDE, 3))
    pixels[60:140, 80:190] += [30, -20, 15]
    return np.clip(pixels, 0, 255).astype(np.uint8)


def least_ns(functions, per_sample):
    """The least CPU time of each function, each of which has a turn in every round; those of
    batches are divided by their samples."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            function()
            started, times = time.process_time_ns(), 0
            while time.process_time_ns() - started < TURN_NS:
                function()
                times += 1
            best[name] = min(best[name], (time.process_time_ns() - started) / times)
    return {name: ns / per_sample.get(name, 1) for name, ns in best.items()}


def ours(server, pixels, wanted, cpu=None):
    """Least CPU times of the operations, in nanoseconds."""
    decode = operation("decode")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # The form that is decoded the fastest: what is left is the difference of two times.
        picture = folder / "picture.ppm"
        Image.fromarray(pixels).save(picture)
        paths = {"": folder / "decode.toml", "floats": folder / "floats.toml"}
        paths[""].write_text(decode)
        paths["floats"].write_text(decode + FLOATS)
        for number, name in enumerate(wanted):
            paths[name] = folder / f"{number}.toml"
            paths[name].write_text(decode + OPERATIONS[name][0])
        said = subprocess.run(
            [server, *(["--cpu", cpu] if cpu else []), picture, *paths.values()], check=True, stdout=subprocess.PIPE, text=True
        )
    times = dict(line.rsplit("\t", 1) for line in said.stdout.splitlines())
    times = {name: float(times[str(path)]) for name, path in paths.items()}

    def base(name):
        if name in MIXED:
            # Mixing is measured by itself.
            return 0.0
        return times["floats" if OPERATIONS[name][0].startswith(FLOATS) else ""]

    return {name: max(1.0, times[name] - base(name)) for name in wanted}, times[""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=pathlib.Path, default=SERVER)
    parser.add_argument("--only", nargs="*", default=list(OPERATIONS))
    parser.add_argument("--markdown", type=pathlib.Path)
    arguments = parser.parse_args()
    pixels = generated(np.random.default_rng(5))
    times, base = ours(arguments.server, pixels, arguments.only)
    peers = {}
    for name, peer in PEERS.items():
        try:
            made = peer(pixels)
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        functions = {of: it for of, it in made.functions.items() if of in times}
        peers[name] = least_ns(functions, getattr(made, "per_sample", {}))
    lines = ["| operation | µs | best peer with our bits | its µs | ratio | target | all peers, ratio |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, ns in times.items():
        _, exact, target = OPERATIONS[name]
        found = {peer: best[name] for peer, best in peers.items() if name in best}
        best = min((peer for peer in exact if peer in found), key=found.get, default=None)
        cells = [name, f"{ns / 1e3:.1f}", "–", "–", "–", "–"]
        if best:
            ratio = found[best] / ns
            verdict = "met" if ratio >= target else "missed"
            cells[2:] = [best, f"{found[best] / 1e3:.1f}", f"{ratio:.2f}", f"{target:g} {verdict}"]
        cells.append(", ".join(f"{peer} {it / ns:.2f}" for peer, it in found.items()))
        lines.append("| " + " | ".join(cells) + " |")
    text = "\n".join(lines)
    print(f"{platform.processor() or platform.machine()}; decoding and writing {base / 1e3:.1f} µs")
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")


if __name__ == "__main__":
    main()
