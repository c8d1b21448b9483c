#!/usr/bin/env python3
"""Writes batch.txt beside itself: operations on batches.

What the kernels must give, from torchvision's MixUp and CutMix and timm's Mixup and
FastCollateMixup, with their random parameters replaced by those drawn after docs/formats.md; and
quantiles of lambda from SciPy.

    pip install pillow==13.0.0 numpy==2.4.6 scipy==1.17.1 torchvision==0.29.2 timm==1.0.31
    python3 batch.py
"""

import functools

import numpy as np
import torch
from scipy import stats
from timm.data import mixup as timm_mixup
from torchvision.transforms import v2

from make import IMAGENET, Draws, elements, noise, sha, write
from policies import dirichlet

CLASSES = 7
SEED, EPOCH = 7, 2
SHAPES = [("float32", "NCHW"), ("float32", "NHWC"), ("float16", "NCHW"), ("uint8", "NHWC")]


def number_of_operation(dtype, layout):
    """After decode and center_crop, to_dtype and normalize of floats, and layout of planes."""
    return 2 + (0 if dtype == "uint8" else 2) + (layout == "NCHW")


def images(count, height, width, dtype):
    """Samples of channels, rows and columns."""
    made = []
    for index in range(count):
        pixels = np.asarray(noise(100 + index, width, height))
        if dtype != "uint8":
            pixels = elements(pixels, dtype, True, IMAGENET)
        made.append(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    return torch.from_numpy(np.stack(made))


def labels(count):
    return torch.tensor([(3 * index + 1) % CLASSES for index in range(count)])


def beta(alpha, draws):
    return dirichlet(alpha, 2, draws)[0]


class Always:
    """A distribution with one value."""

    def __init__(self, value):
        self.value = value

    def sample(self, _):
        return self.value


def torchvision(name, alpha, draws, x, y):
    """torchvision's transform of a batch."""
    it = getattr(v2, name)(alpha=alpha, num_classes=CLASSES)
    it._dist = Always(beta(alpha, draws))
    randint = torch.randint
    torch.randint = lambda high, size: torch.tensor([draws.up_to(high - 1)])
    try:
        return it(x, y)
    finally:
        torch.randint = randint


class Injected:
    """The random parameters of timm's classes, by docs/formats.md."""

    def unit(self):
        """lambda, whether a rectangle is pasted, and what timm draws for that, in its order."""
        height, width = self.size
        if not self.is_ours and self.draws.uniform() >= self.mix_prob:
            return 1.0, False, []
        cut = self.cutmix_alpha > 0
        if cut and self.mixup_alpha > 0:
            cut = self.draws.uniform() < self.switch_prob
        if not cut:
            return beta(self.mixup_alpha, self.draws), False, []
        lam = beta(self.cutmix_alpha, self.draws)
        if self.cutmix_minmax is None:
            column = self.draws.up_to(width - 1)
            return lam, True, [self.draws.up_to(height - 1), column]
        sides = []
        for side in (height, width):
            least, most = (int(side * share) for share in self.cutmix_minmax)
            sides.append(least + self.draws.up_to(most - least - 1))
        places = [self.draws.up_to(side - cut) for side, cut in zip(self.size, sides)]
        return lam, True, sides + places

    def _params_per_batch(self):
        lam, cut, self.queue = self.unit()
        return lam, cut

    def _params_per_elem(self, count):
        units = [self.unit() for _ in range(count)]
        self.queue = [value for _, _, drawn in units for value in drawn]
        lam = np.array([lam for lam, _, _ in units], dtype=np.float32)
        assert all(value != 1 for (_, cut, _), value in zip(units, lam) if cut)
        return lam, np.array([cut for _, cut, _ in units])


class Mixup(Injected, timm_mixup.Mixup):
    pass


class Collated(Injected, timm_mixup.FastCollateMixup):
    pass


def even_box(img_shape, lam, margin=0.0, count=None):
    """The rectangle of timm before 1.0.31."""
    ratio = np.sqrt(1 - lam)
    img_h, img_w = img_shape[-2:]
    cut_h, cut_w = int(img_h * ratio), int(img_w * ratio)
    cy, cx = np.random.randint(0, img_h), np.random.randint(0, img_w)
    clip = np.clip
    return (
        clip(cy - cut_h // 2, 0, img_h),
        clip(cy + cut_h // 2, 0, img_h),
        clip(cx - cut_w // 2, 0, img_w),
        clip(cx + cut_w // 2, 0, img_w),
    )


def timm(keys, is_even, is_ours, draws, x, y):
    """timm's mixup of a batch, or what mix_up and cut_mix make of it, without a probability."""
    kind = Collated if x.dtype == torch.uint8 else Mixup
    it = kind(num_classes=CLASSES, **keys)
    it.draws, it.size, it.is_ours = draws, tuple(x.shape[-2:]), is_ours
    randint, box = np.random.randint, timm_mixup.rand_bbox
    np.random.randint = lambda low, high, size=None: it.queue.pop(0)
    if is_even:
        np.random.randint = lambda low, high: it.queue.pop(0)
        timm_mixup.rand_bbox = even_box
    try:
        if kind is Collated:
            batch = [(image.numpy().copy(), int(label)) for image, label in zip(x, y)]
            mixed = it(batch)
        else:
            mixed = it(x.clone(), y)
    finally:
        np.random.randint, timm_mixup.rand_bbox = randint, box
    assert not it.queue
    return mixed


def one_of(first, second, weights, draws, x, y):
    """torchvision's RandomChoice."""
    u = draws(0).uniform() * sum(weights)
    name, number = (first, 1) if u < weights[0] else (second, 2)
    return torchvision(name, 1.0, draws(number), x, y)


TIMM = {
    "deit": dict(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1),
    "some": dict(mixup_alpha=0.2, prob=0.5, label_smoothing=0.0),
    "plain": dict(mixup_alpha=0.0, cutmix_alpha=1.0, correct_lam=False, label_smoothing=0.3),
    "minmax": dict(mixup_alpha=0.4, cutmix_minmax=(0.2, 0.8), switch_prob=0.75),
}


def operations(dtype):
    """Name in the test, and a function of draws by number, images and labels."""
    if dtype != "uint8":
        for alpha in (1.0, 0.2):
            yield f"mix_up_{alpha}", lambda d, x, y, a=alpha: torchvision("MixUp", a, d(0), x, y)
        yield "choice", lambda d, x, y: one_of("MixUp", "CutMix", (1.0, 2.0), d, x, y)
    yield "cut_mix", lambda d, x, y: torchvision("CutMix", 1.0, d(0), x, y)
    for mode in ("batch", "elem", "pair"):
        for name, keys in TIMM.items():
            made = functools.partial(timm, {**keys, "mode": mode}, False, False)
            yield f"timm_{name}_{mode}", lambda d, x, y, made=made: made(d(0), x, y)
        for name, mix, cut, is_even, is_ours in [
            ("timm_even", 0.0, 1.0, True, False),
            ("mirrored_blend", 0.3, 0.0, False, True),
            ("mirrored_cut", 0.0, 1.0, False, True),
            ("mirrored_even", 0.0, 1.0, True, True),
        ]:
            keys = {"mixup_alpha": mix, "cutmix_alpha": cut, "label_smoothing": 0.0, "mode": mode}
            made = functools.partial(timm, keys, is_even, is_ours)
            yield f"{name}_{mode}", lambda d, x, y, made=made: made(d(0), x, y)


def mixed():
    for dtype, layout in SHAPES:
        for count, height, width in [(8, 13, 10), (2, 5, 32), (6, 32, 33)]:
            for name, apply in operations(dtype):
                for batch in (0, 1, 2):
                    first = number_of_operation(dtype, layout)

                    def draws(number):
                        return Draws(SEED, EPOCH, batch, first + number)

                    x, y = apply(draws, images(count, height, width, dtype), labels(count))
                    assert x.dtype == getattr(torch, dtype) and y.dtype == torch.float32
                    # timm rounds lambda of labels to the type of the images.
                    if dtype == "float16":
                        _, y = apply(draws, images(count, height, width, "float32"), labels(count))
                    x = x.numpy() if layout == "NCHW" else x.numpy().transpose(0, 2, 3, 1)
                    words = f"{dtype} {layout} {count} {height} {width} {name} {batch}"
                    row = y[0].numpy().tobytes().hex()
                    yield f"{words} : {sha(x.tobytes())} {sha(y.numpy().tobytes())} {row}"


def lines():
    yield from mixed()
    for smoothing in (0.0, 0.1, 1.0):
        off = smoothing / CLASSES
        y = timm_mixup.one_hot(labels(4), CLASSES, 1.0 - smoothing + off, off)
        yield f"one_hot {smoothing} : {sha(y.numpy().tobytes())}"
    for alpha in (0.1, 0.2, 0.8, 1.0, 4.0):
        quantiles = stats.beta(alpha, alpha).ppf(np.arange(1, 50) / 50)
        yield f"quantiles {alpha} : {' '.join(repr(float(q)) for q in quantiles)}"


if __name__ == "__main__":
    write("batch.txt", list(lines()))
