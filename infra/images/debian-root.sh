# Sourced by the scripts that make an image without any registry; `say` and `fail` are theirs.

# Makes the tar of a Debian 12 root with the packages by debootstrap, unless it exists. DEBIAN_MIRROR names another mirror.
# debian_root TAR PACKAGE,PACKAGE…
debian_root() {
  root_tar=$1
  [ ! -s "$root_tar" ] || return 0
  [ "$(id -u)" = 0 ] || fail "debootstrap needs root, and this is uid $(id -u); run it with sudo, or copy $root_tar from another machine"
  command -v debootstrap >/dev/null || fail 'debootstrap is missing; apt-get install debootstrap'
  mkdir -p "$(dirname "$root_tar")"
  work=$(mktemp -d "$(dirname "$root_tar")/root.XXXXXX")
  trap 'rm -rf "$work" "$root_tar.new"' EXIT INT TERM
  say 'building the root with debootstrap, about three minutes'
  debootstrap --variant=minbase --include="$2" bookworm "$work/root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 5
    say "$(tail -n 1 "$work/log" | cut -c1-100)"
  done
  wait "$pid" || { tail -n 20 "$work/log" >&2; fail 'debootstrap failed; see the log above'; }
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
  rm -rf "$work"/root/usr/share/man/* "$work"/root/usr/share/info/* "$work"/root/usr/share/locale/*
  find "$work/root/usr/share/doc" -type f ! -name copyright -delete
  tar -C "$work/root" -cf "$root_tar.new" .
  mv "$root_tar.new" "$root_tar"
  rm -rf "$work"
  trap - EXIT INT TERM
}

# Ends the script unless a Docker daemon answers.
need_docker() {
  command -v docker >/dev/null || fail 'the docker client is missing; install docker.io or docker-ce'
  docker version >/dev/null 2>&1 || fail 'the Docker daemon does not answer; start it (dockerd) and check your permission'
}
