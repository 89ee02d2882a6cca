#!/bin/sh
# Makes the image of temper's own processes without any registry: Debian 12 by debootstrap, Node and npm from npm packages,
# and this checkout, which must have its npm packages. Everything else is as in the Dockerfile, whose last stage it uses.
# build.sh [IMAGE]      default: temper:VERSION, with the version of package.json
# Needs root, debootstrap, Node and a Docker daemon. DEBIAN_MIRROR names another mirror.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../../.." && pwd)
version=$(node -p 'require(process.argv[1]).version' "$checkout/package.json")
image=${1-temper:$version}
npm_version=11.21.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/temper/images

say() { echo "image $image: $*" >&2; }
fail() { say "$*"; exit 1; }
. "$here/../../images/debian-root.sh"

need_docker
packages=$(paste -sd, "$here/packages")
tar=$cache/temper-$(printf '%s' "$packages" | sha256sum | cut -c1-12).tar
debian_root "$tar" "$packages"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT INT TERM
say 'compiling the package'
(cd "$checkout" && npm run --silent build)
node "$here/assemble.mjs" "$checkout" "$context/assembled"

# As in the image of Node: the program, and npm, by which agents are installed.
mkdir -p "$context/local/bin" "$context/local/lib"
cp "$(node -p process.execPath)" "$context/local/bin/node"
npm install --silent --no-audit --no-fund --prefix "$context/npm" "npm@$npm_version"
mv "$context/npm/node_modules" "$context/local/lib/node_modules"
rm -rf "$context/local/lib/node_modules/.bin" "$context/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$context/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$context/local/bin/npx"

mkdir -p "$context/infra/deploy/image"
cp "$here/packages" "$here/healthy.mjs" "$context/infra/deploy/image/"
{
  echo 'FROM scratch'
  echo 'ADD debian.tar /'
  echo 'COPY local /usr/local'
  echo 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  # The last stage, without its FROM: the packages are in the root already, and what the first one makes in the context.
  awk '/^FROM/ { stages++; next } stages == 2' "$here/Dockerfile" | sed 's/--from=build \/assembled/assembled/'
} >"$context/Dockerfile"
ln "$tar" "$context/debian.tar" 2>/dev/null || cp "$tar" "$context/debian.tar"

say 'building the layers'
docker build --quiet --network none \
  --build-arg "VERSION=$version" \
  --build-arg "REVISION=$(git -C "$checkout" rev-parse HEAD 2>/dev/null || echo unknown)" \
  --tag "$image" "$context" >/dev/null
say "ready, $(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }')"
