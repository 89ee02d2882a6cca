#!/bin/sh
# Makes one image that stands for the public images in infra/deploy/compose.yaml: PostgreSQL from Debian, and the programs
# of a directory: Temporal's server, its tools, and the S3 server.
# build.sh IMAGE PROGRAMS
set -eu

image=$1 programs=$2
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/temper/images

say() { echo "image $image: $*" >&2; }
fail() { say "$*"; exit 1; }
. "$here/../../../../infra/images/debian-root.sh"

need_docker
debian_root "$cache/services-postgresql.tar" postgresql
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT INT TERM
ln "$cache/services-postgresql.tar" "$context/debian.tar" 2>/dev/null ||
  cp "$cache/services-postgresql.tar" "$context/debian.tar"
cp -R "$programs" "$context/programs"
cp "$here/postgres.sh" "$context/"
cat >"$context/Dockerfile" <<'END'
FROM scratch
ADD debian.tar /
COPY programs /usr/local/bin
COPY postgres.sh /usr/local/bin/
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/15/bin
CMD ["postgres.sh"]
END
docker build --quiet --network none --tag "$image" "$context" >/dev/null
say ready
