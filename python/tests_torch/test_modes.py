"""Batches of every mode of ``decode`` as tensors of torch, uint16 included, from host and device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import meetpoint
from meetpoint import transforms as T

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import modes  # noqa: E402

TYPES = {"uint8": torch.uint8, "uint16": torch.uint16, "float32": torch.float32}


@pytest.mark.parametrize("end", ["host-only", "device-only"])
@pytest.mark.parametrize("mode", modes.MODES)
def test_tensors_hold_the_pixels_of_the_files(tmp_path: Path, mode: str, end: str) -> None:
    packed = meetpoint.pack(modes.make(tmp_path / "files", mode), tmp_path / "set").destination
    device = None if end == "host-only" else meetpoint.Emulated(allow_shared=True)
    recipe = T.Compose(
        [T.Decode(mode=mode), T.CenterCrop((modes.HEIGHT, modes.WIDTH)), T.ToImage()]
    )
    seen = 0
    with meetpoint.Loader(
        packed,
        recipe=recipe,
        batch_size=4,
        columns=["image", "sample"],
        output="torch",
        strategy=end,
        device=device,
    ) as loader:
        for batch in loader:
            dtype, channels = modes.MODES[mode]
            assert batch["image"].dtype == TYPES[dtype]
            assert batch["image"].shape[1:] == (channels, modes.HEIGHT, modes.WIDTH)
            arrays = {name: it.numpy() for name, it in batch.items()}
            seen += modes.check(arrays, mode, "NCHW")
    assert seen == modes.COUNT
