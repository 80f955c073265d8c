-- SPDX-License-Identifier: MIT
-- Recordings that lack something: events that were lost, rings that were not read, records that the kernel's buffers
-- dropped, and recordings without their end.
SELECT host, run, coalesce(sum(value) FILTER (kind = 'loss' AND unit = 'words'), 0)::BIGINT AS lost_words,
  coalesce(sum(value) FILTER (kind = 'figure' AND name = 'rings_missed'), 0)::BIGINT AS rings_missed,
  coalesce(sum(value) FILTER (kind = 'figure' AND pid = 0 AND name LIKE 'dropped_%'), 0)::BIGINT AS dropped,
  (count(*) FILTER (kind = 'run' AND state = 'done') = 0)::INTEGER AS without_end
FROM rtev
GROUP BY host, run
HAVING lost_words > 0 OR rings_missed > 0 OR dropped > 0 OR without_end = 1
ORDER BY without_end DESC, lost_words DESC, dropped DESC;
