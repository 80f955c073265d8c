// SPDX-License-Identifier: MIT
// Processes begin, fork, end; rings are born.
#include "arch.bpf.h"
#include "maps.bpf.h"

#define SIGNAL_GROUP_EXIT 0x4
#define PROT_WRITE 0x2
#define MAP_TYPE 0x0f
#define MAP_SHARED 0x01
#define MAP_SHARED_VALIDATE 0x03

struct tracked_map tracked SEC(".maps");
struct threads_map threads SEC(".maps");
struct followed_map followed SEC(".maps");
struct lifecycle_map lifecycle SEC(".maps");
struct stats_map stats SEC(".maps");

/* Processes whose end was told. When two threads end at the same time, each may find that none is left. */
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

const volatile bool follow_only = false;

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* binary) {
  __u32 tgid = task->tgid, caller = (__u32)old_tid;
  /* What is known is of the old program: never read the new one's memory by it. */
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&threads, &tgid);
  /* The thread that called exec becomes the leader, and its own number is free without its end being seen. */
  if (caller != tgid) bpf_map_delete_elem(&threads, &caller);
  if (follow_only && !is_followed(tgid)) return 0;
  struct rtev_lifecycle* record = begin_lifecycle(task, RTEV_EXEC, RTEV_STAT_EXEC_DROPPED);
  if (!record) return 0;
  record->detail = caller == tgid ? 0 : caller;
  submit_lifecycle(record);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct* parent, struct task_struct* child) {
  __u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
  if (child->pid != child->tgid) return 0;
  /* An earlier process of this number may have left its facts behind. */
  bpf_map_delete_elem(&tracked, &child_tgid);
  bool follows = is_followed(parent_tgid);
  struct rtev_tracked* parent_facts = bpf_map_lookup_elem(&tracked, &parent_tgid);
  if (parent_facts && (follows || !follow_only)) {
    /* The same image at the same place, but with no ring of its own yet. */
    struct rtev_tracked facts = *parent_facts;
    facts.slot = 0;
    count_untracked(bpf_map_update_elem(&tracked, &child_tgid, &facts, BPF_ANY));
  }
  if (follows) {
    /* Before the child can run: nothing it does is missed. */
    __u8 one = 1;
    count_untracked(bpf_map_update_elem(&followed, &child_tgid, &one, BPF_ANY));
  } else if (follow_only || !parent_facts) {
    return 0;
  }
  struct rtev_lifecycle* record = begin_lifecycle(parent, RTEV_FORK, RTEV_STAT_FORK_DROPPED);
  if (!record) return 0;
  record->peer = child_tgid;
  record->start_time = child->start_boottime;
  submit_lifecycle(record);
  return 0;
}

/* As wait(2) gives it to the parent. */
static __always_inline __u32 exit_status(struct task_struct* leader) {
  struct signal_struct* signal = leader->signal;
  return signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : leader->exit_code;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct* task) {
  __u32 tgid = task->tgid;
  if (task->signal->live.counter != 0) return 0;
  bool follows = is_followed(tgid);
  if (!follows && (follow_only || !bpf_map_lookup_elem(&tracked, &tgid))) return 0;

  struct process_key process = {.start_time = task->group_leader->start_boottime, .tgid = tgid};
  __u8 one = 1;
  /* Any other error: better told twice than not at all. */
  if (bpf_map_update_elem(&ended, &process, &one, BPF_NOEXIST) == -EEXIST) return 0;

  struct rtev_lifecycle* record = begin_lifecycle(task, RTEV_EXIT, RTEV_STAT_EXIT_DROPPED);
  if (follows) bpf_map_delete_elem(&followed, &tgid);
  bpf_map_delete_elem(&tracked, &tgid);
  if (!record) return 0;
  record->detail = exit_status(task->group_leader);
  submit_lifecycle(record);
  return 0;
}

/* True for <digits>.events; only the end is looked at, since the runtime makes up the rest. */
static __always_inline bool is_ring_name(struct dentry* dentry) {
  /* A digit and the suffix. Compared by hand: memcmp would become a call of a function that is not there. */
  char tail[8];
  __u32 length = BPF_CORE_READ(dentry, d_name.len);
  if (length < sizeof(tail)) return false;
  const unsigned char* name = BPF_CORE_READ(dentry, d_name.name);
  if (bpf_probe_read_kernel(tail, sizeof(tail), name + length - sizeof(tail))) return false;
  return tail[0] >= '0' && tail[0] <= '9' && tail[1] == '.' && tail[2] == 'e' && tail[3] == 'v' && tail[4] == 'e' &&
         tail[5] == 'n' && tail[6] == 't' && tail[7] == 's';
}

static __always_inline struct dentry* open_file_name(struct task_struct* task, __u32 fd) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (fd >= BPF_CORE_READ(table, max_fds)) return NULL;
  struct file** files = BPF_CORE_READ(table, fd);
  struct file* file = NULL;
  if (bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file) return NULL;
  return BPF_CORE_READ(file, f_path.dentry);
}

/* The kernel looks for room for a mapping: the one place that every mmap of every program passes. The mapping is not
 * there yet, and the length in `info` is padded, so the length comes from the system call. */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(ring_birth, unsigned long address, struct vm_unmapped_area_info* info) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  if (SYSCALL_NUMBER(regs) != SYS_MMAP) return 0;
  __u64 type = MMAP_FLAGS(regs) & MAP_TYPE;
  if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE) return 0;
  /* Who only reads a ring is not its program, but a reader such as this tracer. */
  if (!(MMAP_PROTECTION(regs) & PROT_WRITE)) return 0;
  struct dentry* name = open_file_name(task, MMAP_FD(regs));
  if (!name || !is_ring_name(name)) return 0;
  __u32 tgid = task->tgid;
  if (follow_only && !is_followed(tgid)) return 0;
  /* It is OCaml's. Tracked from here on, so that its exit is told even if user space hears of it only then. */
  struct rtev_tracked newborn = {};
  count_untracked(bpf_map_update_elem(&tracked, &tgid, &newborn, BPF_NOEXIST));

  struct rtev_lifecycle* record = begin_lifecycle(task, RTEV_RING, RTEV_STAT_RING_DROPPED);
  if (!record) return 0;
  record->detail = MMAP_LENGTH(regs);
  submit_lifecycle(record);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
