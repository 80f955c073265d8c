-- SPDX-License-Identifier: MIT
-- What services allocate per second of their domains' time, and what of the minor heaps survives.
SELECT service, sum(value) FILTER (name = 'minor_words')::BIGINT AS minor_words,
  coalesce(sum(value) FILTER (name = 'promoted_words'), 0)::BIGINT AS promoted_words,
  coalesce(sum(value) FILTER (name = 'major_words'), 0)::BIGINT AS major_words,
  coalesce(sum(value) FILTER (name = 'minor_collections'), 0)::BIGINT AS minor_collections,
  sum(value) FILTER (name = 'domain_ns')::BIGINT AS domain_ns, minor_words * 8 / domain_ns * 1e9 AS minor_bytes_per_s,
  promoted_words / minor_words AS promoted_share
FROM rtev
WHERE kind = 'figure'
  AND name IN ('minor_words', 'promoted_words', 'major_words', 'minor_collections', 'domain_ns')
GROUP BY service
HAVING minor_words > 0
ORDER BY minor_bytes_per_s DESC;
