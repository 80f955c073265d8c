-- SPDX-License-Identifier: MIT
-- Share of the time of all domains that was spent in the GC, and of the CPU time, by service.
SELECT service, uniqExact(host) AS hosts, sumIf(value, name = 'domain_ns') AS domain_ns,
  sumIf(value, name = 'gc_ns') AS gc_ns, gc_ns / domain_ns AS gc_share,
  sumIf(value, name = 'cpu_ns') AS cpu_ns, sumIf(value, name = 'gc_cpu_ns') AS gc_cpu_ns
FROM rtev
WHERE kind = 'figure' AND name IN ('domain_ns', 'gc_ns', 'cpu_ns', 'gc_cpu_ns')
GROUP BY service
HAVING domain_ns > 0
ORDER BY gc_share DESC
