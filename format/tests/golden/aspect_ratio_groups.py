#!/usr/bin/env python3
"""Writes aspect_ratio_groups.txt: the groups that torchvision's detection reference gives pictures.

The bins and their use are those of `create_aspect_ratio_groups` and `_quantize` in
references/detection/group_by_aspect_ratio.py of torchvision: the ratio is height / width, the bins
are (2 ** numpy.linspace(-1, 1, 2 * k + 1)), or [1.0] for k = 0, and the group is the place where
bisect_right would insert the ratio. Needs NumPy; written with NumPy 2.4.

    python3 aspect_ratio_groups.py > aspect_ratio_groups.txt

A line has k, then groups of the pictures of all heights and widths in SIDES, row by row.
"""

import bisect

import numpy

SIDES = [1, 2, 3, 97, 100, 224, 333, 375, 426, 427, 480, 500, 512, 640, 800, 1000, 1333, 4000, 65535]


def main():
    for k in range(17):
        bins = (2 ** numpy.linspace(-1, 1, 2 * k + 1)).tolist() if k > 0 else [1.0]
        ratios = [float(height) / float(width) for height in SIDES for width in SIDES]
        print(k, ":", *(bisect.bisect_right(bins, ratio) for ratio in ratios))


main()
