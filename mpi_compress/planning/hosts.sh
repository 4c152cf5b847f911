#!/bin/bash
# up N: network namespaces h0 … h(N-1), each with an interface eth0, 10.77.0.10 …, whose other end emulation.py holds; down N.
set -eu
for ((i = 0; i < $2; i++)); do
    if [ "$1" = down ]; then
        ip netns del h$i || true
        rm -rf /etc/netns/h$i
        continue
    fi
    ip netns add h$i
    mkdir -p /etc/netns/h$i
    { echo 127.0.0.1 localhost; for ((j = 0; j < $2; j++)); do echo 10.77.0.$((10 + j)) h$j; done; } > /etc/netns/h$i/hosts
    ip link set cable$i netns h$i name eth0
    ip -n h$i link set eth0 address 02:00:00:00:00:$(printf %02x $i) mtu 1500
    ip -n h$i addr add 10.77.0.$((10 + i))/24 dev eth0
    ip -n h$i link set lo up
    ip -n h$i link set eth0 up
    ip netns exec h$i sysctl -qw net.ipv4.tcp_congestion_control=reno    # BBR would pace short messages
done
