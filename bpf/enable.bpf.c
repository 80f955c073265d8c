// SPDX-License-Identifier: MIT
// Tells when a thread runs of a process whose events are to be switched on: see userspace/enable/. An object of its
// own, loaded only for that. It neither reads nor writes the memory of the process.
#include "arch.bpf.h"
#include "maps.bpf.h"

#define RLIMIT_NOFILE 7  /* asm-generic/resource.h */
#define VM_LOCKED 0x2000 /* linux/mm.h */

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_WANTED);
  __type(key, __u32);
  __type(value, struct rtev_wanted);
} wanted SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_WATCHED);
  __type(key, __u32);
  __type(value, struct rtev_watched);
} watched SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
} running SEC(".maps");

/* mm_struct.flags since Linux 6.18. */
struct mm_flags___bitmap {
  unsigned long __mm_flags[1];
};
struct mm_struct___bitmap {
  struct mm_flags___bitmap flags;
} __attribute__((preserve_access_index));

/* See PR_SET_DUMPABLE in prctl(2): the lowest two bits of the flags of a memory (linux/mm_types.h). */
static __always_inline __u32 is_dumpable(struct task_struct* task) {
  const __u64 dumpable_mask = 3, by_user = 1;
  struct mm_struct* mm = BPF_CORE_READ(task, mm);
  unsigned long flags = 0;
  if (!mm) return 0;
  if (bpf_core_field_exists(struct mm_struct, flags)) {
    flags = BPF_CORE_READ(mm, flags);
  } else {
    struct mm_struct___bitmap* newer = (void*)mm;
    bpf_core_read(&flags, sizeof(flags), &newer->flags);
  }
  return (flags & dumpable_mask) == by_user;
}

static __always_inline bool write(struct task_struct* task, __u64 now, __u32 signal, __u32 changed) {
  struct rtev_running* record = bpf_ringbuf_reserve(&running, sizeof(*record), 0);
  if (!record) return false; /* the next one will do */
  record->time_ns = now;
  record->start_time = BPF_CORE_READ(task, group_leader, start_boottime);
  record->thread_pointer = THREAD_POINTER(task);
  record->tgid = task->tgid;
  record->tid = task->pid;
  record->signal = signal;
  record->dumpable = is_dumpable(task);
  record->changed = changed;
  record->locks = (BPF_CORE_READ(task, mm, def_flags) & VM_LOCKED) != 0;
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
  return true;
}

/* Whether the process runs in the memory of another one: after vfork(2), as posix_spawn(3) does it, until it executes
 * its program. */
static __always_inline bool shares_memory(struct task_struct* task) {
  if (BPF_CORE_READ(task, vfork_done)) return true;
  if (!bpf_core_field_exists(struct mm_struct, owner)) return false;
  struct task_struct* owner = BPF_CORE_READ(task, mm, owner);
  return owner && BPF_CORE_READ(owner, tgid) != task->tgid;
}

/* A count of zeros among the first bits of a bitmap. */
struct count {
  const unsigned long* bitmap;
  __u64 bits;
  __u64 enough; /* of zeros */
  __u64 zeros;
};

static long count_word(__u32 at, struct count* count) {
  const __u64 before = (__u64)at * 64;
  unsigned long word = 0;
  if (before >= count->bits || count->zeros >= count->enough) return 1; /* no more */
  if (bpf_probe_read_kernel(&word, sizeof(word), count->bitmap + at) != 0) return 1;
  if (count->bits - before < 64) word |= ~0ul << (count->bits - before);
  count->zeros += __builtin_popcountl(~word);
  return 0;
}

static __noinline bool has_zeros(const unsigned long* bitmap, __u64 bits, __u64 enough) {
  const __u32 max_words = 256; /* as full_fds_bits has for the most descriptors, 2^20 (fs.nr_open) */
  struct count count = {.bitmap = bitmap, .bits = bits, .enough = enough};
  bpf_loop(max_words, count_word, &count, 0);
  return count.zeros >= enough;
}

