"""Text: packed from folders, loaded as tokens and vectors, refused with the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import meetpoint
from meetpoint import transforms as T

LETTERS = "abcdefghijklmnopqrstuvwxyz "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pages, a tokenizer whose tokens are characters, and a table of vectors."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "files").mkdir()
    for number in range(8):
        page = f"<title>no</title><p>{'ab' * (number + 1)} <b>z</b></p>"
        (folder / "files" / f"{number}.html").write_text(page)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {letter: number for number, letter in enumerate(LETTERS)},
        "merges": [],
    }
    parts = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    tokenizer = {"version": "1.0", "added_tokens": [], "model": model, **dict.fromkeys(parts)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    table = numpy.arange(len(LETTERS) * 3, dtype=numpy.float32).reshape(-1, 3)
    numpy.save(folder / "table.npy", table)
    meetpoint.pack(folder / "files", folder / "texts.set")
    return folder


def tokens(number: int) -> list[int]:
    return [LETTERS.index(letter) for letter in "ab" * (number + 1) + " z"]


def test_tokens_of_pages_are_cut_padded_and_masked(folder: Path) -> None:
    recipe = T.Compose(
        [
            T.DecodeText(),
            T.HtmlToText(),
            T.Tokenize(folder / "tokenizer.json"),
            T.PadSequence(12, pad_token=25, planes="ids_mask"),
        ]
    )
    output = recipe.output
    assert output is not None and list(output["shape"]) == [2, 12] and output["dtype"] == "int32"
    settings: Any = {"batch_size": 8, "columns": ["text"]}
    with meetpoint.Loader(folder / "texts.set", recipe=recipe, **settings) as loader:
        (batch,) = [numpy.array(batch["text"]) for batch in loader]
    assert (batch.shape, batch.dtype) == ((8, 2, 12), numpy.int32)
    for number in range(8):
        real = tokens(number)[:12]
        assert batch[number, 0].tolist() == real + [25] * (12 - len(real))
        assert batch[number, 1].tolist() == [1] * len(real) + [0] * (12 - len(real))


def test_tokens_become_the_vectors_of_a_table(folder: Path) -> None:
    transforms = [
        T.DecodeText(),
        T.HtmlToText(),
        T.Tokenize(folder / "tokenizer.json"),
        T.PadSequence(6),
        T.Embed(folder / "table.npy", dim=3, dtype="float16"),
    ]
    settings: Any = {"batch_size": 8, "columns": ["text"]}
    with meetpoint.Loader(folder / "texts.set", recipe=T.Compose(transforms), **settings) as loader:
        (batch,) = [numpy.array(batch["text"]) for batch in loader]
    table = numpy.load(folder / "table.npy").astype(numpy.float16)
    ids = [(tokens(number) + [0] * 6)[:6] for number in range(8)]
    assert batch.dtype == numpy.float16
    assert numpy.array_equal(batch, table[numpy.array(ids)])


def test_documents_share_rows(folder: Path) -> None:
    recipe = T.Compose(
        [
            T.DecodeText(),
            T.HtmlToText(),
            T.Tokenize(folder / "tokenizer.json"),
            T.PadSequence(10, pad_token=26, planes="ids_segments_positions"),
            T.PackSequences(),
        ]
    )
    settings: Any = {"batch_size": 4, "columns": ["text"]}
    with meetpoint.Loader(folder / "texts.set", recipe=recipe, **settings) as loader:
        first = next(iter(loader))["text"]
    ids, segments, positions = numpy.array(first).swapaxes(0, 1)
    assert ids[0].tolist() == tokens(0) + tokens(1)
    assert segments[0].tolist() == [1] * 4 + [2] * 6
    assert positions[0].tolist() == [*range(4), *range(6)]
    assert (segments[3] == 0).all() and (ids[3] == 26).all()


def test_a_recipe_reads_back_with_the_paths_of_its_files(folder: Path) -> None:
    recipe = T.Compose(
        [T.DecodeText(errors="replace"), T.Tokenize(folder / "tokenizer.json", sha256="0" * 64)]
    )
    again = T.Compose.from_toml(recipe.to_toml())
    assert again == recipe and str(folder) in again.to_toml()


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    def opened(*transforms: T.Transform) -> None:
        recipe = T.Compose([T.DecodeText(), *transforms, T.PadSequence(4)])
        meetpoint.Loader(folder / "texts.set", recipe=recipe, batch_size=2).close()

    with pytest.raises(meetpoint.errors.MeetpointError, match=r"none\.json.*`tokenize`"):
        opened(T.Tokenize(folder / "none.json"))
    with pytest.raises(meetpoint.errors.MeetpointError, match="SHA-256"):
        opened(T.Tokenize(folder / "tokenizer.json", sha256="0" * 64))
    with pytest.raises(meetpoint.errors.MeetpointError, match=r"table\.npy"):
        opened(T.Tokenize(folder / "table.npy"))


@pytest.mark.parametrize(
    ("transforms", "words"),
    [
        ([T.DecodeText(), T.Resize(8)], "text"),
        ([T.DecodeText(), T.PadSequence(8)], "tokens"),
        ([T.Resize(8), T.HtmlToText()], "image"),
        ([T.DecodeText(), T.Tokenize("t"), T.PadSequence(8), T.PackSequences()], "planes"),
    ],
)
def test_a_transform_that_cannot_follow_is_refused(transforms: Any, words: str) -> None:
    with pytest.raises(meetpoint.errors.RecipeError, match=words):
        T.Compose(transforms)
