-- SPDX-License-Identifier: MIT
-- Who calls the GC: functions of Gc by service, how often, and how long the pauses were.
SELECT service, name, uniqExact(host) AS hosts, sumIf(value, kind = 'figure') AS calls,
  countIf(kind = 'pause') AS pauses, sumIf(duration_ns, kind = 'pause') AS total_ns,
  maxIf(duration_ns, kind = 'pause') AS max_ns
FROM rtev
WHERE name LIKE 'explicit_gc_%' AND (kind = 'figure' OR kind = 'pause' AND state = 'done')
GROUP BY service, name
ORDER BY total_ns DESC
