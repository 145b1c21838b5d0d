set -e
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
  echo "$POSTGRES_PASSWORD" >/tmp/password
  initdb -D $data -U "$POSTGRES_USER" --auth-host=scram-sha-256 --pwfile=/tmp/password $POSTGRES_INITDB_ARGS
  echo "host all all all scram-sha-256" >>$data/pg_hba.conf
  postgres --single -D $data template1 <<SQL
CREATE DATABASE "$POSTGRES_DB"
SQL
fi
exec postgres -D $data -c listen_addresses='*'
