"""Writes the .npy files that src/npy.rs is tested against. Made with NumPy 2.4.6, Python 3."""

import pathlib

import numpy

here = pathlib.Path(__file__).parent
numpy.save(here / "uint8_2x4x3.npy", numpy.arange(24, dtype=numpy.uint8).reshape(2, 4, 3))
numpy.save(here / "float16_1x2.npy", numpy.array([[1.0, -2.5]], dtype=numpy.float16))
numpy.save(here / "float32_3.npy", numpy.array([0.5, -1.25, 3.0], dtype=numpy.float32))
