#!/usr/bin/env python3
"""Writes targets.txt beside itself.

What the targets of a picture become. Random parameters are drawn as docs/formats.md says and given
to torchvision's functions for bounding boxes, which clamp nothing until the end (clamping_mode
None); a point goes through them as a box without an area. What torchvision defines otherwise
(elastic_transform, which it rounds to whole pixels, and the size of an expanded rotation) is
computed from its definition. Masks go through Pillow,
by the nearest pixel; of crops, flips and paddings torchvision's result is asserted to be the same.

    pip install pillow==13.0.0 numpy==2.4.6 torch==2.15.0 torchvision==0.29.2
    python3 targets.py

A line: pattern, seed, columns, rows, sample, operations (TOML without blanks), then columns and rows
of the result, the hash of the mask, the boxes in float32, which of them are kept, and the points.
"""

import math

import numpy as np
import torch
from geometry import elastic, inverse_affine, smoothed, solved
from make import PATTERNS, Draws, philox, random_region, sha, write
from PIL import Image, ImageOps
from torchvision.ops import box_iou
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional import _geometry as G
from torchvision.tv_tensors import BoundingBoxFormat

XYXY = BoundingBoxFormat.XYXY
FILL = 7
NEAREST = Image.Resampling.NEAREST


class Sample:
    """A mask, boxes, points (as boxes without an area), and how often it was mirrored."""

    def __init__(self, mask, boxes, points):
        self.mask, self.boxes = mask, torch.tensor(boxes, dtype=torch.float64)
        points = torch.tensor(points, dtype=torch.float64)
        self.points = torch.cat([points, points], dim=1)
        self.dropped = [False] * len(boxes)
        self.mirrors = 0

    @property
    def canvas(self):
        return (self.mask.height, self.mask.width)

    def move(self, kernel, mask, *arguments, **options):
        """Boxes and points by torchvision; the mask as given."""
        for name in ("boxes", "points"):
            moved = kernel(getattr(self, name), *arguments, **options)
            setattr(self, name, moved[0] if isinstance(moved, tuple) else moved)
        self.mask = mask

    def same(self, of_torchvision):
        """The mask is torchvision's, too."""
        assert np.array_equal(of_torchvision[0].numpy(), np.asarray(self.mask))

    def tensor(self):
        return torch.from_numpy(np.array(self.mask))[None]


def crop(it, left, top, width, height):
    expected = G.crop_mask(it.tensor(), top, left, height, width)
    mask = it.mask.crop((left, top, left + width, top + height))
    it.move(G.crop_bounding_boxes, mask, XYXY, top, left, height, width, clamping_mode=None)
    it.same(expected)


def resize(it, width, height):
    canvas = it.canvas
    mask = it.mask.resize((width, height), NEAREST)
    it.move(G.resize_bounding_boxes, mask, canvas, [height, width], format=XYXY, clamping_mode=None)


def pad(it, left, top, right, bottom):
    padding = [left, top, right, bottom]
    expected = G.pad_mask(it.tensor(), padding, fill=FILL)
    mask = ImageOps.expand(it.mask, border=tuple(padding), fill=FILL)
    it.move(G.pad_bounding_boxes, mask, XYXY, it.canvas, padding, clamping_mode=None)
    it.same(expected)


def shorter(it, side):
    h, w = it.canvas
    return (side, int(side * h / w)) if w <= h else (int(side * w / h), side)


def do_resize(it, draws, size):
    width, height = (size[1], size[0]) if isinstance(size, list) else shorter(it, size)
    resize(it, width, height)


def do_center_crop(it, draws, size):
    height, width = size
    assert it.mask.height >= height and it.mask.width >= width
    top, left = round((it.mask.height - height) / 2), round((it.mask.width - width) / 2)
    crop(it, left, top, width, height)


def do_random_crop(it, draws, size, padding):
    pad(it, *padding)
    height, width = size
    top = draws.up_to(it.mask.height - height) if it.mask.height > height else 0
    left = draws.up_to(it.mask.width - width) if it.mask.width > width else 0
    crop(it, left, top, width, height)


def do_random_resized_crop(it, draws, size):
    h, w = it.canvas
    left, top, width, height = random_region(draws, w, h, (0.08, 1.0), (3 / 4, 4 / 3))
    crop(it, left, top, width, height)
    resize(it, size[1], size[0])


