#!/bin/busybox sh
# The first process of the guest that scripts/qemu-device boots: mounts the drive, starts the agent
# from it, and answers the questions that come over the serial console.
#
# A question is `NUMBER WORD ARGUMENT…`, its answer `answer NUMBER TEXT`.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
stty -F /dev/console -echo
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover \
    net_failover virtio_net; do
    insmod "/modules/$module.ko" || echo "failed to load $module"
done
# Certificates are valid at the host's time.
for word in $(cat /proc/cmdline); do
    case "$word" in
        time=*) date -s "@${word#time=}" >/dev/null ;;
    esac
done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
mkdir -p /drive
# Read-only, and without replaying a journal: the host made this file system and does not mount it.
mount -t ext4 -o ro,noload /dev/nvme0n1 /drive || echo "failed to mount the drive"
echo "guest $(uname -m) $(uname -r), $(nproc) cores"

/drive/meetpoint device serve --listen tcp://10.0.2.15:7000 --root photos=/drive/datasets \
    --ca /drive/keys/ca.pem --cert /drive/keys/server.pem --key /drive/keys/server.key \
    --crl /drive/keys/crl.pem --allow-shared &

while read -r number word first second; do
    case "$word" in
        # Bytes that have left through the network card.
        sent) text=$(cat /sys/class/net/eth0/statistics/tx_bytes) ;;
        # SHA-256 of SECOND blocks of 4 KiB of the drive from block FIRST on, past every cache.
        sum)
            text=$(dd if=/dev/nvme0n1 bs=4096 skip="$first" count="$second" iflag=direct \
                status=none | sha256sum | cut -d ' ' -f 1)
            ;;
        # The same, as the page cache has it.
        cached)
            text=$(dd if=/dev/nvme0n1 bs=4096 skip="$first" count="$second" status=none |
                sha256sum | cut -d ' ' -f 1)
            ;;
        # Forgets what the page cache has.
        drop)
            sync
            echo 3 >/proc/sys/vm/drop_caches
            text=dropped
            ;;
        # Writes SECOND blocks of random bytes from block FIRST on, durably.
        write)
            dd if=/dev/urandom of=/tmp/blocks bs=4096 count="$second" status=none
            dd if=/tmp/blocks of=/dev/nvme0n1 bs=4096 seek="$first" oflag=direct \
                conv=notrunc,fsync status=none
            text=$(sha256sum </tmp/blocks | cut -d ' ' -f 1)
            ;;
        *) text="unknown word $word" ;;
    esac
    echo "answer $number $text"
done
