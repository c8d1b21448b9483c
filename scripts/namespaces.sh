#!/usr/bin/env bash
# An agent and a training host on one machine, each in a network namespace of its own: every batch
# is compared with the host alone's, `mte` with its closed form on a link without limit, and `auto`
# with the host alone at 100 Mbit/s.
#
#     cargo build --release -p meetpoint-cli --features tls
#     PROGRAM=target/release/meetpoint scripts/namespaces.sh            everything
#     PROGRAM=target/release/meetpoint scripts/namespaces.sh --verify   only compares batches
#
# Needs root, or `unshare -r -n -m`; where namespaces are not allowed it prints SKIP and the reason.
# Times need a quiet machine: the load is printed with them. Host and agent have a core each.
# PICTURES (default 512) and ROUNDS (default 5) set the size of the set and the rounds of a median.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/netns.sh
source scripts/netns.sh

program=$(realpath "${PROGRAM:?name a program: PROGRAM=target/release/meetpoint}")
pictures=${PICTURES:-512}
rounds=${ROUNDS:-5}
what=${1:-all}

netns_possible || { echo "SKIP: $netns_reason"; exit 0; }
folder=$(mktemp -d)
trap 'netns_down; rm -rf "$folder"' EXIT

# Cores: the agent has the last one, the host all others; one core is shared.
cores=$(nproc)
agent_core=$((cores - 1))
host_cores=0
[ "$cores" -le 2 ] || host_cores="0-$((cores - 2))"

[ "$what" = all ] || [ "$what" = --verify ] || { echo "unknown option $what" >&2; exit 2; }

netns_up agent host
agent=$(netns_address agent)
cd "$folder"
# First, because it needs a program with the feature `tls`.
"$program" device keys keys --server "$agent" --client client >keys.log
"$program" demo --pictures "$pictures" --keep made >demo.log 2>&1 || { cat demo.log >&2; exit 1; }
mkdir copy
cp -r made/photos.set copy/photos.set

cat >job.toml <<'JOB'
dataset = "made/photos.set"
batch_size = 16
seed = 7
strategy = "host-only"
workers = 1
stall_timeout = "10s"

[[recipe.operation]]
name = "decode"

[[recipe.operation]]
name = "random_resized_crop"
size = 224

[[recipe.operation]]
name = "random_horizontal_flip"
JOB

netns_exec agent taskset -c "$agent_core" "$program" agent --listen "tcp://$agent:7000" \
    --root photos=copy --ca keys/ca.pem --cert keys/server.pem --key keys/server.key \
    --threads 1 --metrics "tcp://$agent:9464" >agent.log 2>&1 &
for _ in $(seq 100); do
    grep -q "^listening" agent.log && break
    sleep 0.1
done
grep -q "^listening" agent.log || { cat agent.log >&2; exit 1; }

# Runs a strategy and prints the JSON report.
run() {
    netns_exec host taskset -c "$host_cores" "$program" run job.toml --json --strategy "$1" \
        --device "tcp://$agent:7000" --device-keys keys "${@:2}"
}

echo "== every batch under every strategy equals the host alone's"
run all --epochs 2 >report.json
python3 - <<'PYTHON'
import json

report = json.load(open("report.json"))
assert len(report["runs"]) >= 8, len(report["runs"])
for run in report["runs"]:
    levels = {level["level"]: level["verdict"] for level in run["levels"]}
    device, host = run["totals"]["device_batches"], run["totals"]["host_batches"]
    print(f"{run['strategy']:14} host {host:4} agent {device:4} batches,", levels)
    assert all(levels[level] == "verified" for level in ["C0", "C1", "C2"]), run["levels"]
    assert "failed" not in levels.values(), run["levels"]
PYTHON
[ "$what" != --verify ] || exit 0

# Prints medians of epochs: of the host alone, of a strategy, and of the ratio in each round.
measure() {
    local strategy="$1" round
    rm -f rounds.jsonl
    for round in $(seq "$rounds"); do
        # The order alternates, so that a slow change of the machine affects both.
        set -- host-only "$strategy"
        [ $((round % 2)) = 1 ] || set -- "$strategy" host-only
        for name in "$@"; do
            run "$name" --epochs 4 --no-verify | python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
print(json.dumps({"strategy": run["strategy"], "form": run["prediction"]["seconds"],
    "seconds": [epoch["seconds"] for epoch in run["epochs"]],
    "device": run["totals"]["device_batches"]}))' >>rounds.jsonl
        done
    done
    STRATEGY="$strategy" python3 - <<'PYTHON'
import json, os
from statistics import median

name = os.environ["STRATEGY"]
rounds = [json.loads(line) for line in open("rounds.jsonl")]
# The first epoch measures the speeds that the others use.
later = {
    key: [sum(it["seconds"][1:]) / 3 for it in rounds if it["strategy"] == key]
    for key in ["host-only", name]
}
ratios = [one / alone for one, alone in zip(later[name], later["host-only"])]
print(f"host-only {median(later['host-only']):.3f} s, "
      f"{name} {median(later[name]):.3f} s per epoch, "
      f"ratio {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
own = [it for it in rounds if it["strategy"] == name]
forms = [it["form"] / sum(it["seconds"]) for it in own if it["form"]]
if forms:
    print(f"{name}: closed form / measured {median(forms):.3f} "
          f"({min(forms):.3f} to {max(forms):.3f})")
print(f"{name}: {median(it['device'] for it in own):.0f} batches by the agent in 4 epochs")
PYTHON
}

echo "== load: $(cut -d' ' -f1-3 /proc/loadavg), medians of $rounds rounds"
echo "== link without limit"
measure mte
if netns_rate_possible; then
    echo "== 100 Mbit/s"
    netns_rate agent 100mbit
    measure auto
else
    echo "SKIP: $netns_reason"
fi
echo "== load: $(cut -d' ' -f1-3 /proc/loadavg)"
netns_exec host python3 -c "
import urllib.request
text = urllib.request.urlopen('http://$agent:9464/metrics').read().decode()
print(*[line for line in text.splitlines() if 'client=' in line], sep='\n')"
