-- SPDX-License-Identifier: MIT
-- Recordings that lack something: events that were lost, rings that were not read, records that the kernel's buffers
-- dropped, and recordings without their end.
SELECT host, run, sumIf(value, kind = 'loss' AND unit = 'words') AS lost_words,
  sumIf(value, kind = 'figure' AND name = 'rings_missed') AS rings_missed,
  sumIf(value, kind = 'figure' AND pid = 0 AND name LIKE 'dropped_%') AS dropped,
  countIf(kind = 'run' AND state = 'done') = 0 AS without_end
FROM rtev
GROUP BY host, run
HAVING lost_words > 0 OR rings_missed > 0 OR dropped > 0 OR without_end
ORDER BY without_end DESC, lost_words DESC, dropped DESC
