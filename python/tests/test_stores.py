"""Datasets at URLs, as far as no server is needed: tests/tests/remote has the rest."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Union

import pytest

import meetpoint
from meetpoint import transforms as T
from meetpoint.errors import SettingError, StorageError

URL = "ftp://host/photos.set"
"""A URL that no build reads."""


def test_a_url_is_no_folder_and_the_error_has_a_remedy() -> None:
    with pytest.raises(StorageError) as raised:
        meetpoint.open(URL)
    assert "ftp://host" in str(raised.value)
    with pytest.raises(StorageError):
        meetpoint.Loader(URL, recipe=T.Compose([T.CenterCrop(8)]), batch_size=1)
    with pytest.raises(meetpoint.errors.MeetpointError):
        meetpoint.verify(URL)


@pytest.mark.parametrize("cache_size", ["much", 0, -1])
def test_a_size_of_the_cache_is_checked(cache_size: Union[int, str]) -> None:
    with pytest.raises(SettingError, match="cache_size"):
        meetpoint.open(URL, cache_size=cache_size)


def test_options_of_the_cache_do_not_concern_a_folder(dataset: str, tmp_path: Path) -> None:
    with meetpoint.open(dataset, cache_dir=tmp_path / "cache", cache_size="1MiB") as opened:
        again = pickle.loads(pickle.dumps(opened))
        assert again.fingerprint == opened.fingerprint
    assert not (tmp_path / "cache").exists()
