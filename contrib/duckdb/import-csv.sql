-- SPDX-License-Identifier: MIT
-- Loads the table in the variable `file`, unless its recording is there already.
CREATE OR REPLACE TEMP TABLE staged AS
SELECT * FROM read_csv(getvariable('file'), header = true, auto_detect = false, delim = ',', quote = '"', escape = '"',
  new_line = '\n', nullstr = '',
  force_not_null = ['kind', 'host', 'label', 'comm', 'exe', 'service_name', 'service_version', 'ocaml', 'name', 'unit',
    'state'], columns = {
    kind: 'VARCHAR', host: 'VARCHAR', run: 'BIGINT', label: 'VARCHAR', time_ns: 'BIGINT', duration_ns: 'BIGINT',
    pid: 'INTEGER', start_ticks: 'BIGINT', comm: 'VARCHAR', exe: 'VARCHAR',
    service_name: 'VARCHAR', service_version: 'VARCHAR', ocaml: 'VARCHAR', domain: 'INTEGER',
    name: 'VARCHAR', value: 'BIGINT', unit: 'VARCHAR', state: 'VARCHAR', on_cpu_ns: 'BIGINT', runnable_ns: 'BIGINT',
    blocked_ns: 'BIGINT'});
SELECT error(getvariable('file') || ' is incomplete: it has no row "run"')
WHERE NOT EXISTS (SELECT * FROM staged WHERE kind = 'run');
INSERT INTO rtev BY NAME
SELECT *, rtev_service(service_name, exe, comm) AS service,
  CASE WHEN label = '' THEN service_version ELSE label END AS release,
  make_timestamp_ns(least(time_ns, 9223372036854775806)) AS time
FROM staged
WHERE (host, run) NOT IN (SELECT (host, run) FROM rtev WHERE kind = 'run');
