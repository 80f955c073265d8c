/* SPDX-License-Identifier: MIT */
/* Which OCaml domain a thread belongs to, and what it does for it; read from the thread's memory when it leaves its
 * cpu, since then that memory is at hand. Part of sched.bpf.c. */
#ifndef RTEV_THREADS_BPF_H
#define RTEV_THREADS_BPF_H

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "tls.bpf.h"

#define PF_EXITING 0x4
#define MAX_DOMAINS 4096 /* of any OCaml 5 */
#define ROLE_TRIES 4     /* sleeps after which a thread that is not in a known loop is none of the runtime's own */
#define STACK_WORDS 128  /* looked at for a return address */

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
  return (struct thread_state){.domain = -1, .role = task->pid == task->tgid ? RTEV_ROLE_MUTATOR : RTEV_ROLE_UNKNOWN};
}

/* Where the offsets of thread-local variables count from; 0 if that cannot be told. */
static __always_inline __u64 tls_base(const struct rtev_tracked* process, __u64 thread_pointer) {
  return process->tls_module ? library_tls(thread_pointer, process->tls_module) : thread_pointer;
}

/* Reads the domain from domain_self; where that symbol is unknown from caml_state, which is NULL while the thread has
 * given up its domain's lock. -1 if neither tells. */
static __always_inline __s32 read_domain(const struct rtev_tracked* process, __u64 tls, __u64 caml_state) {
  __u64 where = 0;
  __s32 id = -1;
  if (process->domain_self_tls) {
    bpf_probe_read_user(&where, sizeof(where), (void*)(tls + process->domain_self_tls));
  } else if (caml_state && process->id_offset) {
    where = caml_state + process->id_offset;
  }
  if (!where || bpf_probe_read_user(&id, sizeof(id), (void*)where)) return -1;
  return id >= 0 && id < MAX_DOMAINS ? id : -1;
}

/* The runtime's own threads sleep inside their loops, whose return address is then near the top of the stack. The
 * begin of a range is no return address, but an argument of pthread_create(). */
static __always_inline __u8 role_by_stack(const struct rtev_tracked* process, struct task_struct* task) {
  __u32 zero = 0;
  struct stack_words* stack = bpf_map_lookup_elem(&stack_scratch, &zero);
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  if (!stack || bpf_probe_read_user(stack, sizeof(*stack), (void*)STACK_POINTER(regs))) return RTEV_ROLE_UNKNOWN;
  for (int i = 0; i < STACK_WORDS; i++) {
    __u64 word = stack->word[i];
    if (word > process->backup_begin && word < process->backup_end) return RTEV_ROLE_BACKUP;
    if (word > process->tick_begin && word < process->tick_end) return RTEV_ROLE_TICK;
  }
  return RTEV_ROLE_UNKNOWN;
}

static __always_inline void find_role(const struct rtev_tracked* process, struct task_struct* task,
                                      struct thread_state* state) {
  if (!process->backup_end) return; /* without symbols a thread of the runtime looks like any other */
  state->role = role_by_stack(process, task);
  if (state->role == RTEV_ROLE_UNKNOWN && ++state->tries == ROLE_TRIES) state->role = RTEV_ROLE_MUTATOR;
}

/* Brings what is known of a thread up to date. Only for the current one, as it leaves its cpu. */
static __always_inline void observe(const struct rtev_tracked* process, struct task_struct* task, bool sleeps,
                                    struct thread_state* state) {
  __u64 tls = tls_base(process, THREAD_POINTER(task)), caml_state = 0;
  if (tls && process->caml_state_tls)
    bpf_probe_read_user(&caml_state, sizeof(caml_state), (void*)(tls + process->caml_state_tls));
  /* Once is enough: a thread belongs to one domain for life, and each read of its memory costs as much as a lookup. */
  if (state->domain < 0 && tls) state->domain = read_domain(process, tls, caml_state);
  if (state->role == RTEV_ROLE_UNKNOWN && sleeps) find_role(process, task, state);
  /* The runtime's own threads have a caml_state all the time and take the lock only in passing. */
  bool own = state->role == RTEV_ROLE_BACKUP || state->role == RTEV_ROLE_TICK;
  state->flags = caml_state && !own ? RTEV_HOLDS_LOCK : 0;
}

/* The state of a thread that leaves its cpu. The result lives in the map, or in `fallback` where there is no place
 * for it. */
static __always_inline struct thread_state* thread_leaves(const struct rtev_tracked* process, struct task_struct* task,
                                                          bool sleeps, struct thread_state* fallback) {
  __u32 tid = task->pid;
  struct thread_state* state = bpf_map_lookup_elem(&threads, &tid);
  /* An exiting thread has no memory left to read, and is not to be remembered again. */
  if (task->flags & PF_EXITING) return state ? state : fallback;
  if (!state) {
    count_untracked(bpf_map_update_elem(&threads, &tid, fallback, BPF_NOEXIST));
    state = bpf_map_lookup_elem(&threads, &tid);
    if (!state) state = fallback;
  }
  observe(process, task, sleeps, state);
  return state;
}

#endif
