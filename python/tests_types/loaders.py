# pyright: reportUnnecessaryTypeIgnoreComment=true
"""What type checkers must say of loaders: checked by mypy and pyright, never run.

A line with ``type: ignore`` has an error; where a checker finds none it says that the comment is
not needed.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import jax
import numpy
import torch
from numpy.typing import NDArray
from typing_extensions import assert_type

import meetpoint
from meetpoint import collate
from meetpoint import transforms as T

RECIPE = T.Compose([T.CenterCrop(8)])


def batches_have_the_type_of_the_output() -> None:
    for images, labels in meetpoint.Loader("a.set", recipe=RECIPE, batch_size=4):
        assert_type(images, NDArray[Any])
        assert_type(labels, Optional[NDArray[numpy.signedinteger[Any]]])
    for of_torch in meetpoint.Loader("a.set", recipe=RECIPE, output="torch", pin_memory=True):
        assert_type(of_torch, Tuple[torch.Tensor, Optional[torch.Tensor]])
    for of_torch in meetpoint.Loader("a.set", recipe=RECIPE, output="torch", device_out="cuda:0"):
        assert_type(of_torch, Tuple[torch.Tensor, Optional[torch.Tensor]])
    for images, _ in meetpoint.Loader("a.set", recipe=RECIPE, gpu_decode="cuda:0", gpu_share=0.5):
        assert_type(images, NDArray[Any])
    for of_jax in meetpoint.Loader("a.set", recipe=RECIPE, output="jax", num_workers=2):
        assert_type(of_jax, Tuple[jax.Array, Optional[jax.Array]])
    for of_dlpack in meetpoint.Loader("a.set", recipe=RECIPE, output="dlpack"):
        assert_type(of_dlpack, Tuple[meetpoint.Tensor, Optional[meetpoint.Tensor]])
    for batch in meetpoint.Loader("a.set", recipe=RECIPE, columns=["image", "key"]):
        assert_type(batch, Dict[str, Any])
    for batch in meetpoint.Loader("a.set", recipe=RECIPE, collate="pad"):
        assert_type(batch, Dict[str, Any])
    for batch in meetpoint.Loader("a.set", recipe=RECIPE, collate=collate.List(), output="torch"):
        assert_type(batch, Dict[str, Any])
    meetpoint.Loader("a.set", recipe=RECIPE, collate="padd")  # type: ignore


def a_batch_transform_sets_the_type_of_batches() -> None:
    def mean(batch: Tuple[NDArray[Any], Any]) -> float:
        return float(batch[0].mean())

    def of_torch(batch: Tuple[torch.Tensor, Any]) -> torch.Tensor:
        return batch[0]

    def of_columns(batch: Dict[str, Any]) -> List[int]:
        return [1]

    for number in meetpoint.Loader("a.set", recipe=RECIPE, batch_transform=mean):
        assert_type(number, float)
    for images in meetpoint.Loader("a.set", recipe=RECIPE, output="torch", batch_transform=of_torch):
        assert_type(images, torch.Tensor)
    for numbers in meetpoint.Loader(
        "a.set", recipe=RECIPE, columns="sample", batch_transform=of_columns
    ):
        assert_type(numbers, List[int])
    meetpoint.Loader("a.set", recipe=RECIPE, batch_transform=7)  # type: ignore[call-overload]


def a_loader_has_what_torch_users_expect(loader: meetpoint.Loader[Any]) -> None:
    assert_type(loader.dataset[0], meetpoint.Sample)
    assert_type(loader.batch_size, int)
    sizes: List[int] = [len(samples) for samples in loader.batch_sampler]
    assert_type(sizes, List[int])
    assert_type(loader.state_dict(), Dict[str, Any])


def arguments_of_torch_without_a_value_are_taken() -> None:
    meetpoint.Loader("a.set", recipe=RECIPE, sampler=None, collate_fn=None, timeout=0)


def misspelt_and_wrong_arguments_are_errors() -> None:
    meetpoint.Loader("a.set", recipe=RECIPE, outptu="torch")  # type: ignore[call-overload]
    meetpoint.Loader("a.set", recipe=RECIPE, shufle=True)  # type: ignore[call-overload]
    meetpoint.Loader("a.set", recipe=RECIPE, output="pytorch")  # type: ignore[call-overload]
    meetpoint.Loader("a.set", recipe=RECIPE, batch_size="4")  # type: ignore[call-overload]
    meetpoint.Loader("a.set", recipe=RECIPE, sampler=[1])  # type: ignore[call-overload]
    meetpoint.Loader("a.set")  # type: ignore[call-overload]


def batches_are_not_taken_for_others() -> None:
    for images, _ in meetpoint.Loader("a.set", recipe=RECIPE):
        images.backward()  # type: ignore[attr-defined]
    for tensors, _ in meetpoint.Loader("a.set", recipe=RECIPE, output="torch"):
        tensors.block_until_ready()  # type: ignore[attr-defined]
