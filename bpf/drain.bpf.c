// SPDX-License-Identifier: MIT
// The moments before a ring is unmapped: by its runtime, for programs whose functions cannot be probed, or not yet, and
// by the kernel, when the process runs another program.
#include "drain.bpf.h"

#include "arch.bpf.h"

struct drained_map drained SEC(".maps");

/* User space may have the ring open and come too late all the same: the next program may take its file over. */
static __always_inline void drain_before_exec(struct task_struct* task, struct rtev_ring* ring) {
  __u64 begin = find_mapping(ring);
  /* Whoever else is counted as alive may still write to it. */
  if (begin) drain_ring(ring, task->tgid, begin, false, task->signal->live.counter == 1);
}

/* Linux 6.10 and newer. There is no way back for the thread that calls exec, but it has not ended the others yet. */
SEC("?tp_btf/sched_prepare_exec")
int ring_before_exec(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (!ring) return 0;
  ring->execs = true;
  drain_before_exec(task, ring);
  return 0;
}

/* What those others wrote meanwhile. Before Linux 6.16 their memory is gone here. */
SEC("?tp_btf/sched_process_exit")
int ring_before_thread_end(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (ring && ring->execs && task->mm) drain_before_exec(task, ring);
  return 0;
}

/* Of all tracepoints that munmap(2) passes with its pages still there, the one that the fewest other things pass: only
 * changes of a program's mappings, and on Linux before 6.4 its page faults. Exec passes it, too, right before it lets
 * the memory go. */
SEC("?tp_btf/mmap_lock_start_locking")
int BPF_PROG(ring_unmapped, struct mm_struct* memory) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  __s64 call = SYSCALL_NUMBER(regs);
  bool execs = call == SYS_EXECVE || call == SYS_EXECVEAT;
  if (call != SYS_MUNMAP && !execs) return 0;
  /* Exec puts the next program's memory together at the same time. */
  if (memory != task->mm) return 0;
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (!ring) return 0;
  if (execs)
    drain_before_exec(task, ring);
  else if (MUNMAP_LENGTH(regs) == ring->length && !is_opened(tgid, ring))
    drain_ring(ring, tgid, MUNMAP_ADDRESS(regs), false, false);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
