"""Checks that ranks delivered an epoch: check.py DATASET OUT…

The batches of all outputs are those of the epoch, and the repeated ones are those that the last
output reports.
"""

import json
import sys
from collections import Counter

import meetpoint
from meetpoint import transforms as T

dataset, *outputs = sys.argv[1:]
with meetpoint.Loader(
    dataset,
    recipe=T.Compose([T.CenterCrop(8)]),
    batch_size=3,
    seed=11,
    shuffle=True,
    columns=["sample"],
    rank=0,
    world_size=1,
) as loader:
    known = {tuple(batch["sample"].tolist()): number for number, batch in enumerate(loader)}
said = [json.load(open(path)) for path in outputs]
came = Counter(known[tuple(batch)] for it in said for batch in it["batches"])
rows = said[-1]["uneven"]
repeated = Counter(number for row in rows for number in row["batches"])
assert all(row["kind"] == "repeated" for row in rows), rows
assert came == Counter(known.values()) + repeated, (came, repeated)
print(f"{sum(came.values())} batches delivered, {len(known)} different of {len(known)}")
print(f"repeated as reported: {sorted(repeated.elements())}")
