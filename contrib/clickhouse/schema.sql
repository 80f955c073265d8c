-- SPDX-License-Identifier: MIT
-- Tables for recordings of many hosts: `rtev` for `-f csv`, `rtev_events` for `-f json`. docs/csv.md and docs/json.md
-- describe the columns. Null is what is unknown. For ClickHouse 18.16 and newer.

CREATE TABLE IF NOT EXISTS rtev (
  kind String,
  host String,
  run Int64,
  label String,
  time_ns Int64,
  duration_ns Nullable(Int64),
  pid Int32,
  start_ticks Int64,
  comm String,
  exe String,
  service_name String,
  service_version String,
  ocaml String,
  domain Int32,
  name String,
  value Nullable(Int64),
  unit String,
  state String,
  on_cpu_ns Nullable(Int64),
  runnable_ns Nullable(Int64),
  blocked_ns Nullable(Int64),
  -- What counts as a service: the name that it was given, else that of the program's file. Change it to your own rule,
  -- e.g. a part of the path.
  service String MATERIALIZED multiIf(service_name != '', service_name, exe = '', comm, extract(exe, '[^/]*$')),
  -- The label, or without one the version of the service.
  release String MATERIALIZED if(label = '', service_version, label),
  time DateTime MATERIALIZED toDateTime(intDiv(time_ns, 1000000000))
) ENGINE = MergeTree
-- Not by the times of events: those are whatever programs write.
PARTITION BY toYYYYMM(toDateTime(intDiv(run, 1000000000)))
ORDER BY (kind, service, host, run, time_ns);

-- A file on its way into `rtev`. Numbers that may be unknown are texts, as not all versions read them as null.
DROP TABLE IF EXISTS rtev_staged;
CREATE TABLE rtev_staged (
  kind String, host String, run Int64, label String, time_ns Int64, duration_ns String, pid Int32, start_ticks Int64,
  comm String, exe String, service_name String,
  service_version String, ocaml String, domain Int32, name String, value String, unit String, state String,
  on_cpu_ns String, runnable_ns String, blocked_ns String
) ENGINE = Log;

-- One event of the stream a row. Keys of JSON lines that have no column here are left out: add those that you need
-- here, in rtev_lines and in `import`.
CREATE TABLE IF NOT EXISTS rtev_events (
  host String,
  run Int64,
  label String,
  time_ns Int64,
  type String,
  pid Int32,
  comm String,
  domain Int32,
  name String,
  kind String,
  action String,
  value Int64,
  lost UInt64,
  reason String,
  time DateTime MATERIALIZED toDateTime(intDiv(time_ns, 1000000000))
) ENGINE = MergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(run, 1000000000)))
ORDER BY (type, host, run, time_ns);

-- The lines of a file on its way into `rtev_events`.
CREATE TABLE IF NOT EXISTS rtev_lines (
  type String,
  host String,
  start UInt64,
  start_realtime UInt64,
  label String,
  ts UInt64,
  pid Int32,
  comm String,
  domain Nullable(Int32),
  name Nullable(String),
  kind String,
  action String,
  value Int64,
  words UInt64,
  records UInt64,
  reason String
) ENGINE = Log;
