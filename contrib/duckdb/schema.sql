-- SPDX-License-Identifier: MIT
-- Tables for recordings of many hosts: `rtev` for `-f csv`, `rtev_events` for `-f json`. docs/csv.md and docs/json.md
-- describe the columns. Null is what is unknown.

-- What counts as a service: the name that it was given, else that of the program's file. Change it to your own rule, e.g.
-- a part of the path.
CREATE MACRO IF NOT EXISTS rtev_service(service_name, exe, comm) AS
  CASE WHEN service_name != '' THEN service_name WHEN exe = '' THEN comm ELSE regexp_extract(exe, '[^/]*$') END;

CREATE TABLE IF NOT EXISTS rtev (
  kind VARCHAR NOT NULL,
  host VARCHAR NOT NULL,
  run BIGINT NOT NULL,
  label VARCHAR NOT NULL,
  time_ns BIGINT NOT NULL,
  duration_ns BIGINT,
  pid INTEGER NOT NULL,
  start_ticks BIGINT NOT NULL,
  comm VARCHAR NOT NULL,
  exe VARCHAR NOT NULL,
  service_name VARCHAR NOT NULL,
  service_version VARCHAR NOT NULL,
  ocaml VARCHAR NOT NULL,
  domain INTEGER NOT NULL,
  name VARCHAR NOT NULL,
  value BIGINT,
  unit VARCHAR NOT NULL,
  state VARCHAR NOT NULL,
  on_cpu_ns BIGINT,
  runnable_ns BIGINT,
  blocked_ns BIGINT,
  service VARCHAR NOT NULL,
  release VARCHAR NOT NULL,  -- the label, or without one the version of the service
  time TIMESTAMP_NS NOT NULL
);

-- One event of the stream a row. Keys of JSON lines that have no column here are left out: add those that you need here
-- and in import-jsonl.sql.
CREATE TABLE IF NOT EXISTS rtev_events (
  host VARCHAR NOT NULL,
  run BIGINT NOT NULL,
  label VARCHAR NOT NULL,
  time_ns BIGINT NOT NULL,
  type VARCHAR NOT NULL,
  pid INTEGER,
  comm VARCHAR,
  domain INTEGER,
  name VARCHAR,
  kind VARCHAR,
  action VARCHAR,
  value HUGEINT,
  lost UBIGINT,
  reason VARCHAR,
  time TIMESTAMP_NS NOT NULL
);
