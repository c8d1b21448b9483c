# shellcheck shell=bash
# Network namespaces for tests of several hosts on one machine; sourced, not run.
#
#     source scripts/netns.sh
#     netns_possible || { echo "SKIP: $netns_reason"; exit 0; }
#     trap netns_down EXIT
#     netns_up agent host            # two hosts on one network
#     netns_exec agent COMMAND…      # runs a command on a host; its status is that of the command
#     netns_address agent            # prints the host's address
#     netns_rate agent 100mbit       # limits both directions; `unlimited` removes the limit
#     netns_cut agent                # silence: no packet arrives or leaves, and nobody is told
#     netns_mend agent
#     netns_down                     # ends what still runs on the hosts, and removes them
#
# The hosts are connected by a bridge in a namespace of its own, so that neither the machine's
# interfaces nor its routes change, and nothing leaves the machine. It needs root (or `unshare -r
# -n -m`), `ip` and, for rates, `tc`. Names of namespaces contain the process id, so that several
# scripts can run at the same time. A name of a host has letters and digits, at most 8.

netns_prefix="mp$$"
netns_hub="$netns_prefix-hub"
netns_subnet="10.213.77"
netns_hosts=()
# Why namespaces are not possible; set by netns_possible.
netns_reason=""

# Whether this process may create namespaces and connect them.
netns_possible() {
    local probe="$netns_prefix-probe" error
    if ! command -v ip >/dev/null; then
        netns_reason="there is no program \`ip\` (Debian: iproute2)"
        return 1
    fi
    if ! error=$(ip netns add "$probe" 2>&1); then
        netns_reason="namespaces are not allowed: $error"
        return 1
    fi
    if ! error=$(ip -n "$probe" link add netns-a type veth peer name netns-b 2>&1) ||
        ! error=$(ip -n "$probe" link add netns-c type bridge 2>&1); then
        netns_reason="the kernel has no veth or bridge: $error"
        ip netns del "$probe"
        return 1
    fi
    ip netns del "$probe"
}

# Whether rates can be limited; sets netns_reason otherwise.
netns_rate_possible() {
    local probe="$netns_prefix-probe" error
    if ! command -v tc >/dev/null; then
        netns_reason="there is no program \`tc\` (Debian: iproute2)"
        return 1
    fi
    ip netns add "$probe"
    ip -n "$probe" link add netns-a type veth peer name netns-b
    error=$(ip netns exec "$probe" tc qdisc add dev netns-a root tbf rate 1mbit burst 32kb \
        latency 50ms 2>&1) || true
    ip netns del "$probe"
    netns_reason="the kernel has no token bucket filter: $error"
    [ -z "$error" ]
}

netns_up() {
    local name number=0
    ip netns add "$netns_hub"
    ip -n "$netns_hub" link add bridge type bridge
    ip -n "$netns_hub" link set bridge up
    for name in "$@"; do
        number=$((number + 1))
        local host="$netns_prefix-$name"
        netns_hosts+=("$name")
        ip netns add "$host"
        ip -n "$netns_hub" link add "$name" type veth peer name eth0 netns "$host"
        ip -n "$netns_hub" link set "$name" master bridge up
        ip -n "$host" link set lo up
        ip -n "$host" address add "$netns_subnet.$number/24" dev eth0
        ip -n "$host" link set eth0 up
    done
}

netns_exec() {
    local name="$1"
    shift
    ip netns exec "$netns_prefix-$name" "$@"
}

netns_address() {
    local number
    for number in "${!netns_hosts[@]}"; do
        if [ "${netns_hosts[$number]}" = "$1" ]; then
            echo "$netns_subnet.$((number + 1))"
            return
        fi
    done
    echo "there is no host $1" >&2
    return 1
}

netns_rate() {
    local name="$1" rate="$2" host
    ip netns exec "$netns_hub" tc qdisc del dev "$name" root 2>/dev/null || true
    netns_exec "$name" tc qdisc del dev eth0 root 2>/dev/null || true
    [ "$rate" != unlimited ] || return 0
    # A burst below the size of an offloaded segment, 64 KiB, would drop it.
    host=(root tbf rate "$rate" burst 256kb latency 100ms)
    ip netns exec "$netns_hub" tc qdisc add dev "$name" "${host[@]}"
    netns_exec "$name" tc qdisc add dev eth0 "${host[@]}"
}

# The port of the bridge drops everything; the host's interface stays up.
netns_cut() {
    ip netns exec "$netns_hub" bridge link set dev "$1" state 0
}

netns_mend() {
    ip netns exec "$netns_hub" bridge link set dev "$1" state 3
}

netns_down() {
    local name process
    for name in "${netns_hosts[@]}"; do
        for process in $(ip netns pids "$netns_prefix-$name" 2>/dev/null); do
            kill -9 "$process" 2>/dev/null || true
        done
        ip netns del "$netns_prefix-$name" 2>/dev/null || true
    done
    ip netns del "$netns_hub" 2>/dev/null || true
    netns_hosts=()
}
