#!/bin/sh
# Makes the fleet's role and its database, once, in a server that is empty (docker-entrypoint-initdb.d). The role owns the
# database and has no other right. ATTUNE_DATABASE_PASSWORD is its password.
set -eu
: "${ATTUNE_DATABASE_PASSWORD:?is the password of the role attune}"
# psql reads the variable itself: an argument would show in ps.
psql -v ON_ERROR_STOP=1 -X -q --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\getenv password ATTUNE_DATABASE_PASSWORD
CREATE ROLE attune LOGIN PASSWORD :'password';
CREATE DATABASE attune OWNER attune;
REVOKE CONNECT ON DATABASE attune FROM PUBLIC;
SQL
