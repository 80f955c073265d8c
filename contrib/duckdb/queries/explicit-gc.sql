-- SPDX-License-Identifier: MIT
-- Who calls the GC: functions of Gc by service, how often, and how long the pauses were.
SELECT service, name, count(DISTINCT host) AS hosts,
  coalesce(sum(value) FILTER (kind = 'figure'), 0)::BIGINT AS calls, count(*) FILTER (kind = 'pause') AS pauses,
  coalesce(sum(duration_ns) FILTER (kind = 'pause'), 0)::BIGINT AS total_ns,
  coalesce(max(duration_ns) FILTER (kind = 'pause'), 0) AS max_ns
FROM rtev
WHERE name LIKE 'explicit_gc_%' AND (kind = 'figure' OR kind = 'pause' AND state = 'done')
GROUP BY service, name
ORDER BY total_ns DESC;
