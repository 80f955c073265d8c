-- SPDX-License-Identifier: MIT
-- Programs that run for less than a second: how many, how long, and how many failed. Many of them mean that OCaml
-- programs are started where one could go on.
SELECT service, uniqExact(host) AS hosts, count() AS processes, countIf(state != 'exit 0') AS failed,
  quantileExact(0.5)(duration_ns) AS p50_ns, max(duration_ns) AS max_ns, max(value) AS max_rss_bytes
FROM rtev
WHERE kind = 'process' AND name IN ('exec', 'fork') AND (state LIKE 'exit %' OR state LIKE 'signal %')
  AND duration_ns < 1000000000
GROUP BY service
ORDER BY processes DESC
