// SPDX-License-Identifier: MIT
// Threads are switched and woken: scheduler records, and which processes are active.
#include "activity.bpf.h"
#include "arch.bpf.h"
#include "maps.bpf.h"
#include "threads.bpf.h"
#include "usage.bpf.h"

#define TASK_DEAD 0x80

/* Shared with user space, which sets `taken`. */
struct rtev_sched_drops sched_drops[RTEV_MAX_CPUS];

/* Reads what user space wants to know of a process's memory, now that a thread of it leaves its cpu. */
GLOBAL_FUNCTION int read_flags(struct rtev_tracked* process) {
  __u64 paused = 0;
  if (!process || !process->paused_flag || bpf_probe_read_user(&paused, sizeof(paused), (void*)process->paused_flag))
    return 0;
  process->paused_flag = 0;
  if (!paused) return 0;
  struct rtev_lifecycle* record = begin_lifecycle(bpf_get_current_task_btf(), RTEV_PAUSED, RTEV_STAT_PROBE_DROPPED);
  if (record) submit_lifecycle(record);
  return 0;
}

/* Interrupts are off during switches and wakeups: nothing else writes this cpu's counters meanwhile. */
static __always_inline void count_sched_drop(__u32 type) {
  __u32 cpu = bpf_get_smp_processor_id();
  if (cpu >= RTEV_MAX_CPUS) return;
  struct rtev_sched_drops* drops = &sched_drops[cpu];
  __u64* count = type == RTEV_SWITCH ? &drops->switches : &drops->wakeups;
  __u64 now = bpf_ktime_get_ns();
  if (drops->switches + drops->wakeups == drops->taken) drops->first_ns = now;
  drops->last_ns = now;
  /* The exchange is a barrier: a reader that sees the new count sees the new times. */
  __sync_lock_test_and_set(count, *count + 1);
}

static __always_inline struct rtev_sched* begin_sched(void* buffer, __u32 type) {
  struct rtev_sched* record = bpf_ringbuf_reserve(buffer, sizeof(*record), 0);
  if (!record) {
    count_sched_drop(type);
    return NULL;
  }
  record->time_ns = bpf_ktime_get_ns();
  record->type = type;
  return record;
}

static __always_inline void describe(struct rtev_thread* thread, struct task_struct* task, bool is_tracked,
                                     const struct thread_state* state) {
  thread->tgid = task->tgid;
  thread->tid = task->pid;
  thread->prio = (__s16)task->prio;
  thread->domain = state->domain;
  thread->role = state->role;
  thread->flags = is_tracked ? state->flags | RTEV_TRACKED_THREAD : 0;
  bpf_core_read(thread->comm, sizeof(thread->comm), &task->comm);
}

/* Of a switch that is not reported for the other thread: as if the cpu were idle. */
static __always_inline void describe_idle(struct rtev_thread* thread) {
  *thread = (struct rtev_thread){.domain = -1};
}

/* The state as of when the thread last left a cpu. */
static __always_inline struct thread_state last_state(struct task_struct* task, bool is_tracked) {
  if (!is_tracked) return (struct thread_state){.domain = -1};
  __u32 tid = task->pid;
  struct thread_state* known = bpf_map_lookup_elem(&threads, &tid);
  return known ? *known : new_thread_state(task);
}

