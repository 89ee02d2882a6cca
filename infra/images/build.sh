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
. "$(dirname "$0")/debian-root.sh"

need_docker
if [ "${1-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then
  say 'exists already'
  exit 0
fi

debian_root "$tar" "$packages"

say 'importing'
docker import --change 'CMD ["bash"]' "$tar" "$image" >/dev/null
say "ready, $(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }')"
