// SPDX-License-Identifier: MIT
// Saves rings right before they are unmapped: by the kernel when the process runs another program, and by the runtime
// in programs whose functions cannot be probed, or are not probed yet.
#include "arch.bpf.h"
#include "save_ring.bpf.h"

struct saved_map saved SEC(".maps");
struct save_budgets_map save_budgets SEC(".maps");

/* Also saves rings that user space has open: the next program may reuse the ring file before user space has read it. */
static __always_inline void save_before_exec(struct task_struct* task, struct rtev_ring* ring) {
  __u64 begin = find_mapping(ring);
  /* It is the last save if no other thread is alive that could still write. */
  if (begin) save_ring(ring, task->tgid, begin, BPF_CORE_READ(task, signal, live.counter) == 1);
}

/* Linux 6.10 and newer. The exec cannot fail any more, but the thread that calls it has not ended the others yet. */
SEC("?tp_btf/sched_prepare_exec")
int ring_before_exec(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (!ring) return 0;
  ring->in_exec = true;
  save_before_exec(task, ring);
  return 0;
}

/* Saves what those other threads wrote meanwhile. Before Linux 6.16 their memory is gone at this point. */
SEC("?tp_btf/sched_process_exit")
int ring_before_thread_end(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (ring && ring->in_exec && BPF_CORE_READ(task, mm)) save_before_exec(task, ring);
  return 0;
}

/* Of the tracepoints that munmap(2) passes before the pages are gone, this is the one that fires least otherwise: only
 * on changes of a program's mappings, and before Linux 6.4 on its page faults. Exec passes it, too, right before it
 * releases the memory. */
SEC("?tp_btf/mmap_lock_start_locking")
int BPF_PROG(ring_unmapped, struct mm_struct* memory) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  __s64 call = SYSCALL_NUMBER(regs);
  bool in_exec = call == SYS_EXECVE || call == SYS_EXECVEAT;
  if (call != SYS_MUNMAP && !in_exec) return 0;
  /* Exec also locks the memory of the next program while it builds it. */
  if (memory != task->mm) return 0;
  __u32 tgid = task->tgid;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (!ring) return 0;
  if (in_exec)
    save_before_exec(task, ring);
  else if (PT_REGS_PARM2_CORE_SYSCALL(regs) == ring->length && !is_opened(tgid, ring))
    save_ring(ring, tgid, FIRST_SYSCALL_ARGUMENT(regs), false);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
