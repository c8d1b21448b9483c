#!/usr/bin/env python3
"""Writes crops_of_one.txt beside itself.

The pictures that five_crop and ten_crop must give: those of torchvision's FiveCrop and TenCrop on
PIL images. The first 16 digits of SHA-256 of the pixels of each, or "small" where torchvision
refuses the picture.

    pip install pillow==13.0.0 numpy==2.4.6 torchvision==0.29.2
    python3 crops_of_one.py
"""

from make import noise, sha, write
from torchvision.transforms import v2


def main():
    lines = []
    for width, height in [(1, 1), (7, 9), (40, 33), (41, 34), (64, 20), (97, 61)]:
        picture = noise(width, width, height)
        for to_height, to_width in [(1, 1), (9, 7), (20, 33), (33, 20), (34, 41)]:
            size = (to_height, to_width)
            for flip, crops in [
                ("five", v2.FiveCrop(size)),
                ("ten", v2.TenCrop(size)),
                ("vertical", v2.TenCrop(size, vertical_flip=True)),
            ]:
                try:
                    made = [sha(crop.tobytes())[:16] for crop in crops(picture)]
                except ValueError:
                    made = ["small"]
                lines.append(f"{flip} {width} {height} {to_height} {to_width} : {' '.join(made)}")
    write("crops_of_one.txt", lines)


if __name__ == "__main__":
    main()
