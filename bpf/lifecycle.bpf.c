// SPDX-License-Identifier: MIT
// Processes exec, fork and exit. Also defines the maps and options that all programs share.
#include "rings.bpf.h"
#include "usage.bpf.h"

#define SIGNAL_GROUP_EXIT 0x4

struct tracked_map tracked SEC(".maps");
struct threads_map threads SEC(".maps");
struct followed_map followed SEC(".maps");
struct lifecycle_map lifecycle SEC(".maps");
struct stats_map stats SEC(".maps");
struct record_budgets_map record_budgets SEC(".maps");
struct record_budgets_map user_record_budgets SEC(".maps");
struct rings_map rings SEC(".maps");
struct rings_scratch_map rings_scratch SEC(".maps");
struct opened_map opened SEC(".maps");
struct announced_map announced SEC(".maps");
struct usages_map usages SEC(".maps");
struct usage_scratch_map usage_scratch SEC(".maps");
struct sched_buffers_map sched_buffers SEC(".maps");

/* Processes whose exit was reported. When two threads end at the same time, each may find that none is left. */
struct process_key {
  __u64 start_time;
  __u32 tgid;
  __u32 pad;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 1024);
  __type(key, struct process_key);
  __type(value, __u8);
} ended SEC(".maps");

__u32 threads_of_users[THREAD_COUNTS];

const volatile bool follow_only = false;
const volatile __u32 sched_mode = RTEV_SCHED_OFF;
const volatile __u32 sched_buffer_count = 1;
const volatile __u32 sched_wakeup_shift = 14;
const volatile enum rtev_save_mode save_mode = RTEV_SAVE_KNOWN;

/* At exec and at the end of the last thread, the kernel has just added the memory that goes away. If another thread
 * ends at the same time and finds none left, it has not: then this is the maximum as of the last exec. */
static __always_inline __u32 max_rss_pages(struct task_struct* task) {
  __u64 pages = BPF_CORE_READ(task, signal, maxrss);
  return pages < (__u32)-1 ? pages : (__u32)-1;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* binary) {
  __u32 tgid = task->tgid, caller = (__u32)old_tid;
  /* Before the record of the exec: it is of the old program. */
  if (sched_mode == RTEV_SCHED_SUMS) {
    end_usage(task, tgid);
    if (caller != tgid) end_usage(task, caller);
  }
  /* These describe the old program: the new one's memory must not be read by them. */
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&rings, &tgid);
  forget_thread(tgid);
  /* The thread that called exec becomes the leader; no exit is seen for the tid it gives up. */
  if (caller != tgid) forget_thread(caller);
  if (follow_only && !is_followed(tgid)) return 0;
  if (!spend_as_user(START_PRICE, USER_RECORD_BUDGET)) {
    count_drop(RTEV_STAT_EXEC_DROPPED);
    return 0;
  }
  struct rtev_lifecycle* record = begin_lifecycle(task, RTEV_EXEC, RTEV_STAT_EXEC_DROPPED);
  if (!record) return 0;
  record->detail = caller == tgid ? 0 : caller;
  record->max_rss_pages = max_rss_pages(task);
  submit_lifecycle(record);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct* parent, struct task_struct* child) {
  __u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
  if (child->pid != child->tgid) return 0;
  /* An earlier process with this tgid may have left an entry. */
  bpf_map_delete_elem(&tracked, &child_tgid);
  bool follows = is_followed(parent_tgid);
  struct rtev_tracked* parent_tracked = bpf_map_lookup_elem(&tracked, &parent_tgid);
  if ((follows || (parent_tracked && !follow_only)) && !spend_as_user(START_PRICE, USER_RECORD_BUDGET)) {
    /* The child is not tracked either: its exit would be another record. */
    count_drop(RTEV_STAT_FORK_DROPPED);
    return 0;
  }
  if (parent_tracked && (follows || !follow_only)) {
    /* The same program at the same addresses, but without a ring of its own so far. */
    struct rtev_tracked child_tracked = *parent_tracked;
    child_tracked.slot = 0;
    count_untracked(bpf_map_update_elem(&tracked, &child_tgid, &child_tracked, BPF_ANY));
  }
  if (follows) {
    /* Before the child can run, so nothing it does is missed. */
    __u8 one = 1;
    count_untracked(bpf_map_update_elem(&followed, &child_tgid, &one, BPF_ANY));
  } else if (follow_only || !parent_tracked) {
    return 0;
  }
  struct rtev_lifecycle* record = begin_lifecycle(parent, RTEV_FORK, RTEV_STAT_FORK_DROPPED);
  if (!record) return 0;
  record->peer = child_tgid;
  record->start_time = child->start_boottime;
  record->ns_pid = namespace_pid(child);
  submit_lifecycle(record);
  return 0;
}

/* The status that wait(2) returns to the parent. */
static __always_inline __u32 exit_status(struct task_struct* leader) {
  struct signal_struct* signal = BPF_CORE_READ(leader, signal);
  return BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code)
                                                          : BPF_CORE_READ(leader, exit_code);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct* task) {
  __u32 tgid = task->tgid;
  bool is_tracked = bpf_map_lookup_elem(&tracked, &tgid) != NULL;
  /* Likewise: the thread still leaves its cpu, but after the record of the exit. */
  if (is_tracked && sched_mode == RTEV_SCHED_SUMS) end_usage(task, task->pid);
  /* Of a process that is not tracked any more: thread_switch may not be attached when the thread leaves its cpu. */
  if (!is_tracked) forget_thread(task->pid);
  if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;
  bool follows = is_followed(tgid);
  if (!follows && (follow_only || !is_tracked)) return 0;

  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  struct process_key process = {.start_time = BPF_CORE_READ(leader, start_boottime), .tgid = tgid};
  __u8 one = 1;
  /* On any other error the exit may be reported twice: better than not at all. */
  if (bpf_map_update_elem(&ended, &process, &one, BPF_NOEXIST) == -EEXIST) return 0;

  struct rtev_lifecycle* record = begin_lifecycle(task, RTEV_EXIT, RTEV_STAT_EXIT_DROPPED);
  if (record) {
    record->detail = exit_status(leader);
    record->max_rss_pages = max_rss_pages(task);
    submit_lifecycle(record);
  }
  /* After the record, which says whether the process was followed. Not between reserve and submit: there the verifier
   * of Linux 6.1 forgets that the record is not NULL. */
  if (follows) bpf_map_delete_elem(&followed, &tgid);
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&rings, &tgid);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
