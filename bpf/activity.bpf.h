/* SPDX-License-Identifier: MIT */
/* Which processes run, and which of their rings fill up: when the reader has to look at a ring. Part of sched.bpf.c. */
#ifndef RTEV_ACTIVITY_BPF_H
#define RTEV_ACTIVITY_BPF_H

#include "maps.bpf.h"

/* What happened since user space looked last, by slot of the ring file. Shared with user space, which clears it. */
struct rtev_cpu_activity on_cpu[RTEV_MAX_CPUS];
__u32 activity[RTEV_RING_SLOTS]; /* enum rtev_activity */

/* What the reader wants to be woken for, enum rtev_wakeup. Shared with user space, which sets it; cleared here. */
__u32 reader_waits_for __attribute__((aligned(64)));

/* Wakes the reader. Its records hold nothing. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536); /* a multiple of the size of a page; there is hardly ever more than one record */
} wakeups SEC(".maps");

/* Of a domain in a ring file, as OCaml's runtime lays it out. */
struct ring_indices {
  __u64 head;
  __u64 tail;
  __u64 padding[8];
};
struct first_indices {
  struct ring_indices domain[RTEV_FIRST_DOMAINS];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct first_indices);
} indices_scratch SEC(".maps");

static __always_inline struct rtev_tracked* tracked_process(__u32 tgid) {
  return tgid ? bpf_map_lookup_elem(&tracked, &tgid) : NULL;
}

static __always_inline void note(__u32 slot, __u32 what) {
  if (!slot) return;
  /* Without this the compiler merges both tests into one on slot - 1, from which verifiers before Linux 6.13 derive no
   * bounds for slot. */
  barrier_var(slot);
  /* Tested first: a cache line that is only read can stay in the caches of all cpus. */
  if (slot < RTEV_RING_SLOTS && (activity[slot] & what) != what) __sync_fetch_and_or(&activity[slot], what);
}

/* The exchange lets one of several cpus wake the reader. */
static __always_inline void wake_reader(__u32 event) {
  __u32 wanted = reader_waits_for;
  if (!wanted || wanted < event || !__sync_lock_test_and_set(&reader_waits_for, 0)) return;
  __u64 nothing = 0;
  bpf_ringbuf_output(&wakeups, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* A thread of a process leaves this cpu, and one of another process enters it or goes on. Slots are 0 where there is no
 * ring. */
GLOBAL_FUNCTION int note_activity(__u32 leaves, __u32 slot) {
  __u32 cpu = bpf_get_smp_processor_id();
  note(leaves, RTEV_RAN);
  note(slot, RTEV_RAN);
  if (cpu < RTEV_MAX_CPUS && on_cpu[cpu].slot != slot) {
    /* The exchange is a barrier: either the reader sees the activity before it sleeps, or what it waits for is seen
     * here. */
    __sync_lock_test_and_set(&on_cpu[cpu].slot, slot);
  }
  if (slot) wake_reader(RTEV_WAKE_IF_ACTIVE);
  return 0;
}

/* Words that all of the first domains have written. False if they cannot be read. */
static __always_inline bool sum_tails(const struct rtev_tracked* process, __u64* sum) {
  __u32 zero = 0;
  struct first_indices* indices = bpf_map_lookup_elem(&indices_scratch, &zero);
  if (!indices || process->ring_stride != sizeof(indices->domain[0]) ||
      bpf_probe_read_user(indices, sizeof(*indices), (void*)process->ring_indices))
    return false;
  for (int i = 0; i < RTEV_FIRST_DOMAINS; i++) *sum += indices->domain[i].tail;
  return true;
}

static __always_inline bool is_noted(__u32 slot, __u32 what) {
  barrier_var(slot); /* see note() */
  return slot < RTEV_RING_SLOTS && activity[slot] & what;
}

/* Wakes the reader when more than one part of a ring of the current process was filled since the ring was read. Looks
 * at the domain of the current thread only, if it is known. */
GLOBAL_FUNCTION int check_ring(const struct rtev_tracked* process, struct thread_state* state) {
  if (!process || !state || !process->slot || !process->ring_indices) return 0;
  __u64 written = 0;
  __u32 what = RTEV_CHECKED;
  if (state->domain >= 0) {
    __u64 indices = process->ring_indices + (__u64)state->domain * process->ring_stride;
    __u64 tail = indices + __builtin_offsetof(struct ring_indices, tail);
    if (bpf_probe_read_user(&written, sizeof(written), (void*)tail)) return 0;
  } else {
    if (!sum_tails(process, &written)) return 0;
    what = RTEV_CHECKED_FIRST;
  }
  __u32 part = (__u32)(written >> (process->ring_part_shift & 63));
  __u32 parts = part - state->ring_part;
  state->ring_part = part;
  if (parts) {
    if (parts > 1 || is_noted(process->slot, RTEV_PART_FULL)) what |= RTEV_FILLS_UP;
    what |= RTEV_PART_FULL;
  }
  note(process->slot, what);
  if (what & RTEV_FILLS_UP) wake_reader(RTEV_WAKE_IF_FULL);
  return 0;
}

#endif