def do_pad(it, draws, padding):
    pad(it, *padding)


def do_random_zoom_out(it, draws, side_range, p):
    if not draws.uniform() < p:
        return
    ratio = draws.uniform_in(*side_range)
    h, w = it.canvas
    wide, high = int(w * ratio), int(h * ratio)
    left = int((wide - w) * draws.uniform())
    top = int((high - h) * draws.uniform())
    pad(it, left, top, wide - w - left, high - h - top)


def flip(it, draws, p, kernel, mask_kernel, transposition):
    if not draws.uniform() < p:
        return
    expected = mask_kernel(it.tensor())
    it.move(kernel, it.mask.transpose(transposition), XYXY, it.canvas)
    it.same(expected)
    it.mirrors += 1


def do_random_horizontal_flip(it, draws, p):
    left_right = Image.Transpose.FLIP_LEFT_RIGHT
    flip(it, draws, p, G.horizontal_flip_bounding_boxes, G.horizontal_flip_mask, left_right)


def do_random_vertical_flip(it, draws, p):
    top_bottom = Image.Transpose.FLIP_TOP_BOTTOM
    flip(it, draws, p, G.vertical_flip_bounding_boxes, G.vertical_flip_mask, top_bottom)


def do_random_rotation(it, draws, degrees, expand):
    angle = draws.uniform_in(*degrees)
    canvas = it.canvas
    mask = it.mask.rotate(angle, NEAREST, expand=expand, fillcolor=FILL)
    if not expand:
        it.move(G.rotate_bounding_boxes, mask, XYXY, canvas, angle, clamping_mode=None)
        return
    # The middle of the picture becomes that of Pillow's larger one.
    turn = math.radians(angle)
    matrix = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
    matrix = torch.tensor(matrix, dtype=torch.float64)
    middle = torch.tensor([canvas[1] / 2, canvas[0] / 2], dtype=torch.float64)
    to = torch.tensor([mask.width / 2, mask.height / 2], dtype=torch.float64)
    it.move(lambda corners: enclosing(corners, lambda at: (at - middle) @ matrix + to), mask)


def enclosing(corners, moved):
    """The boxes around moved corners."""
    ends = [moved(corners[:, pair]) for pair in ([0, 1], [2, 1], [2, 3], [0, 3])]
    ends = torch.stack(ends, dim=1)
    return torch.cat([ends.amin(dim=1), ends.amax(dim=1)], dim=1)


def do_random_affine(it, draws, degrees, translate, scale, shear):
    h, w = it.canvas
    angle = draws.uniform_in(*degrees)
    shift = [round(draws.uniform_in(-a * b, a * b)) for a, b in zip(translate, (w, h))]
    grow = draws.uniform_in(*scale)
    shears = [draws.uniform_in(*shear[:2]), draws.uniform_in(*shear[2:])]
    center = (w * 0.5, h * 0.5)
    inverse = inverse_affine(center, angle, shift, grow, shears, center)
    mask = it.mask.transform((w, h), Image.Transform.AFFINE, inverse, NEAREST, fillcolor=FILL)
    affine = G.affine_bounding_boxes
    it.move(affine, mask, XYXY, (h, w), angle, shift, grow, shears, clamping_mode=None)


def do_random_perspective(it, draws, distortion_scale, p):
    if not draws.uniform() < p:
        return
    h, w = it.canvas
    bw, bh = int(distortion_scale * (w // 2)), int(distortion_scale * (h // 2))
    ends, rows = [], []
    for x, y in ((0, 0), (w - 1 - bw, 0), (w - 1 - bw, h - 1 - bh), (0, h - 1 - bh)):
        x += draws.up_to(bw)
        ends.append((x, y + draws.up_to(bh)))
    for (x, y), (u, v) in zip(ends, [(0, 0), (w - 1, 0), (w - 1, h - 1), (0, h - 1)]):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y, u])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y, v])
    map = [float(value) for value in solved(rows)]
    mask = it.mask.transform((w, h), Image.Transform.PERSPECTIVE, map, NEAREST, fillcolor=FILL)
    warp = G.perspective_bounding_boxes
    it.move(warp, mask, XYXY, (h, w), None, None, coefficients=map, clamping_mode=None)


