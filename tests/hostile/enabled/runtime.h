// SPDX-License-Identifier: MIT
// A program that `rtev-bpf enable` takes for one of OCaml 5.3, as an attacker makes it: it has the symbols and the
// memory of the runtime, and decides itself what happens there.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { lookalike_page_bytes = 4096 };

typedef void (*lookalike_hook)(void);

struct lookalike {
  volatile lookalike_hook* hook;    ///< at the beginning of a page of its own
  lookalike_hook default_hook;      ///< what is there at first
  lookalike_hook start;             ///< what enabling replaces it by
  volatile unsigned long* witness;  ///< the hook that the threads library replaces; likewise
  volatile unsigned long *enabled, *paused;
  volatile unsigned long* state;  ///< of the domain that this thread runs
};

/// Gives the calling thread a domain.
struct lookalike begin_lookalike(void);

/// True if a word of the domain is not what begin_lookalike() has written, or the hook is replaced.
int is_touched(const struct lookalike* program);

#ifdef __cplusplus
}
#endif
