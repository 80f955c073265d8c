-- SPDX-License-Identifier: MIT
-- How much of the pauses was waiting for a CPU, by host: a busy host makes pauses that the GC is not to blame for. Of
-- pauses whose time is known, from recordings with scheduler events.
SELECT host, count() AS pauses, sum(duration_ns) AS total_ns, sum(on_cpu_ns) AS all_on_cpu_ns,
  sum(runnable_ns) AS all_runnable_ns, sum(blocked_ns) AS all_blocked_ns,
  all_runnable_ns / total_ns AS runnable_share, countIf(runnable_ns * 2 > duration_ns) AS mostly_runnable,
  max(runnable_ns) AS max_runnable_ns
FROM rtev
WHERE kind = 'pause' AND state = 'done' AND on_cpu_ns + runnable_ns + blocked_ns > 0
GROUP BY host
ORDER BY runnable_share DESC
