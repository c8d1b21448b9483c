#!/usr/bin/env bash
# Trains with 4, then 2, then 3 ranks on two hosts, which are network namespaces of this machine: a
# rank is killed in the first phase, and the link of a host is cut in the second one. By hand.
#
#     scripts/ranks_netns.sh [PYTHON]     # one with meetpoint installed, by default python3
#
# With WITH_TORCH=1, torchrun starts the ranks on both hosts too.
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

# start PHASE HOST RANK RANKS STEPS [STATE…]: a rank in the background; with DIES=RANK that rank is killed.
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
    print(f"   rank {path.name[-1]} after {said['seconds']} s: {said['error']}")
PYTHON
}

check() { "$python" scripts/ranks/check.py "$work/set" "$@"; }

processes=()
echo "1. four ranks on two hosts; rank 3 is killed after two steps"
start 1 one 0 4 2
start 1 one 1 4 2
start 1 two 2 4 2
DIES=3 start 1 two 3 4 2
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
check "$work"/1-{0,1,2,3} "$work"/2-{0,1} "$work"/3-{0,1,2}

# torch_ranks RUN RANKS_OF_TWO STEPS [STATE…]: two ranks on host one, some on host two, by torchrun;
# with the options ELASTIC, it restarts all ranks once.
torch_ranks() {
    local run="$1" of_two="$2" host number=0 count=2 options
    shift 2
    for host in one two; do
        options=(--max-restarts 0 --node-rank "$number" --master-addr "$(netns_address one)"
            --master-port "730$run")
        if [ -n "${ELASTIC:-}" ]; then
            read -ra options <<<"$ELASTIC --max-restarts 1 --local-addr $(netns_address "$host")"
            options+=(--rdzv-conf "is_host=$([ "$host" = one ] && echo true || echo false)")
        fi
        netns_exec "$host" env TORCH="$run" OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 \
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
            "$python" -m torch.distributed.run --nnodes 2 --nproc-per-node "$count" \
            "${options[@]}" scripts/ranks/rank.py "$work/set" "$work/torch-$run" "$@" \
            2>>"$work/torch.log" &
        processes+=("$!")
        number=1 count="$of_two"
    done
    collect
}

if [ "${WITH_TORCH:-0}" = 1 ]; then
    echo "4. four ranks under torchrun on both hosts, without an address or a token of ours"
    unset MEETPOINT_RENDEZVOUS_TOKEN_FILE GO
    torch_ranks 1 2 0
    check "$work"/torch-1-0-{0,1,2,3}

    echo "5. the same; rank 3 is killed after two steps"
    DIES=3 torch_ranks 2 2 2
    # torchrun may end rank 2, which is on the same host, before it can report.
    errors "$work"/torch-2-0-{0,1}
    echo "6. torchrun is started again, with three ranks"
    torch_ranks 3 1 0 "$work"/torch-2-0-{0,1,2,3}
    check "$work"/torch-2-0-{0,1,2,3} "$work"/torch-3-0-{0,1,2}

    echo "7. as 5, and torchrun restarts the ranks itself"
    elastic="--rdzv-backend c10d --rdzv-endpoint $(netns_address one):7310 --rdzv-id ranks"
    DIES=3 ELASTIC="$elastic" torch_ranks 4 2 2
    check "$work"/torch-4-0-{0,1,2,3} "$work"/torch-4-1-{0,1,2,3}
fi
echo "all as expected"
