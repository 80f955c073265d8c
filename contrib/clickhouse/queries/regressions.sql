-- SPDX-License-Identifier: MIT
-- Pauses of two releases side by side, by service: `before` and `after` are releases: labels (rtev-bpf convert
-- --label), or versions of services. Services with fewer than 1,000 pauses on a side are left out: their 99th
-- percentile is chance.
WITH 'before' AS old, 'after' AS new
SELECT service, countIf(release = old) AS old_pauses, countIf(release = new) AS new_pauses,
  quantileExactIf(0.5)(duration_ns, release = old) AS old_p50_ns,
  quantileExactIf(0.5)(duration_ns, release = new) AS new_p50_ns,
  quantileExactIf(0.99)(duration_ns, release = old) AS old_p99_ns,
  quantileExactIf(0.99)(duration_ns, release = new) AS new_p99_ns,
  new_p50_ns / old_p50_ns AS p50_ratio, new_p99_ns / old_p99_ns AS p99_ratio
FROM rtev
WHERE kind = 'pause' AND state = 'done' AND release IN ('before', 'after')
GROUP BY service
HAVING old_pauses >= 1000 AND new_pauses >= 1000
ORDER BY p99_ratio DESC