def do_elastic_transform(it, draws, alpha, sigma):
    h, w = it.canvas
    rgb = Image.merge("RGB", [it.mask] * 3)
    copy = Draws(0, 0, 0, 0)
    copy.key, copy.counter, copy.words = draws.key, list(draws.counter), list(draws.words)
    mask = elastic(rgb, draws, alpha, sigma, True, (FILL,) * 3)
    across, down = moves(copy, w, h, alpha, sigma)

    def moved(points):
        x = points[:, 0].floor().long().clamp(0, w - 1)
        y = points[:, 1].floor().long().clamp(0, h - 1)
        return points - torch.stack([across[y, x], down[y, x]], dim=1)

    it.move(lambda corners: enclosing(corners, moved), mask.getchannel(0))


def moves(draws, w, h, alpha, sigma):
    """How far the pixels of elastic_transform lie from their positions, from its definition."""
    key = [draws.word(), draws.word()]
    found = []
    for channel, scale in enumerate((alpha[0] / 2.0, alpha[1] / 2.0)):
        field = np.zeros((h, w), np.float32)
        for y in range(h):
            for block in range((w + 3) // 4):
                for lane, word in enumerate(philox([block, y, channel, 0], key)):
                    if block * 4 + lane < w:
                        field[y, block * 4 + lane] = (word >> 8) * 2.0**-24 * 2 - 1
        taps = int(8 * sigma[channel] + 1)
        field = smoothed(field, taps + (taps % 2 == 0), sigma)
        found.append(torch.from_numpy(field.astype(np.float64) * scale))
    return found


def do_random_iou_crop(it, draws):
    options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    h, w = it.canvas
    for _ in range(50):
        least = options[draws.up_to(6)]
        if least >= 1.0:
            return
        for _ in range(40):
            wide = int(w * draws.uniform_in(0.3, 1.0))
            high = int(h * draws.uniform_in(0.3, 1.0))
            if wide == 0 or high == 0 or not 0.5 <= wide / high <= 2.0:
                continue
            left = int((w - wide) * draws.uniform())
            top = int((h - high) * draws.uniform())
            right, bottom = left + wide, top + high
            cx = 0.5 * (it.boxes[:, 0] + it.boxes[:, 2])
            cy = 0.5 * (it.boxes[:, 1] + it.boxes[:, 3])
            inside = (left < cx) & (cx < right) & (top < cy) & (cy < bottom)
            inside &= ~torch.tensor(it.dropped)
            if not inside.any():
                continue
            part = torch.tensor([[left, top, right, bottom]], dtype=torch.float64)
            if box_iou(it.boxes[inside], part).max() < least:
                continue
            it.dropped = [bool(dropped) for dropped in ~inside]
            return crop(it, left, top, wide, high)


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(toml, value))}]"
    return f"'{value}'" if isinstance(value, str) else repr(value)


CROP = ("random_resized_crop", {"size": [24, 30]})
MIRROR = ("random_horizontal_flip", {"p": 0.5})
FLIP = ("random_vertical_flip", {"p": 0.5})
END = ("resize", {"size": [32, 40]})
AFFINE = {"degrees": [-40.0, 60.0], "translate": [0.25, 0.5], "scale": [0.4, 1.75]}
CHAINS = [
    [CROP],
    [MIRROR, FLIP, CROP],
    [("resize", {"size": 20}), ("center_crop", {"size": [16, 12]}), MIRROR],
    [("random_crop", {"size": [20, 16], "padding": [4, 9, 30, 2]}), FLIP],
    [MIRROR, ("pad", {"padding": [5, 0, 3, 8]}), ("random_invert", {"p": 1.0}), END],
    [("random_zoom_out", {"side_range": [1.0, 3.0], "p": 0.8}), ("random_iou_crop", {}), MIRROR, END],
    [MIRROR, ("random_iou_crop", {}), FLIP, END],
    [MIRROR, ("random_rotation", {"degrees": [-70.0, 70.0], "expand": True}), END],
    [("random_rotation", {"degrees": [90.0, 90.0], "expand": True}), MIRROR],
    [FLIP, ("random_rotation", {"degrees": [-180.0, 180.0], "expand": False}), CROP],
    [MIRROR, ("random_affine", {**AFFINE, "shear": [-10.0, 20.0, -5.0, 5.0]}), CROP, FLIP],
    [("random_perspective", {"distortion_scale": 0.6, "p": 0.8}), MIRROR, CROP],
    [MIRROR, ("elastic_transform", {"alpha": [90.0, 40.0], "sigma": [3.0, 2.0]}), END],
    [("grayscale", {"num_output_channels": 3}), ("scale_jitter", {"target_size": [40, 40]}), END],
    [("random_order", {"operations": [MIRROR, FLIP, CROP]}), END],
]
SWAP = [[1, 2], [0, 3]]


