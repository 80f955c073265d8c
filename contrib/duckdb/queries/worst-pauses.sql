-- SPDX-License-Identifier: MIT
-- Worst pauses of the fleet, by service, release and version of OCaml: how many, how long, and where the longest one
-- was: `after_ns` is how long after the begin of its recording (rtev-bpf dump --around).
SELECT service, release, ocaml, count(*) AS pauses, sum(duration_ns)::BIGINT AS total_ns,
  quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.99) AS p99_ns,
  max(duration_ns) AS max_ns, arg_max(name, duration_ns) AS phase, arg_max(host, duration_ns) AS on_host,
  arg_max(pid, duration_ns) AS in_pid, arg_max(run, duration_ns) AS in_run,
  arg_max(time_ns - run, duration_ns) AS after_ns
FROM rtev
WHERE kind = 'pause' AND state = 'done'
GROUP BY service, release, ocaml
ORDER BY max_ns DESC
LIMIT 50;
