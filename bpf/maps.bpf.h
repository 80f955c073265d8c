/* SPDX-License-Identifier: MIT */
/* What the BPF programs share: maps and options, and how a lifecycle record is made. All are defined in
 * lifecycle.bpf.c, which must be linked first: bpftool's linker (libbpf 1.1) misplaces what it sees used before it sees
 * it defined. */
#ifndef RTEV_MAPS_BPF_H
#define RTEV_MAPS_BPF_H

/* The kernel's types come first. */
/* clang-format off */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "records.h"

#define EEXIST 17

#define RTEV_FOLLOWABLE 32768       /* processes followed at once */
#define RTEV_THREADS 65536          /* threads of tracked processes */
#define RTEV_LIFECYCLE_BYTES 262144 /* room for about 3000 records, or 1000 births of rings */

/* OCaml processes, by tgid. Written by user space, and here when one is born; forgotten here when one ends or runs
 * another program. */
struct tracked_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_TRACKED);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* elements are added only where it is safe to allocate */
  __type(key, __u32);
  __type(value, struct rtev_tracked);
};
extern struct tracked_map tracked SEC(".maps");

/* CMD of "-- CMD" and its descendants, by tgid. */
struct followed_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_FOLLOWABLE);
  __type(key, __u32);
  __type(value, __u8);
};
extern struct followed_map followed SEC(".maps");

/* What is known of a thread of a tracked process. */
struct thread_state {
  __s32 domain; /* -1: not known yet */
  __u8 role;    /* enum rtev_role */
  __u8 flags;   /* when it last left its cpu */
  __u8 tries;   /* to find the role */
  __u8 pad;
};

/* Threads, by tid. Preallocated and not task storage: elements are added with a run queue locked, where the allocation
 * that task storage does on Linux before 6.4 could wake a thread, and so wait for that lock for ever. */
struct threads_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_THREADS);
  __type(key, __u32);
  __type(value, struct thread_state);
};
extern struct threads_map threads SEC(".maps");

/* Of its own and small: a storm of scheduler records cannot push out an exec. */
struct lifecycle_map {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, RTEV_LIFECYCLE_BYTES);
};
extern struct lifecycle_map lifecycle SEC(".maps");

/* What was lost, by enum rtev_stat. */
struct stats_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, RTEV_STAT_COUNT);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct stats_map stats SEC(".maps");

extern const volatile bool follow_only; /* report followed processes, no others */

/* Atomic, though each cpu has its own: a uprobe's program can be preempted by another one. */
static __always_inline void count_drop(__u32 stat) {
  __u64* drops = bpf_map_lookup_elem(&stats, &stat);
  if (drops) __sync_fetch_and_add(drops, 1);
}

/* Takes the result of putting a process or thread in a table. */
static __always_inline void count_untracked(long error) {
  if (error && error != -EEXIST) count_drop(RTEV_STAT_UNTRACKED);
}

static __always_inline bool is_followed(__u32 tgid) {
  return bpf_map_lookup_elem(&followed, &tgid) != NULL;
}

/* Writes what is the same for every type of record about the process of `task`. */
static __always_inline void fill_lifecycle(struct rtev_lifecycle* record, struct task_struct* task, __u32 type) {
  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  record->time_ns = bpf_ktime_get_ns();
  record->start_time = BPF_CORE_READ(leader, start_boottime);
  record->detail = 0;
  record->type = type;
  record->tgid = BPF_CORE_READ(task, tgid);
  record->tid = BPF_CORE_READ(task, pid);
  record->peer = 0;
  record->flags = is_followed(record->tgid) ? RTEV_FOLLOWED : 0;
  record->max_rss_pages = 0;
  bpf_core_read(record->comm, sizeof(record->comm), &leader->comm);
}

/* Room for a record, filled in; NULL, and counted under `stat`, if there is none. */
static __always_inline struct rtev_lifecycle* begin_lifecycle(struct task_struct* task, __u32 type, __u32 stat) {
  struct rtev_lifecycle* record = bpf_ringbuf_reserve(&lifecycle, sizeof(*record), 0);
  if (!record) {
    count_drop(stat);
    return NULL;
  }
  fill_lifecycle(record, task, type);
  return record;
}

/* These are rare and the reader must hear of each at once: a ring lives for 2 ms in the shortest of programs. */
static __always_inline void submit_lifecycle(struct rtev_lifecycle* record) {
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

#endif
