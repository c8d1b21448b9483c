#!/bin/busybox sh
# The first process of the guest that scripts/nvme-of-guest boots: exports the drive with
# nvmet over TCP, connects to it, reads the dataset, and turns the machine off.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /mnt
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
ip link set lo up
for module in configfs nvme-fabrics nvme-tcp nvmet nvmet-tcp; do
    insmod "/$module.ko" || echo "failed to load $module"
done
echo "guest $(uname -m) $(uname -r), $(cat /sys/class/nvme/nvme0/model)"

# The storage server.
name=nqn.2026-01.org.example:photos
mount -t configfs configfs /sys/kernel/config
cd /sys/kernel/config/nvmet || poweroff -f
mkdir "subsystems/$name"
echo 1 >"subsystems/$name/attr_allow_any_host"
mkdir "subsystems/$name/namespaces/1"
printf /dev/nvme0n1 >"subsystems/$name/namespaces/1/device_path"
echo 1 >"subsystems/$name/namespaces/1/enable"
mkdir ports/1
echo tcp >ports/1/addr_trtype
echo ipv4 >ports/1/addr_adrfam
echo 127.0.0.1 >ports/1/addr_traddr
echo 4420 >ports/1/addr_trsvcid
ln -s "/sys/kernel/config/nvmet/subsystems/$name" "ports/1/subsystems/$name"

# The host: what `nvme connect` writes.
echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$name" >/dev/nvme-fabrics
tries=0
while [ ! -e /dev/nvme1n1 ] && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
echo "guest: connected, $(cat /sys/class/nvme/nvme1/transport) to $(cat /sys/class/nvme/nvme1/address)"
run="/ld-linux-x86-64.so.2 --library-path /"
cd /mnt || poweroff -f
mount -t ext4 -o ro,noload /dev/nvme1n1 /mnt || echo "failed to mount the drive"
cd /mnt || poweroff -f
echo "guest: sum $(find photos.set -type f | sort | xargs cat | sha256sum | cut -d ' ' -f 1)"
$run /meetpoint verify photos.set && echo "guest: the dataset is undamaged"
cd /
umount /mnt
poweroff -f
