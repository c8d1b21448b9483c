"""Writes a small .beton file with FFCV's own writer, and what is in it.

    pip download --no-deps --no-binary :all: ffcv==1.0.2    (and unpack what comes)
    python make_ffcv.py ffcv-1.0.2                          (writes into ffcv/ beside this file)

FFCV's writer is Python alone, but its package imports PyTorch, Numba and a library in C++, which
only its reader uses; stand-ins take their place here, so that none of them is needed. numpy,
pillow and opencv are real. The header, the table of samples, the pages and the table of what was
allocated are all FFCV's work; but for the least size of a page, which is 2 MiB there and nothing
but a check, nothing of it is changed. `expected.json` holds what the source must yield.
"""

import hashlib
import importlib
import json
import pathlib
import sys
import types
from unittest.mock import MagicMock

import numpy as np

HERE = pathlib.Path(__file__).parent / "ffcv"
COUNT = 12
PAGE_BYTES = 1 << 12
# Pictures of more bytes than this are written as JPEG, the others as pixels.
THRESHOLD = 1000


def ffcv_modules(folder):
    """Parts of the package, without what its reader needs."""
    for name in ["torch", "numba", "numba.extending", "numba.typed", "tqdm", "tqdm.contrib",
                 "tqdm.contrib.concurrent", "ffcv.libffcv", "ffcv.pipeline",
                 "ffcv.pipeline.operation", "ffcv.pipeline.state", "ffcv.pipeline.compiler",
                 "ffcv.pipeline.allocation_query"]:
        sys.modules[name] = MagicMock()
    sys.modules["numba.typed"].Dict = dict
    # What decoders are made from must be a class.
    sys.modules["ffcv.pipeline.operation"].Operation = type("Operation", (), {})
    package = types.ModuleType("ffcv")
    package.__path__ = [str(folder / "ffcv")]
    sys.modules["ffcv"] = package
    return [importlib.import_module(f"ffcv.{name}") for name in ["writer", "fields"]]


def picture(index):
    """Pixels; every third picture is small enough to stay pixels."""
    rng = np.random.default_rng(index)
    shape = (3, 2, 3) if index % 3 == 2 else (20 + index, 24, 3)
    return rng.integers(0, 255, shape, dtype=np.uint8)


def sample(index):
    """A sample, in the order of the fields."""
    points = np.arange(6, dtype=np.float32).reshape(2, 3) + index
    return (
        # The first and every fifth are empty, so that their place is that of the picture.
        np.arange(index % 5, dtype=np.uint8),
        picture(index),
        index % 4,
        index / 8,
        points,
        {"name": f"№ {index}", "of": index},
    )


class Samples:
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return sample(int(index))


def expected(encode_jpeg):
    """What each sample is here: a JPEG by its SHA-256, pixels as they are."""
    rows = []
    for index in range(COUNT):
        blob, pixels, label, score, points, meta = sample(index)
        is_jpeg = pixels.nbytes > THRESHOLD
        jpeg = hashlib.sha256(encode_jpeg(pixels, 90).tobytes()).hexdigest()
        extra = {"score": score, "blob": blob.tobytes().hex(), "points": points.ravel().tolist(),
                 "meta": json.dumps(meta)}
        content = jpeg if is_jpeg else f"pixels:{pixels.tobytes().hex()}"
        key = f"{index:06}.{'jpg' if is_jpeg else 'png'}"
        rows.append({"key": key, "content": content, "label": label, "extra": extra})
    return {"path": "../ffcv/smart.beton", "options": {}, "kind": "image", "name": "image",
            "labels": [], "samples": rows}


def main():
    writer, fields = ffcv_modules(pathlib.Path(sys.argv[1]).resolve())
    writer.MIN_PAGE_SIZE = PAGE_BYTES
    HERE.mkdir(exist_ok=True)
    described = {
        "blob": fields.BytesField(),
        "image": fields.RGBImageField(write_mode="smart", smart_threshold=THRESHOLD),
        "label": fields.IntField(),
        "score": fields.FloatField(),
        "points": fields.NDArrayField(np.dtype("<f4"), (2, 3)),
        "meta": fields.JSONField(),
    }
    path = HERE / "smart.beton"
    written = writer.DatasetWriter(str(path), described, page_size=PAGE_BYTES, num_workers=1)
    written.from_indexed_dataset(Samples())
    encode_jpeg = importlib.import_module("ffcv.fields.rgb_image").encode_jpeg
    document = {"ffcv/smart.beton": expected(encode_jpeg)}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (HERE / "expected.json").write_text(text)


if __name__ == "__main__":
    main()
