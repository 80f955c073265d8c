// SPDX-License-Identifier: MIT
// The moment before a ring is unmapped, for programs whose functions cannot be probed, or not yet.
#include "drain.bpf.h"

#include "arch.bpf.h"

struct drained_map drained SEC(".maps");

/* Of all tracepoints that munmap(2) passes with its pages still there, the one that the fewest other things pass: only
 * changes of a program's mappings, and on Linux before 6.4 its page faults. */
SEC("?tp_btf/mmap_lock_start_locking")
int ring_unmapped(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  if (SYSCALL_NUMBER(regs) != SYS_MUNMAP) return 0;
  __u32 tgid = task->tgid;
  struct unopened_ring* ring = bpf_map_lookup_elem(&unopened, &tgid);
  if (!ring || MUNMAP_LENGTH(regs) != ring->length) return 0;
  drain_ring(ring, tgid, MUNMAP_ADDRESS(regs), false);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
