// SPDX-License-Identifier: MIT
// Compiled into several programs. OXCAML_TEXT: the version text of OxCaml, and no symbols of the domain's fields, like
// bytecode. OXCAML_FUNCTIONS: besides, two functions that only OxCaml has. NO_TEXT: no version at all.
#include "runtime.h"

enum {
  page_words = lookalike_page_bytes / sizeof(unsigned long),
  heap_words = 1024,
  // Of the state of OCaml 5.3.
  young_limit = 0,
  young_ptr = 1,
  young_start = 2,
  young_end = 3,
  action_pending = 7,
  requested_external_interrupt = 32,
  domain_id = 36,
};

#ifdef NO_TEXT
#elif defined(OXCAML_TEXT)
__attribute__((used)) static const char version[] = "The OCaml runtime, version 5.2.0+ox";
#else
__attribute__((used)) static const char version[] = "The OCaml runtime, version 5.3.0";
#define FIELD(name, word) __asm__(".globl domain_field_caml_" name "\n.set domain_field_caml_" name ", " #word)
FIELD("young_limit", 0);
FIELD("young_ptr", 1);
FIELD("young_start", 2);
FIELD("young_end", 3);
FIELD("action_pending", 7);
FIELD("requested_external_interrupt", 32);
FIELD("id", 36);
#endif

// Functions whose names are all that is asked for.
#define FUNCTION(name)    \
  void name(void);        \
  void name(void) {       \
    __asm__ volatile(""); \
  }
FUNCTION(caml_runtime_events_init)
FUNCTION(caml_runtime_events_start)
FUNCTION(caml_runtime_events_pause)
FUNCTION(caml_runtime_events_resume)
FUNCTION(caml_runtime_events_destroy)
FUNCTION(caml_runtime_events_user_register)
FUNCTION(caml_ml_runtime_events_start)
FUNCTION(caml_ml_runtime_events_path)
FUNCTION(caml_domain_external_interrupt_hook_default)
#ifdef OXCAML_FUNCTIONS
FUNCTION(caml_alloc_local)
FUNCTION(caml_refresh_locals)
#endif

/// The first word of each is the variable.
__attribute__((aligned(lookalike_page_bytes))) lookalike_hook hook_page[page_words] = {
    caml_domain_external_interrupt_hook_default};
__attribute__((aligned(lookalike_page_bytes))) unsigned long witness_page[page_words] = {1};
extern lookalike_hook caml_domain_external_interrupt_hook __attribute__((alias("hook_page")));
extern unsigned long caml_enter_blocking_section_hook __attribute__((alias("witness_page")));

__attribute__((aligned(lookalike_page_bytes))) unsigned long runtime_events_enabled = 0;
unsigned long runtime_events_paused = 0;

static unsigned long heap[heap_words], state[page_words];
__thread unsigned long* caml_state;

struct lookalike begin_lookalike(void) {
  state[young_start] = (unsigned long)heap;
  state[young_ptr] = state[young_end] = (unsigned long)(heap + heap_words);
  state[young_limit] = state[young_start];
  state[domain_id] = 0;
  caml_state = state;
  return (struct lookalike){.hook = hook_page,
                            .default_hook = caml_domain_external_interrupt_hook_default,
                            .start = caml_runtime_events_start,
                            .witness = witness_page,
                            .enabled = &runtime_events_enabled,
                            .paused = &runtime_events_paused,
                            .state = state};
}

int is_touched(const struct lookalike* program) {
  return *program->hook != program->default_hook || *program->enabled != 0 || *program->paused != 0 ||
         program->state[young_limit] != (unsigned long)heap || program->state[action_pending] != 0 ||
         program->state[requested_external_interrupt] != 0;
}
