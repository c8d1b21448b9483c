#!/bin/busybox sh
# The first process of the guest that scripts/nvme-guest boots: runs the contract of the storage
# engines on the drive, and turns the machine off.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
for word in $(cat /proc/cmdline); do
    case "$word" in
        seed=?*) export PROPTEST_RNG_SEED="${word#seed=}" ;;
    esac
done
echo "guest $(uname -m) $(uname -r), $(cat /sys/class/nvme/nvme0/model)"
export MEETPOINT_TEST_NVME_OVERWRITE=/dev/ng0n1
# One after the other: all tests use the same namespace.
if /contract --test-threads=1; then
    echo "guest: the contract holds"
fi
poweroff -f
