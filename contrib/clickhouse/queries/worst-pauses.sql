-- SPDX-License-Identifier: MIT
-- Worst pauses of the fleet, by service, release and version of OCaml: how many, how long, and where the longest one
-- was: `after_ns` is how long after the begin of its recording (rtev-bpf dump --around).
SELECT service, release, ocaml, count() AS pauses, sum(duration_ns) AS total_ns,
  quantileExact(0.5)(duration_ns) AS p50_ns, quantileExact(0.99)(duration_ns) AS p99_ns,
  max(duration_ns) AS max_ns, argMax(name, duration_ns) AS phase, argMax(host, duration_ns) AS on_host,
  argMax(pid, duration_ns) AS in_pid, argMax(run, duration_ns) AS in_run,
  argMax(time_ns - run, duration_ns) AS after_ns
FROM rtev
WHERE kind = 'pause' AND state = 'done'
GROUP BY service, release, ocaml
ORDER BY max_ns DESC
LIMIT 50
