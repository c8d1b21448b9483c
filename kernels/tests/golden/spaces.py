#!/usr/bin/env python3
"""Writes spaces.txt beside itself: colours in the spaces of `convert_color`, by OpenCV.

A line is "SPACE STEP : sha256", the hash of every colour whose channels are multiples of STEP, red
being the slowest and blue the fastest to change. With `--every`, STEP is 1.

    pip install opencv-python-headless==5.0.0.93 numpy==2.4.6
    python3 spaces.py
"""

import hashlib
import pathlib
import sys

import cv2
import numpy as np

SPACES = {
    "hsv": cv2.COLOR_RGB2HSV,
    "hls": cv2.COLOR_RGB2HLS,
    "lab": cv2.COLOR_RGB2Lab,
    "ycrcb": cv2.COLOR_RGB2YCrCb,
}

step = 1 if sys.argv[1:] == ["--every"] else 3
values = np.arange(0, 256, step, dtype=np.uint8)
colours = np.stack(np.meshgrid(values, values, values, indexing="ij"), axis=-1)
colours = colours.reshape(len(values), -1, 3)
lines = []
for name, code in SPACES.items():
    made = cv2.cvtColor(np.ascontiguousarray(colours), code)
    lines.append(f"{name} {step} : {hashlib.sha256(made.tobytes()).hexdigest()}")
(pathlib.Path(__file__).parent / "spaces.txt").write_text("\n".join(lines) + "\n")
