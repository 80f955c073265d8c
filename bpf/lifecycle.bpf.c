// SPDX-License-Identifier: MIT
// Processes begin, fork, end; rings are born.
#include "arch.bpf.h"
#include "rings.bpf.h"

#define SIGNAL_GROUP_EXIT 0x4
#define FMODE_WRITE 0x2
#define PROT_WRITE 0x2
#define MAP_TYPE 0x0f
#define MAP_SHARED 0x01
#define MAP_SHARED_VALIDATE 0x03

struct tracked_map tracked SEC(".maps");
struct threads_map threads SEC(".maps");
struct followed_map followed SEC(".maps");
struct lifecycle_map lifecycle SEC(".maps");
struct stats_map stats SEC(".maps");
struct rings_map rings SEC(".maps");
struct rings_scratch_map rings_scratch SEC(".maps");
struct opened_map opened SEC(".maps");
struct births_map births SEC(".maps");

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
const volatile enum rtev_drain_mode drain_mode = RTEV_DRAIN_KNOWN;

/* Both at exec and at the end of the last thread the kernel has just added what the memory that goes away came to. Not
 * yet if it is another thread, ending at the same time, that finds none left: then it is what it was at the last exec.
 */
static __always_inline __u32 max_rss_pages(struct task_struct* task) {
  __u64 pages = task->signal->maxrss;
  return pages < (__u32)-1 ? pages : (__u32)-1;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* binary) {
  __u32 tgid = task->tgid, caller = (__u32)old_tid;
  /* What is known is of the old program: never read the new one's memory by it. */
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&rings, &tgid);
  bpf_map_delete_elem(&threads, &tgid);
  /* The thread that called exec becomes the leader, and its own number is free without its end being seen. */
  if (caller != tgid) bpf_map_delete_elem(&threads, &caller);
  if (follow_only && !is_followed(tgid)) return 0;
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
  if (record) {
    record->detail = exit_status(task->group_leader);
    record->max_rss_pages = max_rss_pages(task);
    submit_lifecycle(record);
  }
  /* Behind the record, which says whether the process was followed. Not between its two halves: the verifier of
   * Linux 6.1 forgets there that it is not NULL. */
  if (follows) bpf_map_delete_elem(&followed, &tgid);
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&rings, &tgid);
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

static __always_inline struct file* open_file(struct task_struct* task, __u32 fd) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (fd >= BPF_CORE_READ(table, max_fds)) return NULL;
  struct file** files = BPF_CORE_READ(table, fd);
  struct file* file = NULL;
  return bpf_probe_read_kernel(&file, sizeof(file), files + fd) ? NULL : file;
}

/* What the process's clock, which its ring's times are of, lacks to the host's. */
static __always_inline __s64 clock_offset(struct task_struct* task) {
  if (!bpf_core_field_exists(struct time_namespace, offsets)) return 0;
  struct time_namespace* space = BPF_CORE_READ(task, nsproxy, time_ns);
  if (!space) return 0;
  return -(BPF_CORE_READ(space, offsets.monotonic.tv_sec) * 1000000000LL +
           BPF_CORE_READ(space, offsets.monotonic.tv_nsec));
}

#define NAME_BYTES 256 /* of the longest name, with its NUL */
#define PATH_NAMES 64

/* Where a birth is put together, since its length varies. One a cpu is enough: a tracing program is not entered again
 * on a cpu where it runs. */
struct birth_room {
  struct rtev_birth birth;
  char overrun[NAME_BYTES];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct birth_room);
} birth_scratch SEC(".maps");

/* The way from a file up to the root of its file system. */
struct climb {
  struct dentry* dentry;
  struct rtev_file* told;
  char* paths;
  bool at_root;
};

static long climb_up(__u32 step, struct climb* climb) {
  struct dentry* dentry = climb->dentry;
  struct dentry* parent = BPF_CORE_READ(dentry, d_parent);
  if (!parent || parent == dentry) {
    climb->at_root = true;
    return 1;
  }
  __u32 bytes = climb->told->path_bytes;
  if (bytes > RTEV_PATH - NAME_BYTES) return 1;
  const unsigned char* name = BPF_CORE_READ(dentry, d_name.name);
  long length = bpf_probe_read_kernel_str(climb->paths + bytes, NAME_BYTES, name);
  if (length <= 1) return 1;
  climb->told->path_bytes = bytes + length;
  climb->dentry = parent;
  return 0;
}

/* Tells what identifies a file and writes its path to `paths`. What is renamed meanwhile makes a path that leads
 * nowhere. Not a plain loop: the verifier would walk it step by step, and takes any signal meanwhile for a reason to
 * give up. */
static __always_inline void describe_file(struct file* file, struct rtev_file* told, char* paths) {
  struct dentry* dentry = BPF_CORE_READ(file, f_path.dentry);
  struct climb climb = {.dentry = dentry, .told = told, .paths = paths};
  told->inode = BPF_CORE_READ(file, f_inode, i_ino);
  told->device = BPF_CORE_READ(dentry, d_sb, s_dev);
  told->path_bytes = 0;
  bpf_loop(PATH_NAMES, climb_up, &climb, 0);
  if (!climb.at_root) told->path_bytes = 0;
}

static __always_inline void announce_ring(struct task_struct* task, struct file* ring, __u64 length, __u64 inside) {
  __u32 zero = 0;
  struct birth_room* room = bpf_map_lookup_elem(&birth_scratch, &zero);
  if (!room) return;
  struct rtev_birth* birth = &room->birth;
  fill_lifecycle(&birth->lifecycle, task, RTEV_RING);
  birth->lifecycle.detail = length;
  birth->clock_offset = clock_offset(task);
  describe_file(ring, &birth->ring, birth->paths);
  note_birth(birth->lifecycle.tgid, birth, inside);
  __u32 bytes = birth->ring.path_bytes;
  if (bytes > RTEV_PATH) return; /* never; for the verifier */
  describe_file(BPF_CORE_READ(task, mm, exe_file), &birth->program, birth->paths + bytes);
  bytes += birth->program.path_bytes;
  if (bytes > sizeof(birth->paths)) return; /* likewise */
  if (bpf_ringbuf_output(&lifecycle, birth, offsetof(struct rtev_birth, paths) + bytes, BPF_RB_FORCE_WAKEUP))
    count_drop(RTEV_STAT_RING_DROPPED);
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
  struct file* file = open_file(task, MMAP_FD(regs));
  if (!file || !is_ring_name(BPF_CORE_READ(file, f_path.dentry))) return 0;
  /* Not checked by the kernel so far. Nobody shall announce a ring that he may not write: it is another's. */
  if (!(BPF_CORE_READ(file, f_mode) & FMODE_WRITE)) return 0;
  __u32 tgid = task->tgid;
  if (follow_only && !is_followed(tgid)) return 0;
  /* It is OCaml's. Tracked from here on, so that its exit is told even if user space hears of it only then. */
  struct rtev_tracked newborn = {};
  count_untracked(bpf_map_update_elem(&tracked, &tgid, &newborn, BPF_NOEXIST));
  __u64 length = MMAP_LENGTH(regs);
  announce_ring(task, file, length, address_inside(address, info->length, length));
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
