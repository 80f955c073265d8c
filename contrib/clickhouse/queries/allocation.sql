-- SPDX-License-Identifier: MIT
-- What services allocate per second of their domains' time, and what of the minor heaps survives.
SELECT service, sumIf(value, name = 'minor_words') AS minor_words,
  sumIf(value, name = 'promoted_words') AS promoted_words,
  sumIf(value, name = 'major_words') AS major_words, sumIf(value, name = 'minor_collections') AS minor_collections,
  sumIf(value, name = 'domain_ns') AS domain_ns, minor_words * 8 / domain_ns * 1e9 AS minor_bytes_per_s,
  promoted_words / minor_words AS promoted_share
FROM rtev
WHERE kind = 'figure'
  AND name IN ('minor_words', 'promoted_words', 'major_words', 'minor_collections', 'domain_ns')
GROUP BY service
HAVING minor_words > 0
ORDER BY minor_bytes_per_s DESC
