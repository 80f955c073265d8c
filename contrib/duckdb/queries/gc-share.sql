-- SPDX-License-Identifier: MIT
-- Share of the time of all domains that was spent in the GC, and of the CPU time, by service.
SELECT service, count(DISTINCT host) AS hosts, sum(value) FILTER (name = 'domain_ns')::BIGINT AS domain_ns,
  coalesce(sum(value) FILTER (name = 'gc_ns'), 0)::BIGINT AS gc_ns, gc_ns / domain_ns AS gc_share,
  coalesce(sum(value) FILTER (name = 'cpu_ns'), 0)::BIGINT AS cpu_ns,
  coalesce(sum(value) FILTER (name = 'gc_cpu_ns'), 0)::BIGINT AS gc_cpu_ns
FROM rtev
WHERE kind = 'figure' AND name IN ('domain_ns', 'gc_ns', 'cpu_ns', 'gc_cpu_ns')
GROUP BY service
HAVING domain_ns > 0
ORDER BY gc_share DESC;
