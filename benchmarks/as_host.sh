#!/bin/bash
# HOST COMMAND…: what ssh would do there. A host of its own: network, name, and no memory shared with the others.
while [[ $1 == -* ]]; do case $1 in -l|-p|-o) shift 2;; *) shift;; esac; done
host=$1; shift
exec ip netns exec "$host" unshare --uts --ipc --mount --propagation private \
  bash -c "hostname $host; mount -t tmpfs tmpfs /dev/shm; $*"
