#!/usr/bin/env bash
# Runs the tests of a Ray cluster of several nodes: a head and three nodes of one core each, which
# are network namespaces of this machine. Packs on one process, as shards and on the nodes, kills a
# node within a part, and kills agents while a loader uses them.
#
#     scripts/ray_cluster.sh [profile of the build: dev, the default, or release]
#     BENCH="benches/ray_pack.py --rounds 5" scripts/ray_cluster.sh release
#
# With BENCH, that program runs instead of the tests, with a head and two nodes, each bound to a
# core. RAY_PYTHON and MEETPOINT_WHEEL are those of scripts/ray_tests.sh. Needs root and namespaces;
# prints SKIP with the reason where they are not allowed, or if Ray cannot be installed. If
# RAY_PYTHON also has torch, two ranks of it are run.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/netns.sh
source scripts/netns.sh

netns_possible || { echo "SKIP: $netns_reason"; exit 0; }
# shellcheck source=scripts/ray_python.sh
source scripts/ray_python.sh "${1:-dev}"

# Paths of sockets have at most 107 characters, so Ray's folder has a short name.
work="$(mktemp -d /tmp/mpray.XXXXXX)"
trap 'netns_down; rm -rf "$work"' EXIT
nodes=(one two three)
[ -z "${BENCH:-}" ] || nodes=(one two)
netns_up head "${nodes[@]}"
RAY_ADDRESS="$(netns_address head):6379"
export RAY_ADDRESS MEETPOINT_NETNS="$netns_prefix" MEETPOINT_WORK="$work"
mkdir "$work/ray"
# The hosts have no route by which gloo (torch.distributed) could find its interface.
export GLOO_SOCKET_IFNAME=eth0
# Only clients with the token can run programs on the nodes.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$work/token"
(umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/token")

# node HOST CORES WORDS…: starts a node that ends with netns_down. All but the head have a
# temporary folder that no other node sees.
node() {
    local host="$1" cores="$2" private=(unshare --mount bash -c
        'mount -t tmpfs ray "$MEETPOINT_WORK/ray" && exec "$@"' bash)
    shift 2
    [ "$host" != head ] || private=()
    netns_exec "$host" "${private[@]}" taskset -c "$cores" "$python" -m ray.scripts.scripts start \
        --block --node-ip-address "$(netns_address "$host")" --temp-dir "$work/ray" \
        --object-store-memory 100000000 --disable-usage-stats "$@" >"$work/$host.log" 2>&1 &
}

cores=$(nproc)
all="0-$((cores - 1))"
begun=$SECONDS
node head "$all" --head --port 6379 --num-cpus 0 --include-dashboard false
for number in "${!nodes[@]}"; do
    of_node="$all" labels="storage=nvme"
    [ -z "${BENCH:-}" ] || of_node=$((number % cores))
    [ "${nodes[$number]}" != three ] || labels="storage=none"
    node "${nodes[$number]}" "$of_node" --address "$RAY_ADDRESS" --num-cpus 1 --labels "$labels"
done
netns_exec head "$python" - "$((1 + ${#nodes[@]}))" <<'PYTHON' || up=no
import sys
import time

import ray

deadline = time.monotonic() + 120
while True:
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
        break
    except ConnectionError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.5)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    assert time.monotonic() < deadline, "the nodes register"
    time.sleep(0.2)
PYTHON
[ -z "${up:-}" ] || { tail -n 20 "$work"/*.log; exit 1; }
echo "a head and ${#nodes[@]} nodes are up after $((SECONDS - begun)) s"

if [ -n "${BENCH:-}" ]; then
    read -ra words <<<"$BENCH"
    netns_exec head "$python" "${words[@]}"
    exit
fi
status=0
netns_exec head timeout 600 "$python" -m pytest -q -p no:cacheprovider -c python/pyproject.toml \
    --durations 0 --durations-min 0.1 --basetemp "$work/tests" python/tests_ray_cluster || status=$?
echo "the tests and the start of the cluster took $((SECONDS - begun)) s"
exit "$status"