/* Whether it can open few files more: children that it forks open one. */
static __always_inline bool lacks_files(struct task_struct* task) {
  const __u64 fewest = 8, most = 128, most_counted = 4096;
  __u64 limit = BPF_CORE_READ(task, signal, rlim[RLIMIT_NOFILE].rlim_cur), spare = limit / 16;
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (spare < fewest) spare = fewest;
  if (spare > most) spare = most;
  if (!table || BPF_CORE_READ(table, max_fds) + spare <= limit) return false; /* it has room to grow */
  if (limit <= most_counted) return !has_zeros(BPF_CORE_READ(table, open_fds), limit, spare);
  /* A bit for each 64 descriptors that are all open. */
  return !has_zeros(BPF_CORE_READ(table, full_fds_bits), limit / 64, spare);
}

/* Reports a process once: its entry goes with the report. */
static __always_inline void report_change(struct task_struct* task, __u32 tgid) {
  struct rtev_watched* process = bpf_map_lookup_elem(&watched, &tgid);
  if (!process || shares_memory(task)) return;
  const __u64 root = (__u64)BPF_CORE_READ(task, fs, root.dentry), mount = (__u64)BPF_CORE_READ(task, fs, root.mnt),
              mounts = (__u64)BPF_CORE_READ(task, nsproxy, mnt_ns);
  if (!root || !mount || !mounts) return; /* it is about to end */
  /* Each by itself: another cpu may be here, too. */
  if (!process->root) process->root = root;
  if (!process->mount) process->mount = mount;
  if (!process->mounts) process->mounts = mounts;
  __u32 changed = 0;
  if (process->user != BPF_CORE_READ(task, real_cred, euid.val))
    changed = RTEV_CHANGED_USER;
  else if (process->mounts != mounts)
    changed = RTEV_CHANGED_MOUNTS;
  else if (process->root != root || process->mount != mount)
    changed = RTEV_CHANGED_ROOT;
  else if (!process->may_filter && BPF_CORE_READ(task, seccomp.mode))
    changed = RTEV_CHANGED_FILTER;
  else if (lacks_files(task))
    changed = RTEV_CHANGED_FILES;
  if (changed && write(task, bpf_ktime_get_ns(), 0, changed)) bpf_map_delete_elem(&watched, &tgid);
}

static __always_inline void report(struct task_struct* task) {
  __u32 tgid = task->tgid;
  if (!tgid || !task->mm) return; /* it is about to end */
  report_change(task, tgid);
  struct rtev_wanted* process = bpf_map_lookup_elem(&wanted, &tgid);
  if (!process || shares_memory(task)) return; /* what is written would be in the other process */
  __u64 now = bpf_ktime_get_ns(), not_before_ns = process->not_before_ns;
  /* The exchange lets one of several cpus report. */
  if (now < not_before_ns || __sync_val_compare_and_swap(&process->not_before_ns, not_before_ns,
                                                         now + RTEV_RUNNING_INTERVAL_NS) != not_before_ns)
    return;
  write(task, now, 0, 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(enable_switch, bool preempted, struct task_struct* prev, struct task_struct* next) {
  report_change(prev, prev->tgid); /* it may sleep for long */
  report(next);
  return 0;
}

/* A thread that never leaves its cpu is seen at the kernel's tick. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(enable_tick) {
  report(bpf_get_current_task_btf());
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(enable_exit, struct task_struct* task) {
  __u32 tgid = task->tgid, signal = task->exit_code & 0x7f;
  if (signal && bpf_map_lookup_elem(&wanted, &tgid)) write(task, bpf_ktime_get_ns(), signal, 0);
  /* The last thread: the next process with its pid is another one. */
  if (BPF_CORE_READ(task, signal, live.counter) == 0) {
    bpf_map_delete_elem(&wanted, &tgid);
    bpf_map_delete_elem(&watched, &tgid);
  }
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
