"""Operations on batches: samples mixed with one another, and labels as rows."""

from __future__ import annotations

import re
import sys
from typing import Any, Optional, Sequence

from ._transform import Transform
from ._values import floats, number, whole
from .errors import RecipeError

_EVEN_BEFORE = (1, 0, 31)
"""The version of timm from which on the rectangles of its CutMix have odd sides as well."""


class MixUp(Transform):
    """As ``v2.MixUp``: each sample and its label are blended with those of another.

    Labels become float32 ``[batch, num_classes]``. Operations on batches come last.

    :param alpha: the parameter of the beta distribution of lambda, 0.01 to 1000.
    :param num_classes: the number of classes.
    :param mode: ``"batch"``: one lambda for all samples; ``"elem"``: one for each sample;
        ``"pair"``: one for each pair, which needs mirrored partners.
    :param partner: ``"previous"``, as in torchvision, or ``"mirrored"``, as in timm.
    :param label_smoothing: the share of a label that is divided among all classes.
    """

    _name = "mix_up"

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int,
        mode: str = "batch",
        partner: str = "previous",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            alpha=number("alpha", alpha),
            num_classes=whole("num_classes", num_classes),
            mode=mode,
            partner=partner,
            label_smoothing=number("label_smoothing", label_smoothing),
        )


class CutMix(Transform):
    """As ``v2.CutMix``: a rectangle of each sample is replaced by that of another.

    Labels become float32 ``[batch, num_classes]``. Operations on batches come last.

    :param alpha: the parameter of the beta distribution of lambda, 0.01 to 1000.
    :param num_classes: the number of classes.
    :param mode: as of :class:`MixUp`.
    :param partner: as of :class:`MixUp`.
    :param box: whose rectangle: ``"torchvision"``, also of timm before 1.0.31, or
        ``"timm_1.0.31"``.
    :param label_smoothing: the share of a label that is divided among all classes.
    """

    _name = "cut_mix"

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int,
        mode: str = "batch",
        partner: str = "previous",
        box: str = "torchvision",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            alpha=number("alpha", alpha),
            num_classes=whole("num_classes", num_classes),
            mode=mode,
            partner=partner,
            box=box,
            label_smoothing=number("label_smoothing", label_smoothing),
        )


class TimmMixup(Transform):
    """timm's ``Mixup``, with its arguments in its order; ``num_classes`` has no default.

    Batches may have an odd number of samples; the sample in the middle is then unchanged.

    :param mixup_alpha: the parameter of the beta distribution of lambda for blends, 0.01 to 1000;
        0: no blends.
    :param cutmix_alpha: the parameter of the beta distribution of lambda for rectangles, 0.01 to
        1000; 0: no rectangles.
    :param cutmix_minmax: bounds of the sides of rectangles as shares of the picture's sides,
        instead of ``cutmix_alpha``.
    :param prob: the probability that a batch, sample or pair is mixed.
    :param switch_prob: the probability of a rectangle instead of a blend, if both are enabled.
    :param mode: ``"batch"``, ``"elem"`` or ``"pair"``.
    :param correct_lam: whether labels follow from the part of the rectangle inside the picture.
    :param label_smoothing: the share of a label that is divided among all classes.
    :param num_classes: the number of classes.
    :param box: whose rectangle: ``"timm_1.0.31"``, or ``"torchvision"`` as in timm before.
    """

    _name = "timm_mixup"

    def __init__(
        self,
        mixup_alpha: float = 1.0,
        cutmix_alpha: float = 0.0,
        cutmix_minmax: Optional[Sequence[float]] = None,
        prob: float = 1.0,
        switch_prob: float = 0.5,
        mode: str = "batch",
        correct_lam: bool = True,
        label_smoothing: float = 0.1,
        *,
        num_classes: int,
        box: str = "timm_1.0.31",
    ) -> None:
        minmax = None if cutmix_minmax is None else floats("cutmix_minmax", cutmix_minmax)
        super().__init__(
            mixup_alpha=number("mixup_alpha", mixup_alpha),
            cutmix_alpha=number("cutmix_alpha", cutmix_alpha),
            cutmix_minmax=minmax,
            prob=number("prob", prob),
            switch_prob=number("switch_prob", switch_prob),
            mode=mode,
            correct_lam=bool(correct_lam),
            label_smoothing=number("label_smoothing", label_smoothing),
            num_classes=whole("num_classes", num_classes),
            box=box,
        )

    @classmethod
    def from_timm(cls, mixup: Any, *, version: Optional[str] = None) -> TimmMixup:
        """Reads timm's ``Mixup`` or ``FastCollateMixup``.

        :param mixup: the object.
        :param version: the version of timm that determines the rectangles; by default the imported
            one.
        :raises RecipeError: dense labels or the mode ``"half"``, which a recipe cannot express, or
            an object of another class.
        """
        names = {base.__name__ for base in type(mixup).__mro__}
        if not any(base.__module__ == "timm.data.mixup" for base in type(mixup).__mro__):
            raise _refused(mixup, f"its classes are {', '.join(sorted(names))}", "give timm's Mixup")
        if getattr(mixup, "multi_label", False):
            raise _refused(mixup, "its labels are rows already", "mix after the loader")
        if mixup.mode not in ("batch", "elem", "pair"):
            remedy = "use the mode batch, elem or pair"
            raise _refused(mixup, f"its mode is {mixup.mode!r}", remedy)
        if version is None:
            version = str(getattr(sys.modules.get("timm"), "__version__", ""))
        numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        if numbers is None:
            problem = f"the version of timm is {version!r}"
            raise _refused(mixup, problem, "give it as version='1.0.31'")
        is_even = tuple(int(part) for part in numbers.groups()) < _EVEN_BEFORE
        return cls(
            mixup.mixup_alpha,
            mixup.cutmix_alpha,
            mixup.cutmix_minmax,
            mixup.mix_prob if mixup.mixup_enabled else 0.0,
            mixup.switch_prob,
            mixup.mode,
            mixup.correct_lam,
            mixup.label_smoothing,
            num_classes=mixup.num_classes,
            box="torchvision" if is_even else "timm_1.0.31",
        )


class OneHot(Transform):
    """Labels as float32 ``[batch, num_classes]``: 1 for the class of the label, else 0.

    :param num_classes: the number of classes.
    :param label_smoothing: the share of a label that is divided evenly among all classes.
    """

    _name = "one_hot"

    def __init__(self, num_classes: int, label_smoothing: float = 0.0) -> None:
        super().__init__(
            num_classes=whole("num_classes", num_classes),
            label_smoothing=number("label_smoothing", label_smoothing),
        )


def _refused(mixup: object, problem: str, remedy: str) -> RecipeError:
    return RecipeError(f"{type(mixup).__name__}: {problem}", remedy=remedy)
