-- SPDX-License-Identifier: MIT
-- The slowest user spans (requests, jobs) of the fleet, and how much of each was the GC, waiting for a CPU and being
-- blocked.
SELECT service, name, host, pid, domain, run, time_ns - run AS after_ns, duration_ns, value AS gc_ns,
  value / duration_ns AS gc_share, on_cpu_ns, runnable_ns, blocked_ns
FROM rtev
WHERE kind = 'span' AND state = 'done'
ORDER BY duration_ns DESC, time_ns
LIMIT 50
