-- SPDX-License-Identifier: MIT
-- How fast the major heap of each process grows, from the first to the last time that it was seen, in one recording or
-- several. Only of a second and longer: a program that starts always grows.
SELECT service, host, pid, start_ticks, arg_min(value, time_ns) AS first_words, arg_max(value, time_ns) AS last_words,
  max(time_ns) - min(time_ns) AS seen_ns, (last_words - first_words) * 8 AS grown_bytes,
  grown_bytes / seen_ns * 3600e9 AS bytes_per_hour
FROM rtev
WHERE kind = 'heap' AND name = 'heap_words'
GROUP BY service, host, pid, start_ticks
HAVING seen_ns >= 1000000000 AND last_words > first_words
ORDER BY bytes_per_hour DESC
LIMIT 50;
