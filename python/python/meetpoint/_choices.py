"""Operations that contain others and choose among them for each sample.

They may also contain operations on batches, but not together with others; the choice is then made
for each batch.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Union

from ._transform import Transform
from ._values import floats, number

Contained = Union[Transform, Sequence[Transform]]
"""An operation inside another one; a list is a sequence of operations."""


class RandomApply(Transform):
    """As ``v2.RandomApply``: all of the operations, in their order, or none.

    With ``p=1`` it is a sequence. Each operation takes an image and returns one with the same
    number of channels.

    :param operations: the operations.
    :param p: the probability that they are applied, from 0 to 1.
    :raises RecipeError: an object that is not an operation.
    """

    _name = "random_apply"

    def __init__(self, operations: Sequence[Contained], p: float = 0.5) -> None:
        super().__init__(operations=_listed(operations), p=number("p", p))


class RandomChoice(Transform):
    """As ``v2.RandomChoice``: one of the operations; a list among them is a sequence.

    :param operations: the operations, each from an image to an image with equally many channels.
    :param p: a weight for each operation, 0 or more and not all 0; by default all are equal.
    :raises RecipeError: an object that is not an operation.
    """

    _name = "random_choice"

    def __init__(
        self, operations: Sequence[Contained], p: Optional[Sequence[float]] = None
    ) -> None:
        weights = None if p is None else floats("p", p)
        super().__init__(operations=_listed(operations), p=weights)


class RandomOrder(Transform):
    """As ``v2.RandomOrder``: all of the operations in a random order.

    :param operations: the operations, each from an image to an image with equally many channels.
    :raises RecipeError: an object that is not an operation.
    """

    _name = "random_order"

    def __init__(self, operations: Sequence[Contained]) -> None:
        super().__init__(operations=_listed(operations))


def _listed(operations: Any) -> List[Any]:
    return list(operations)
