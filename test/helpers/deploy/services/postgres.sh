#!/bin/sh
# Does what the public image of PostgreSQL does at its start, as far as infra/deploy/compose.yaml asks for it.
set -eu

data=/var/lib/postgresql/data
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }

if [ ! -s "$data/PG_VERSION" ]; then
  mkdir -p "$data"
  chown postgres:postgres "$data"
  chmod 700 "$data"
  password=$(as_postgres mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
  as_postgres initdb --pgdata "$data" --username "$POSTGRES_USER" --pwfile "$password" --auth scram-sha-256 --no-instructions
  rm "$password"
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
fi
as_postgres mkdir -p /tmp/postgresql
exec setpriv --reuid postgres --regid postgres --clear-groups \
  postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp/postgresql
