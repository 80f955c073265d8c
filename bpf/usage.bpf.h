/* SPDX-License-Identifier: MIT */
/* With RTEV_SCHED_SUMS: sums of the CPU time of threads, and the times they waited for a CPU. Then most switches need
 * no record: those of threads that do not hold their domain's lock, since no pause is on them. */
#ifndef RTEV_USAGE_BPF_H
#define RTEV_USAGE_BPF_H

#include "sched_buffers.bpf.h"

#define REPORT_INTERVAL_NS 250000000
#define NEVER_REPORTED (-2)

/* False if there is no room for the record. */
static __always_inline bool report_usage(struct thread_usage* usage, __u32 tgid, __u32 tid, __u64 now) {
  if (!usage->cpu_ns && !usage->delay_count) return true;
  void* buffer = sched_buffer();
  struct rtev_usage* record = buffer ? bpf_ringbuf_reserve(buffer, sizeof(*record), 0) : NULL;
  if (!record) return false;
  *record = (struct rtev_usage){.time_ns = now,
                                .type = RTEV_USAGE,
                                .tgid = tgid,
                                .tid = tid,
                                .role = usage->role,
                                .delay_count = usage->delay_count,
                                .cpu_ns = usage->cpu_ns};
  __builtin_memcpy(record->delays, usage->delays, sizeof(record->delays));
  submit_sched(buffer, record);
  usage->cpu_ns = 0;
  usage->delay_count = 0;
  usage->reported_ns = now;
  return true;
}

static __always_inline void add_delay(struct thread_usage* usage, struct task_struct* task, __u64 ns, __u64 now) {
  if (usage->delay_count >= RTEV_USAGE_DELAYS && !report_usage(usage, task->tgid, task->pid, now))
    return count_drop(RTEV_STAT_UNTRACKED);
  __u32 index = usage->delay_count;
  if (index >= RTEV_USAGE_DELAYS) return;
  usage->delays[index] = ns < RTEV_LONG_DELAY ? (__u32)ns : RTEV_LONG_DELAY | (__u32)(ns / RTEV_LONG_DELAY_NS);
  usage->delay_count = index + 1;
}

/* NULL if there is no room for another thread: then all its switches have records. */
static __always_inline struct thread_usage* usage_of(struct task_struct* task) {
  __u32 tid = task->pid;
  struct thread_usage* usage = bpf_map_lookup_elem(&usages, &tid);
  if (usage) return usage;
  __u32 zero = 0;
  struct thread_usage* fresh = bpf_map_lookup_elem(&usage_scratch, &zero);
  if (!fresh) return NULL;
  fresh->domain = NEVER_REPORTED;
  /* Until it leaves its CPU: its state is read then. */
  fresh->role = first_role(task);
  fresh->reported_ns = bpf_ktime_get_ns();
  count_untracked(bpf_map_update_elem(&usages, &tid, fresh, BPF_NOEXIST));
  return bpf_map_lookup_elem(&usages, &tid);
}

static __always_inline void count_cpu_time(struct thread_usage* usage, __u64 now) {
  if (usage->is_on_cpu) usage->cpu_ns += now - usage->since_ns;
  usage->since_ns = now;
}

/* The thread was interrupted on its CPU. */
static __always_inline void note_running(struct task_struct* task) {
  struct thread_usage* usage = usage_of(task);
  if (!usage) return;
  __u64 now = bpf_ktime_get_ns();
  count_cpu_time(usage, now);
  usage->is_on_cpu = true;
  if (now - usage->reported_ns >= REPORT_INTERVAL_NS) report_usage(usage, task->tgid, task->pid, now);
}

/* False if no record of the switch is needed for the thread that leaves. */
static __always_inline bool note_leaving(struct task_struct* task, const struct thread_state* state, bool is_runnable,
                                         bool is_dead) {
  struct thread_usage* usage = usage_of(task);
  if (!usage) return true;
  __u64 now = bpf_ktime_get_ns();
  count_cpu_time(usage, now);
  usage->is_on_cpu = false;
  usage->waits = is_runnable;
  usage->role = state->role;
  if (is_dead || now - usage->reported_ns >= REPORT_INTERVAL_NS) report_usage(usage, task->tgid, task->pid, now);
  /* The first record of a thread says which domain it runs. */
  usage->is_silent = !is_dead && state->flags & RTEV_HOLDS_NO_LOCK && usage->domain == state->domain;
  if (!usage->is_silent) usage->domain = state->domain;
  return !usage->is_silent;
}

/* Likewise for the one that enters: its leaving had no record. */
static __always_inline bool note_entering(struct task_struct* task) {
  struct thread_usage* usage = usage_of(task);
  if (!usage) return true;
  __u64 now = bpf_ktime_get_ns();
  /* A wake-up between its decision to sleep and its leaving is not followed by another one. */
  if (usage->since_ns && (usage->waits || usage->is_woken_early)) add_delay(usage, task, now - usage->since_ns, now);
  usage->since_ns = now;
  usage->is_on_cpu = true;
  usage->waits = usage->is_woken_early = false;
  return !usage->is_silent;
}

/* Likewise for a thread that is woken. */
static __always_inline bool note_waking(struct task_struct* task) {
  struct thread_usage* usage = usage_of(task);
  if (!usage) return true;
  if (usage->is_on_cpu) {
    usage->is_woken_early = true;
    return false;
  }
  usage->waits = true;
  usage->since_ns = bpf_ktime_get_ns();
  return !usage->is_silent;
}

/* The current thread ends, or goes on with another program. */
static __always_inline void end_usage(struct task_struct* task, __u32 tid) {
  struct thread_usage* usage = bpf_map_lookup_elem(&usages, &tid);
  if (!usage) return;
  __u64 now = bpf_ktime_get_ns();
  count_cpu_time(usage, now);
  if (!report_usage(usage, task->tgid, tid, now)) count_drop(RTEV_STAT_UNTRACKED);
  bpf_map_delete_elem(&usages, &tid);
}

#endif