def execute(it, operations, sample, number):
    """Executes operations, the first of which has a number; returns the number behind the last."""
    for name, keys in operations:
        draws = Draws(7, 2, sample, number)
        number += 1
        if name == "random_order":
            order = list(range(len(keys["operations"])))
            for last in range(len(order) - 1, 0, -1):
                at = draws.up_to(last)
                order[last], order[at] = order[at], order[last]
            for index in order:
                execute(it, [keys["operations"][index]], sample, number + index)
            number += len(order)
        elif name == "scale_jitter":
            ratio = min(keys["target_size"][1] / it.mask.height, keys["target_size"][0] / it.mask.width)
            ratio *= draws.uniform_in(0.1, 2.0)
            resize(it, int(it.mask.width * ratio), int(it.mask.height * ratio))
        elif name not in ("random_invert", "grayscale"):
            globals()[f"do_{name}"](it, draws, **keys)
    return number


def table(name, keys):
    members = {"name": name, **keys}
    inner = members.pop("operations", None)
    text = [f"{key}={toml(value)}" for key, value in members.items()]
    if inner:
        text.append(f"operations=[{','.join(table(*it) for it in inner)}]")
    return f"{{{','.join(text)}}}"


def numbers(values):
    return ",".join(repr(float(np.float32(value))) for value in values) or "none"


def main():
    lines = []
    for seed, (w, h) in enumerate([(33, 21), (40, 64), (97, 61)]):
        for chain in CHAINS:
            if any(name == "random_crop" for name, _ in chain) and min(w, h) < 16:
                continue
            for sample in range(4):
                chance = np.random.default_rng(100 * seed + sample)
                mask = PATTERNS["noise"](seed, w, h).getchannel(0)
                ends = np.sort(chance.uniform(-0.1, 1.1, (5, 2, 2)), axis=1) * [w, h]
                ends[:, 0] = np.minimum(ends[:, 0], [w, h])
                ends[:, 1] = np.maximum(ends[:, 1], 0)
                boxes = np.round(ends.reshape(5, 4) * 4) / 4
                points = np.round(chance.uniform(-0.1, 1.1, (4, 2)) * [w, h] * 4) / 4
                it = Sample(mask, boxes, points)
                execute(it, chain, sample, 1)
                canvas = it.canvas
                moved = F.clamp_bounding_boxes(it.boxes, XYXY, canvas, clamping_mode="hard")
                moved[torch.tensor(it.dropped)] = 0.0
                sides = moved[:, 2:] - moved[:, :2]
                kept = (sides >= 1.0).all(dim=1) & (sides.prod(dim=1) >= 6.0)
                kept &= ~torch.tensor(it.dropped)
                order = list(range(4))
                if it.mirrors % 2:
                    for one, other in SWAP:
                        order[one], order[other] = order[other], order[one]
                at = it.points[order, :2].clamp(min=0.0)
                at = torch.minimum(at, torch.tensor([canvas[1], canvas[0]], dtype=torch.float64))
                text = ",".join(table(*operation) for operation in chain)
                assert " " not in text
                before = ["noise", seed, w, h, sample, text, numbers(boxes.flatten())]
                before += [numbers(points.flatten())]
                after = [canvas[1], canvas[0], sha(it.mask.tobytes())[:16], numbers(moved.flatten())]
                after += ["".join(str(int(one)) for one in kept), numbers(at.flatten())]
                lines.append(f"{' '.join(map(str, before))} : {' '.join(map(str, after))}")
    write("targets.txt", lines)


if __name__ == "__main__":
    main()
