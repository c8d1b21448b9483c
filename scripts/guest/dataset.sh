#!/bin/busybox sh
# The first process of a guest that scripts/nvme-guest boots: serves a dataset by its extents on NVMe
# namespaces, runs jobs with this device, removes a drive meanwhile, and turns the machine off.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /mnt
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
ip link set lo up
cd /tmp || poweroff -f
echo "guest $(uname -m) $(uname -r), $(cat /sys/class/nvme/nvme0/model)"
meetpoint="/ld-linux-x86-64.so.2 --library-path / /meetpoint"

give_up() {
    echo "guest: FAILED: $*"
    cat /tmp/*.err
    poweroff -f
}

# The end with the file system: it maps the dataset. The host has a copy.
mount -t ext4 -o ro,noload /dev/nvme0n1 /mnt || give_up "the drive cannot be mounted"
cp -r /mnt/photos.set photos.set
$meetpoint dataset extents /mnt/photos.set --to extents.json 2>map.err || give_up "not mapped"
umount /mnt

write_job() {
    cat >job.toml <<JOB
dataset = "photos.set"
batch_size = 4
seed = 7
workers = 1
stall_timeout = "120s"

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 64

[device]
kind = "connect"
socket = "/tmp/socket"
JOB
}
write_job

# serve NAMESPACE: starts a device, and waits until it listens.
serve() {
    rm -f socket serve.out
    $meetpoint device serve --socket socket --extents extents.json --block "$1" --allow-shared \
        >serve.out 2>serve.err &
    served=$!
    until grep -q '^listening' serve.out; do
        kill -0 "$served" || give_up "the device on $1 has ended"
        sleep 0.2
    done
    # On a busy machine, the first answer of an emulated process can take longer than a run waits.
    until $meetpoint device probe --socket socket >probe.out 2>&1; do
        kill -0 "$served" || give_up "the device on $1 has ended"
    done
    grep -q 'engine nvme' serve.out serve.err || give_up "the device on $1 uses another engine"
    echo "guest: serving from $1"
}

# send_report NUMBER: prints a report for the machine outside.
send_report() {
    gzip -c report.json | base64 -w 1000 | sed "s/^/report $1 /"
}

number=0
for namespace in /dev/ng0n1 /dev/ng1n1; do
    $meetpoint dataset extents extents.json --verify "$namespace" --json >verify.json \
        2>verify.err || give_up "the extents on $namespace differ"
    grep -q '"engine": "nvme"' verify.json || give_up "$namespace was verified by another engine"
    echo "guest: every extent on $namespace matches its checksum"
    serve "$namespace"
    $meetpoint run job.toml --strategy device-only,wrr --json >report.json 2>run.err ||
        give_up "the run with $namespace failed"
    send_report "$number"
    number=$((number + 1))
    kill "$served"
    wait "$served"
done

# What is no namespace with these extents is refused before anything is served.
for block in /dev/nvme0 /dev/null /dev/ng0n1@0+1048576 /dev/ng0n1@512+67108352 /dev/ng7n1; do
    if $meetpoint device serve --socket refused --extents extents.json --block "$block" \
        --allow-shared >refused.out 2>refused.err; then
        give_up "$block was served"
    fi
    echo "guest: refused: $(tr '\n' ' ' <refused.err)"
done

# The drive vanishes in the middle of an epoch.
cat >>job.toml <<JOB

[accelerator]
kind = "emulated"
step = "500ms"
JOB
serve /dev/ng1n1
$meetpoint run job.toml --strategy device-only --epochs 2 --ledger ledger --json >report.json \
    2>run.err &
running=$!
until [ "$(wc -l <ledger 2>/dev/null || echo 0)" -ge 4 ]; do
    kill -0 "$running" || give_up "the run ended before the drive was removed"
    sleep 0.1
done
echo 1 >/sys/class/nvme/nvme1/device/remove
[ ! -e /dev/ng1n1 ] || give_up "the drive is still there"
echo "guest: removed the drive"
wait "$running" || give_up "the run failed when the drive vanished"
send_report 2
kill "$served"
wait "$served"
echo "guest: everything was served"
poweroff -f
