"""Makes the tiny synthetic pictures that the fixtures are packed from.

usage: pictures.py FOLDER (needs Pillow and numpy)
"""

import pathlib
import sys

import numpy as np
from PIL import Image


def picture(width, height, seed):
    """Gradients with an edge and some grain: every DCT frequency occurs."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [x * 5 + seed * 20, y * 4 + seed * 33, (x + y) * 3 + (x > width // 2) * 80]
    grain = rng.integers(0, 24, (height, width, 1))
    return Image.fromarray(((np.stack(planes, 2) + grain) % 256).astype(np.uint8))


def main(folder):
    for name in ("fine", "coarse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    jpeg = {"quality": 60}
    picture(40, 24, 1).save(folder / "fine/444.jpg", subsampling=0, **jpeg)
    picture(37, 29, 2).save(folder / "coarse/420.jpg", subsampling=2, **jpeg)
    picture(33, 18, 3).convert("L").save(folder / "coarse/grey.jpg", **jpeg)
    picture(32, 24, 4).save(folder / "fine/progressive.jpg", progressive=True, **jpeg)
    picture(9, 7, 5).save(folder / "fine/10.png", optimize=True)
    restarts = {"restart_marker_rows": 1}
    picture(24, 34, 6).save(folder / "fine/restarts.jpg", subsampling=1, **restarts, **jpeg)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
