-- SPDX-License-Identifier: MIT
-- Loads the JSON lines in the variable `file`, unless their recording is there already.
CREATE OR REPLACE TEMP TABLE lines AS
SELECT * FROM read_json(getvariable('file'), format = 'newline_delimited', columns = {
  type: 'VARCHAR', host: 'VARCHAR', start: 'UBIGINT', start_realtime: 'UBIGINT', label: 'VARCHAR', ts: 'UBIGINT',
  pid: 'INTEGER', comm: 'VARCHAR', domain: 'INTEGER', name: 'VARCHAR', kind: 'VARCHAR', action: 'VARCHAR',
  value: 'HUGEINT', words: 'UBIGINT', records: 'UBIGINT', reason: 'VARCHAR'});
-- A recording without a date counts from the start of the host, as in csv.
CREATE OR REPLACE TEMP TABLE run AS
SELECT host, label, start, CASE start_realtime WHEN 0 THEN start ELSE start_realtime END::BIGINT AS run
FROM lines WHERE type = 'header';
INSERT INTO rtev_events BY NAME
SELECT *, make_timestamp_ns(time_ns) AS time FROM (
  SELECT run.host, run.run, coalesce(run.label, '') AS label,
    least(line.ts::HUGEINT - run.start + run.run, 9223372036854775806)::BIGINT AS time_ns,
    line.type, line.pid, line.comm, line.domain, line.name, line.kind, line.action, line.value,
    coalesce(line.words, 0) + coalesce(line.records, 0) AS lost, line.reason
  FROM lines AS line CROSS JOIN run
  WHERE line.type NOT IN ('header', 'summary'))
WHERE (host, run) NOT IN (SELECT DISTINCT (host, run) FROM rtev_events);
