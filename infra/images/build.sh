#!/bin/sh
# Makes the image temper-tasks:bookworm, Debian 12 with the tools that task packs expect, without any registry:
# debootstrap builds the root, which is kept as a tar outside the checkout. Does nothing if the image exists, unless --force.
# Needs root, debootstrap and a Docker daemon. DEBIAN_MIRROR names another mirror.
set -eu

image=temper-tasks:bookworm
packages=git,ca-certificates,python3,python3-pytest,nodejs,bats,gawk,bc,jq,patch,procps
cache=${XDG_CACHE_HOME:-$HOME/.cache}/temper/images
# A different list of packages gives a different tar.
key=$(printf '%s' "$image $packages" | sha256sum | cut -c1-12)
tar=$cache/bookworm-$key.tar

say() { echo "image $image: $*" >&2; }
fail() { say "$*"; exit 1; }

command -v docker >/dev/null || fail 'the docker client is missing; install docker.io or docker-ce'
docker version >/dev/null 2>&1 || fail 'the Docker daemon does not answer; start it (dockerd) and check your permission'

if [ "${1-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then
  say 'exists already'
  exit 0
fi

if [ ! -s "$tar" ]; then
  [ "$(id -u)" = 0 ] || fail "debootstrap needs root, and this is uid $(id -u); run it with sudo, or copy $tar from another machine"
  command -v debootstrap >/dev/null || fail 'debootstrap is missing; apt-get install debootstrap'
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/root.XXXXXX")
  trap 'rm -rf "$work" "$tar.new"' EXIT INT TERM
  say 'building the root with debootstrap, about three minutes'
  debootstrap --variant=minbase --include="$packages" bookworm "$work/root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 5
    say "$(tail -n 1 "$work/log" | cut -c1-100)"
  done
  wait "$pid" || { tail -n 20 "$work/log" >&2; fail 'debootstrap failed; see the log above'; }
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
  tar -C "$work/root" -cf "$tar.new" .
  mv "$tar.new" "$tar"
fi

say 'importing'
docker import --change 'CMD ["bash"]' "$tar" "$image" >/dev/null
say "ready, $(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }')"
