"""A rank of scripts/ranks_netns.sh: takes some steps, saves its state, and says what it delivered.

rank.py DATASET OUT STEPS [STATE…]: resumes from the states, takes STEPS steps (0: the whole epoch),
writes its state and its batches to OUT, and goes on until the epoch ends or the ranks do. Rank and
world size come from the environment, or from a process group if TORCH is set: then the output is
OUT-ATTEMPT-RANK, and the attempt after the first one resumes from the states of the first.
"""

import json
import os
import signal
import sys
import time

import meetpoint
from meetpoint import transforms as T

dataset, out, steps, *states = sys.argv[1:]
if os.environ.get("TORCH"):
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    # The agents of two hosts may count differently; a first state shows that there was an attempt.
    first = [f"{out}-0-{rank}" for rank in range(torch.distributed.get_world_size())]
    torch.distributed.barrier()
    if attempt > 0 or os.path.exists(first[0]):
        attempt, steps, states = 1, "0", first
    torch.distributed.barrier()
    out = f"{out}-{attempt}-{torch.distributed.get_rank()}"
result = {}


def save(**it):
    result.update(it)
    with open(out + ".new", "w") as file:
        json.dump(result, file)
    os.replace(out + ".new", out)


batches = []
began = time.monotonic()
try:
    loader = meetpoint.Loader(
        dataset,
        recipe=T.Compose([T.CenterCrop(8)]),
        batch_size=3,
        seed=11,
        shuffle=True,
        strategy="wrr",
        device=os.environ.get("DEVICE") or meetpoint.Emulated(allow_shared=True),
        workers=1,
        columns=["sample"],
        rank_timeout=120,
        rank_link_timeout=float(os.environ.get("SILENCE", "20")),
    )
    if states:
        loader.load_state_dict([json.load(open(path))["state"] for path in states])
    for batch in loader:
        batches.append(batch["sample"].tolist())
        if len(batches) == int(steps):
            save(batches=batches, state=loader.state_dict())
            # The script may cut the network before it creates this file.
            while os.environ.get("GO") and not os.path.exists(os.environ["GO"]):
                time.sleep(0.01)
            began = time.monotonic()
            if os.environ.get("DIES") == os.environ["RANK"]:
                os.kill(os.getpid(), signal.SIGKILL)
    if int(steps) == 0:
        save(batches=batches, uneven=loader.report()["uneven"])
    loader.close()
except meetpoint.RankError as error:
    save(error=str(error), seconds=round(time.monotonic() - began, 1))
    # The process group of torch would wait for the lost rank.
    os._exit(3)