/* In which a thread blocks that leaves its cpu. */
static __always_inline __s16 current_syscall(struct task_struct* task) {
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  __s64 number = SYSCALL_NUMBER(regs);
  if (number < 0) return RTEV_SYSCALL_NONE;
  return number <= 0x7fff ? (__s16)number : RTEV_SYSCALL_UNKNOWN;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool preempted, struct task_struct* prev, struct task_struct* next, unsigned int state) {
  struct rtev_tracked* leaves = tracked_process(prev->tgid);
  struct rtev_tracked* enters = next->tgid == prev->tgid ? leaves : tracked_process(next->tgid);
  note_activity(leaves ? leaves->slot : 0, enters ? enters->slot : 0);
  struct thread_state prev_state = {.domain = -1};
  if (leaves) {
    /* The current thread is still the one that leaves. */
    read_flags(leaves);
    struct thread_state* known = find_thread(prev, &prev_state);
    observe(leaves, state && !preempted, known);
    check_ring(leaves, known);
    prev_state = *known;
  }
  if (state & TASK_DEAD) {
    /* Of any process: a later thread with the same tid must not inherit the state. */
    forget_thread(prev->pid);
  }
  if (sched_mode == RTEV_SCHED_OFF) return 0;
  bool reports_prev = true, reports_next = true;
  if (sched_mode == RTEV_SCHED_SUMS) {
    reports_prev = leaves && note_leaving(prev, &prev_state, !state || preempted, state & TASK_DEAD);
    reports_next = enters && note_entering(next);
    if (!reports_prev && !reports_next) return 0;
  } else if (sched_mode == RTEV_SCHED_OCAML && !leaves && !enters) {
    return 0;
  }

  void* buffer = sched_buffer();
  if (!buffer) return 0;
  struct rtev_sched* record = begin_sched(buffer, RTEV_SWITCH);
  if (!record) return 0;
  struct thread_state next_state = last_state(next, enters);
  record->cpu = bpf_get_smp_processor_id();
  record->state = state;
  record->preempted = preempted;
  bool blocks = leaves && state && !preempted && !(state & TASK_DEAD);
  record->syscall = blocks ? current_syscall(prev) : RTEV_SYSCALL_UNKNOWN;
  if (leaves && !reports_prev)
    describe_idle(&record->prev);
  else
    describe(&record->prev, prev, leaves, &prev_state);
  if (enters && !reports_next)
    describe_idle(&record->next);
  else
    describe(&record->next, next, enters, &next_state);
  submit_sched(buffer, record);
  return 0;
}

/* A timer interrupts the thread that runs. The kernel's own timer does so on each cpu that is busy, with its frequency
 * (CONFIG_HZ): so a thread that never leaves its cpu is seen, too. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(thread_interrupted) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct rtev_tracked* process = tracked_process(task->tgid);
  if (!process || task->flags & PF_EXITING) return 0;
  note_activity(0, process->slot);
  struct thread_state new_state;
  struct thread_state* state = find_thread(task, &new_state);
  find_domain(process, task, state);
  check_ring(process, state);
  if (sched_mode == RTEV_SCHED_SUMS) note_running(task);
  return 0;
}

static __always_inline __u32 last_cpu(struct task_struct* task) {
  return task->thread_info.cpu;
}

static __always_inline int woken(struct task_struct* task) {
  struct rtev_tracked* process = tracked_process(task->tgid);
  if (sched_mode != RTEV_SCHED_ALL && !process) return 0;
  if (sched_mode == RTEV_SCHED_SUMS && !note_waking(task)) return 0;
  void* buffer = sched_buffer();
  if (!buffer) return 0;
  struct rtev_sched* record = begin_sched(buffer, RTEV_WAKEUP);
  if (!record) return 0;
  /* In an interrupt this is the interrupted thread. */
  struct task_struct* waker = bpf_get_current_task_btf();
  struct rtev_tracked* waker_process = waker->tgid == task->tgid ? process : tracked_process(waker->tgid);
  struct thread_state waker_state = last_state(waker, waker_process);
  struct thread_state task_state = last_state(task, process);
  record->cpu = last_cpu(task);
  record->state = 0;
  record->preempted = 0;
  record->syscall = RTEV_SYSCALL_UNKNOWN;
  describe(&record->prev, waker, waker_process, &waker_state);
  describe(&record->next, task, process, &task_state);
  submit_sched(buffer, record);
  return 0;
}

/* Not sched_wakeup: that fires when the thread is queued, often on another cpu, where the waker is unknown. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(thread_waking, struct task_struct* task) {
  return woken(task);
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(thread_wakeup_new, struct task_struct* task) {
  return woken(task);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
