/* SPDX-License-Identifier: MIT */
/* The OCaml domain and the role of a thread, read from the thread's memory when it leaves its cpu: only then is that
 * memory accessible to the scheduler's tracepoints. Part of sched.bpf.c. */
#ifndef RTEV_THREADS_BPF_H
#define RTEV_THREADS_BPF_H

#include "domain.bpf.h"
#include "maps.bpf.h"

#define PF_EXITING 0x4
#define MAX_ROLE_TRIES 4 /* sleeps after which a thread that was in none of the known loops counts as a mutator */
#define STACK_WORDS 128  /* searched for a return address */

struct stack_words {
  __u64 word[STACK_WORDS];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct stack_words);
} stack_scratch SEC(".maps");

static __always_inline struct thread_state new_thread_state(struct task_struct* task) {
  return (struct thread_state){.domain = -1, .role = first_role(task), .user = BPF_CORE_READ(task, real_cred, uid.val)};
}

struct stack_search {
  const struct rtev_tracked* process;
  const struct stack_words* stack;
  __u8 role;
};

/* Not a loop in the program: the verifier would follow each of its turns on each way to it, for half a second. */
static long look_at_word(__u32 index, struct stack_search* search) {
  if (index >= STACK_WORDS) return 1;
  const struct rtev_tracked* process = search->process;
  __u64 word = search->stack->word[index];
  if (word > process->backup_begin && word < process->backup_end) search->role = RTEV_ROLE_BACKUP;
  if (word > process->tick_begin && word < process->tick_end) search->role = RTEV_ROLE_TICK;
  return search->role != RTEV_ROLE_UNKNOWN;
}

/* The runtime's own threads sleep inside their loops, whose return address is then near the top of the stack. The first
 * address of a range is excluded: it is not a return address, but an argument of pthread_create(). */
static __always_inline __u8 role_by_stack(const struct rtev_tracked* process, struct task_struct* task) {
  __u32 zero = 0;
  struct stack_words* stack = bpf_map_lookup_elem(&stack_scratch, &zero);
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  if (!stack || bpf_probe_read_user(stack, sizeof(*stack), (void*)PT_REGS_SP_CORE(regs))) return RTEV_ROLE_UNKNOWN;
  struct stack_search search = {.process = process, .stack = stack, .role = RTEV_ROLE_UNKNOWN};
  bpf_loop(STACK_WORDS, look_at_word, &search, 0);
  return search.role;
}

static __always_inline void find_role(const struct rtev_tracked* process, struct task_struct* task,
                                      struct thread_state* state) {
  if (!process->backup_end) return; /* without symbols the runtime's own threads look like any other */
  state->role = role_by_stack(process, task);
  if (state->role == RTEV_ROLE_UNKNOWN && ++state->tries == MAX_ROLE_TRIES) state->role = RTEV_ROLE_MUTATOR;
}

/* Once: a thread belongs to one domain for life, and each read of its memory costs as much as a map look-up. */
static __always_inline void find_domain(struct rtev_tracked* process, struct task_struct* task,
                                        struct thread_state* state) {
  if (state->domain >= 0) return;
  struct domain_variables variables = {process->domain_self_tls, process->caml_state_tls, process->id_offset};
  state->domain = read_domain(&variables, runtime_tls(process, task));
}

/* Updates the state of the current thread as it leaves its cpu. */
GLOBAL_FUNCTION int observe(struct rtev_tracked* process, bool sleeps, struct thread_state* state) {
  struct task_struct* task = bpf_get_current_task_btf();
  if (!process || !state || task->flags & PF_EXITING) return 0; /* its memory is gone */
  find_domain(process, task, state);
  if (sched_mode == RTEV_SCHED_OFF) return 0;
  __u64 tls = process->caml_state_tls ? runtime_tls(process, task) : 0, caml_state = 0;
  bool is_known = tls && !bpf_probe_read_user(&caml_state, sizeof(caml_state), (void*)(tls + process->caml_state_tls));
  if (state->role == RTEV_ROLE_UNKNOWN && sleeps) find_role(process, task, state);
  /* The runtime's own threads always have a caml_state but hold the lock only briefly. */
  bool own = state->role == RTEV_ROLE_BACKUP || state->role == RTEV_ROLE_TICK;
  state->flags = caml_state && !own ? RTEV_HOLDS_LOCK : 0;
  if ((is_known && !caml_state && state->role == RTEV_ROLE_MUTATOR) || state->role == RTEV_ROLE_TICK)
    state->flags |= RTEV_HOLDS_NO_LOCK;
  return 0;
}

static __always_inline void add_thread(__u32 tid, const struct thread_state* state) {
  __u32* count = threads_of(state->user);
  if (*count >= MAX_THREADS_OF_USER) return count_drop(RTEV_STAT_UNTRACKED);
  long error = bpf_map_update_elem(&threads, &tid, state, BPF_NOEXIST);
  if (!error) __sync_fetch_and_add(count, 1);
  count_untracked(error);
}

/* The state of the current thread, also of one that was not known. The result points into the map, or to `fallback` if
 * the thread is not in it. */
static __always_inline struct thread_state* find_thread(struct task_struct* task, struct thread_state* fallback) {
  __u32 tid = task->pid;
  struct thread_state* state = bpf_map_lookup_elem(&threads, &tid);
  if (state) return state;
  *fallback = new_thread_state(task);
  /* An exiting thread must not be added again. */
  if (task->flags & PF_EXITING) return fallback;
  add_thread(tid, fallback);
  state = bpf_map_lookup_elem(&threads, &tid);
  return state ? state : fallback;
}

#endif
