"""Operations on text and tokens."""

from __future__ import annotations

import os
from typing import Literal, Optional, Union

from ._transform import Transform
from ._values import whole

Path = Union[str, "os.PathLike[str]"]


class DecodeText(Transform):
    """Decodes characters, as ``bytes.decode(encoding, errors)``, without a byte order mark.

    :param encoding: the character encoding of every file.
    :param errors: ``"strict"``: bytes that are not characters are an error of the sample;
        ``"replace"``: they are replaced by U+FFFD.
    """

    _name = "decode_text"

    def __init__(
        self,
        encoding: Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"] = "utf-8",
        errors: Literal["strict", "replace"] = "strict",
    ) -> None:
        super().__init__(encoding=encoding, errors=errors)


class HtmlToText(Transform):
    """The visible text of an HTML document, with a line for each block."""

    _name = "html_to_text"

    def __init__(self) -> None:
        super().__init__()


class Tokenize(Transform):
    """The tokens of a text as int32, as ``tokenizers.Tokenizer.encode`` gives them.

    :param tokenizer: path of a ``tokenizer.json``. Its truncation and padding are left out.
    :param sha256: the SHA-256 of that file, which is refused if it has another.
    :param special_tokens: whether the tokens that its post-processor adds are added.
    """

    _name = "tokenize"

    def __init__(
        self, tokenizer: Path, sha256: Optional[str] = None, special_tokens: bool = False
    ) -> None:
        super().__init__(
            tokenizer=os.fspath(tokenizer), sha256=sha256, special_tokens=special_tokens
        )


class PadSequence(Transform):
    """Cuts the end of a sequence of tokens off, or pads it, to ``length`` tokens.

    :param pad_token: the token of the padding.
    :param end_token: a token that is appended to every sequence, also to one that is cut.
    :param planes: ``"ids"``: tokens, [length]; ``"ids_mask"``: [2, length], with 1 for tokens and
        0 for padding; ``"ids_segments_positions"``: [3, length], as :class:`PackSequences` takes.
    """

    _name = "pad_sequence"

    def __init__(
        self,
        length: int,
        pad_token: int = 0,
        end_token: Optional[int] = None,
        planes: Literal["ids", "ids_mask", "ids_segments_positions"] = "ids",
    ) -> None:
        super().__init__(
            length=whole("length", length),
            pad_token=whole("pad_token", pad_token),
            end_token=None if end_token is None else whole("end_token", end_token),
            planes=planes,
        )


class Embed(Transform):
    """The vector of each token, [time, dim], from a table.

    :param table: path of a NumPy file, or of a safetensors file with one tensor, of [tokens, dim]
        in float32 or float16.
    :param dim: elements of a vector.
    :param dtype: ``"float32"`` or ``"float16"``.
    :param sha256: the SHA-256 of that file, which is refused if it has another.
    """

    _name = "embed"

    def __init__(
        self,
        table: Path,
        dim: int,
        dtype: Literal["float32", "float16"] = "float32",
        sha256: Optional[str] = None,
    ) -> None:
        super().__init__(
            table=os.fspath(table), sha256=sha256, dim=whole("dim", dim), dtype=dtype
        )


class PackSequences(Transform):
    """Moves the documents of a batch to its first rows, several to a row.

    Follows :class:`PadSequence` with ``planes="ids_segments_positions"``. Segments are numbered from
    1 in each row, and positions from 0 in each segment; segment 0 is padding.

    :param method: ``"first_fit"``: each document is placed in the first row that has space for it;
        ``"concatenate"``: they follow one another, cut at the end of a row.
    """

    _name = "pack_sequences"

    def __init__(self, method: Literal["first_fit", "concatenate"] = "first_fit") -> None:
        super().__init__(method=method)
