"""Stops in the middle of an epoch, writes the state to a file, and resumes in another loader.

    python resume.py --dataset photos.set
    python resume.py --quick          with a few pictures that it makes
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import List

from quickstart import make_pictures

import meetpoint
from meetpoint import transforms as T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", help="folder of a packed dataset")
    parser.add_argument("--quick", action="store_true", help="make one of a few pictures")
    arguments = parser.parse_args()
    if not arguments.quick and arguments.dataset is None:
        parser.error("give --dataset, or --quick")

    with tempfile.TemporaryDirectory() as temporary:
        dataset = arguments.dataset
        if arguments.quick:
            make_pictures(Path(temporary) / "pictures", 50)
            packed = meetpoint.pack(Path(temporary) / "pictures", Path(temporary) / "pictures.set")
            dataset = packed.destination
        checkpoint = Path(temporary) / "loader.json"

        def make() -> meetpoint.Loader:
            return meetpoint.Loader(
                dataset,
                recipe=T.Compose([T.RandomResizedCrop(32)]),
                batch_size=4,
                shuffle=True,
                columns=["sample", "image"],
            )

        seen: List[int] = []
        with make() as loader:
            for step, batch in enumerate(loader):
                seen += batch["sample"].tolist()
                if step == 4:
                    checkpoint.write_text(json.dumps(loader.state_dict()))
                    break
        with make() as loader:
            loader.load_state_dict(json.loads(checkpoint.read_text()))
            for batch in loader:
                seen += batch["sample"].tolist()
            assert sorted(seen) == list(range(loader.samples))
        print(f"every one of {len(seen)} samples came once")


if __name__ == "__main__":
    main()
