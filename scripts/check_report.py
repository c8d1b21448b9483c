"""Checks the report of a run: check_report.py REPORT CONDITION.

Every batch was consumed once, levels C0 to C2 are verified and none failed. CONDITION is an
expression about `runs`, a list, with of(STRATEGY), and host(X) and device(X), the batches that the
host or the device prepared in a run or an epoch.
"""

import json
import sys


def prepared(it, source):
    epochs = it["epochs"] if "epochs" in it else [it]
    return sum(batch["source"] == source for epoch in epochs for batch in epoch["batches"])


def host(it):
    return prepared(it, "host")


def device(it):
    return prepared(it, "device")


report = json.load(open(sys.argv[1]))
runs = report["runs"]
for run in runs:
    levels = {level["level"]: level["verdict"] for level in run["levels"]}
    assert "failed" not in levels.values(), (run["strategy"], levels)
    for level in ("C0", "C1", "C2"):
        assert levels.get(level) == "verified", (run["strategy"], levels)
    for epoch in run["epochs"]:
        batches = sorted(batch["batch"] for batch in epoch["batches"])
        assert batches == list(range(len(batches))) and batches, (run["strategy"], batches)
    print(
        f"{run['strategy']}: C0 C1 C2 verified, "
        f"{host(run)} batches of the host, {device(run)} of the device"
    )
    for event in run["events"]:
        cause = (event.get("reason") or event.get("fault") or {}).get("kind", "")
        print(f"  epoch {event['epoch']}: {event['kind']} {cause}".rstrip())


def of(strategy):
    return next(run for run in runs if run["strategy"] == strategy)


assert eval(sys.argv[2]), f"not so: {sys.argv[2]}"
