-- SPDX-License-Identifier: MIT
-- Pauses of two releases side by side, by service: `before` and `after` are releases: labels (rtev-bpf convert
-- --label), or versions of services. Services with fewer than 1,000 pauses on a side are left out: their 99th
-- percentile is chance.
WITH pauses AS (
  SELECT service, duration_ns, release = 'before' AS old, release = 'after' AS new
  FROM rtev
  WHERE kind = 'pause' AND state = 'done' AND release IN ('before', 'after'))
SELECT service, count(*) FILTER (old) AS old_pauses, count(*) FILTER (new) AS new_pauses,
  quantile_disc(duration_ns, 0.5) FILTER (old) AS old_p50_ns,
  quantile_disc(duration_ns, 0.5) FILTER (new) AS new_p50_ns,
  quantile_disc(duration_ns, 0.99) FILTER (old) AS old_p99_ns,
  quantile_disc(duration_ns, 0.99) FILTER (new) AS new_p99_ns,
  new_p50_ns / old_p50_ns AS p50_ratio, new_p99_ns / old_p99_ns AS p99_ratio
FROM pauses
GROUP BY service
HAVING old_pauses >= 1000 AND new_pauses >= 1000
ORDER BY p99_ratio DESC;
