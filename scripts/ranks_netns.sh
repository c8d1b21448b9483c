#!/usr/bin/env bash
# Trains with 4, then 2, then 3 ranks on two hosts, which are network namespaces of this machine: a
# rank is killed in the first phase, and the link of a host is cut in the second one. By hand.
#
#     scripts/ranks_netns.sh [PYTHON]     # one with meetpoint installed, by default python3
#
# With WITH_TORCH=1 a fourth part starts the ranks with torchrun on both hosts, which needs torch.
# Needs root and namespaces; prints SKIP and the reason where they are not allowed.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/netns.sh

python="${1:-python3}"
netns_possible || { echo "SKIP: $netns_reason"; exit 0; }
work="$(mktemp -d /tmp/mpranks.XXXXXX)"
trap 'netns_down; rm -rf "$work"' EXIT
netns_up one two

export MEETPOINT_RENDEZVOUS_TOKEN_FILE="$work/token" SILENCE=3 GO="$work/go"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/token"
"$python" - "$work" <<'PYTHON'
import sys
from pathlib import Path

import meetpoint

sys.path.insert(0, "python/examples")
from quickstart import make_pictures

folder = Path(sys.argv[1])
make_pictures(folder / "pictures", 66)
meetpoint.pack(folder / "pictures", folder / "set")
PYTHON

# start PHASE HOST RANK RANKS STEPS [STATE…]: a rank in the background; with DIES=1 it is killed.
start() {
    local phase="$1" host="$2" rank="$3" ranks="$4" steps="$5"
    shift 5
    netns_exec "$host" env RANK="$rank" WORLD_SIZE="$ranks" MEETPOINT_RENDEZVOUS_ATTEMPT="$phase" \
        MEETPOINT_RENDEZVOUS="tcp://$(netns_address one):7300" \
        "$python" scripts/ranks/rank.py "$work/set" "$work/$phase-$rank" "$steps" "$@" &
    processes+=("$!")
}

# Waits until these files exist, at most two minutes.
appear() {
    local path
    for path in "$@"; do
        for _ in $(seq 1200); do
            [ ! -e "$path" ] || continue 2
            sleep 0.1
        done
        echo "$path did not appear" >&2
        return 1
    done
}

# Waits for all ranks, which may have failed.
collect() {
    local process
    for process in "${processes[@]}"; do wait "$process" || true; done
    processes=()
}

# Each output is an error.
errors() {
    "$python" - "$@" <<'PYTHON'
import json
import sys
from pathlib import Path

for path in map(Path, sys.argv[1:]):
    said = json.loads(path.read_text())
    print(f"   rank {path.name[2:]} after {said['seconds']} s: {said['error']}")
PYTHON
}

processes=()
echo "1. four ranks on two hosts; rank 3 is killed after two steps"
start 1 one 0 4 2
start 1 one 1 4 2
start 1 two 2 4 2
DIES=1 start 1 two 3 4 2
appear "$work"/1-{0,1,2,3}
touch "$GO"
collect
errors "$work"/1-{0,1,2}

echo "2. two ranks resume; after three steps the link of host two is cut (silence limit $SILENCE s)"
rm "$GO"
start 2 one 0 2 3 "$work"/1-{0,1,2,3}
start 2 two 1 2 3 "$work"/1-{0,1,2,3}
appear "$work"/2-{0,1}
netns_cut two
touch "$GO"
collect
netns_mend two
errors "$work"/2-{0,1}

echo "3. three ranks resume and finish the epoch"
start 3 one 0 3 0 "$work"/2-{0,1}
start 3 two 1 3 0 "$work"/2-{0,1}
start 3 two 2 3 0 "$work"/2-{0,1}
collect
"$python" scripts/ranks/check.py "$work/set" "$work"/1-{0,1,2,3} "$work"/2-{0,1} "$work"/3-{0,1,2}

if [ "${WITH_TORCH:-0}" = 1 ]; then
    echo "4. the same ranks under torchrun on both hosts, without an address or a token of ours"
    unset MEETPOINT_RENDEZVOUS_TOKEN_FILE GO
    for node in 0 1; do
        host=$([ "$node" = 0 ] && echo one || echo two)
        netns_exec "$host" env TORCH=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 \
            "$python" -m torch.distributed.run --nnodes 2 --nproc-per-node 2 --node-rank "$node" \
            --master-addr "$(netns_address one)" --master-port 7301 --no-python \
            bash -c 'exec "$0" scripts/ranks/rank.py "$1/set" "$1/4-$RANK" 0' \
            "$python" "$work" &
        processes+=("$!")
    done
    collect
    "$python" scripts/ranks/check.py "$work/set" "$work"/4-{0,1,2,3}
fi
echo "all as expected"
