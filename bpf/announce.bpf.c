// SPDX-License-Identifier: MIT
// A process maps its ring: announces the ring to user space.
#include "arch.bpf.h"
#include "rings.bpf.h"

#define FMODE_WRITE 0x2
#define PROT_WRITE 0x2
#define MAP_TYPE 0x0f
#define MAP_SHARED 0x01
#define MAP_SHARED_VALIDATE 0x03

/* So far, of all processes. User space looks the process up in `announced` only if this has changed. */
__u64 announcements;

/* True for <digits>.events. Only the last digit and the suffix are checked, since user space checks the rest. Compared
 * by hand: clang would turn memcmp into a call of a function that does not exist in BPF. */
static __always_inline bool is_ring_name(struct dentry* dentry) {
  char tail[8];
  __u32 length = BPF_CORE_READ(dentry, d_name.len);
  if (length < sizeof(tail)) return false;
  const unsigned char* name = BPF_CORE_READ(dentry, d_name.name);
  if (bpf_probe_read_kernel(tail, sizeof(tail), name + length - sizeof(tail))) return false;
  return tail[0] >= '0' && tail[0] <= '9' && tail[1] == '.' && tail[2] == 'e' && tail[3] == 'v' && tail[4] == 'e' &&
         tail[5] == 'n' && tail[6] == 't' && tail[7] == 's';
}

/* Host CLOCK_MONOTONIC minus the process's time-namespace clock, in ns. Times in the process's ring are of the latter.
 */
static __always_inline __s64 clock_offset(struct task_struct* task) {
  if (!bpf_core_field_exists(struct time_namespace, offsets)) return 0;
  struct time_namespace* space = BPF_CORE_READ(task, nsproxy, time_ns);
  if (!space) return 0;
  return -(BPF_CORE_READ(space, offsets.monotonic.tv_sec) * 1000000000LL +
           BPF_CORE_READ(space, offsets.monotonic.tv_nsec));
}

#define NAME_BYTES 256 /* of the longest file name, with its NUL */
#define PATH_NAMES 64

/* Where a record is put together, since its length varies. One for each cpu is enough: a tracing program is not
 * re-entered on a cpu where it runs. */
struct record_scratch {
  struct rtev_ring_record record;
  char overrun[NAME_BYTES];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct record_scratch);
} record_scratch SEC(".maps");

/* The walk from a file up to the root of its file system. */
struct dentry_walk {
  struct dentry* dentry;
  struct rtev_file* file;
  char* paths;
  bool at_root;
};

static long walk_up(__u32 step, struct dentry_walk* walk) {
  struct dentry* dentry = walk->dentry;
  struct dentry* parent = BPF_CORE_READ(dentry, d_parent);
  if (!parent || parent == dentry) {
    walk->at_root = true;
    return 1;
  }
  __u32 bytes = walk->file->path_bytes;
  if (bytes > RTEV_MAX_PATH_BYTES - NAME_BYTES) return 1;
  const unsigned char* name = BPF_CORE_READ(dentry, d_name.name);
  long length = bpf_probe_read_kernel_str(walk->paths + bytes, NAME_BYTES, name);
  if (length <= 1) return 1;
  walk->file->path_bytes = bytes + length;
  walk->dentry = parent;
  return 0;
}

/* Writes the identity of a file, and its path to `paths`. A rename during the walk gives a path that does not exist.
 * Not a plain loop: the verifier would explore each step of it, and gives up when a signal arrives meanwhile. */
static __always_inline void describe_file(struct file* file, struct rtev_file* description, char* paths) {
  struct dentry* dentry = BPF_CORE_READ(file, f_path.dentry);
  struct dentry_walk walk = {.dentry = dentry, .file = description, .paths = paths};
  description->inode = BPF_CORE_READ(file, f_inode, i_ino);
  description->device = BPF_CORE_READ(dentry, d_sb, s_dev);
  description->path_bytes = 0;
  bpf_loop(PATH_NAMES, walk_up, &walk, 0);
  if (!walk.at_root) description->path_bytes = 0;
}

/* An address that lies within the mapping. The kernel may look for more room than requested, so that it can align the
 * mapping to large pages within. Wherever in that room the mapping begins, it contains the address that lies as far
 * behind the beginning of the room as the room exceeds the mapping. */
static __always_inline __u64 address_within(__u64 found, __u64 room, __u64 length) {
  const __u64 page = 4096;
  __u64 pages = (length + page - 1) & ~(page - 1);
  return room > pages && room - pages < pages ? found + (room - pages) : found;
}

static __always_inline void remember_ring(__u32 tgid, const struct rtev_ring_record* record, __u64 address) {
  __u32 zero = 0;
  __u64 announced_ns = record->lifecycle.time_ns;
  if (save_mode == RTEV_SAVE_OFF) return;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings_scratch, &zero);
  if (!ring) return;
  /* The other fields are always zero in the scratch element. */
  ring->announced_ns = announced_ns;
  ring->inode = record->ring.inode;
  ring->length = record->lifecycle.detail;
  ring->address = address;
  count_untracked(bpf_map_update_elem(&rings, &tgid, ring, BPF_ANY));
}

/* False if user space gets no record of the ring. */
static __always_inline bool announce_ring(struct task_struct* task, struct file* ring, __u64 length, __u64 address,
                                          __u32 price_of_user) {
  __u32 zero = 0, tgid = task->tgid;
  struct record_scratch* scratch = bpf_map_lookup_elem(&record_scratch, &zero);
  if (!scratch) return false;
  struct rtev_ring_record* record = &scratch->record;
  fill_lifecycle(&record->lifecycle, task, RTEV_RING);
  bpf_map_update_elem(&announced, &tgid, &record->lifecycle.time_ns, BPF_ANY);
  __sync_fetch_and_add(&announcements, 1);
  if (!spend_as_process(RING_PRICE) || !spend_as_user(price_of_user, USER_RECORD_BUDGET)) {
    count_dropped_announcement(RTEV_STAT_RING_DROPPED);
    return false;
  }
  record->lifecycle.detail = length;
  record->clock_offset = clock_offset(task);
  record->address = address;
  describe_file(ring, &record->ring, record->paths);
  remember_ring(tgid, record, address);
  __u32 bytes = record->ring.path_bytes;
  if (bytes > RTEV_MAX_PATH_BYTES) return false; /* cannot happen; for the verifier */
  describe_file(BPF_CORE_READ(task, mm, exe_file), &record->program, record->paths + bytes);
  bytes += record->program.path_bytes;
  if (bytes > sizeof(record->paths)) return false; /* likewise */
  if (has_lifecycle_room(RTEV_RING) &&
      !bpf_ringbuf_output(&lifecycle, record, offsetof(struct rtev_ring_record, paths) + bytes, BPF_RB_FORCE_WAKEUP))
    return true;
  count_dropped_announcement(RTEV_STAT_RING_DROPPED);
  return false;
}

/* The kernel looks for address space for a mapping: every mmap of every program passes here, also in stripped and
 * static programs. The mapping does not exist yet. `info->length` is padded, so the length is taken from the system
 * call. */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(ring_announced, unsigned long address, struct vm_unmapped_area_info* info) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  if (SYSCALL_NUMBER(regs) != SYS_MMAP) return 0;
  __u64 type = PT_REGS_PARM4_CORE_SYSCALL(regs) & MAP_TYPE;
  if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE) return 0;
  /* A read-only mapping is that of a reader, such as this tracer. */
  if (!(PT_REGS_PARM3_CORE_SYSCALL(regs) & PROT_WRITE)) return 0;
  struct file* file = open_file(task, (__u32)PT_REGS_PARM5_CORE_SYSCALL(regs));
  if (!file || !is_ring_name(BPF_CORE_READ(file, f_path.dentry))) return 0;
  /* Ignore files not opened for writing, or a process could announce another's ring: the kernel has not checked the
   * mode yet. */
  if (!(BPF_CORE_READ(file, f_mode) & FMODE_WRITE)) return 0;
  __u32 tgid = task->tgid;
  if (follow_only && !is_followed(tgid)) return 0;
  /* An OCaml process. Tracked from here on, so that its exit is reported even if user space reads this record late. */
  struct rtev_tracked fresh = {};
  long tracked_before = bpf_map_update_elem(&tracked, &tgid, &fresh, BPF_NOEXIST);
  count_untracked(tracked_before);
  __u64 length = PT_REGS_PARM2_CORE_SYSCALL(regs);
  __u32 price = tracked_before ? RING_PRICE : RING_PRICE + START_PRICE; /* with its exit, which is reported then */
  if (announce_ring(task, file, length, address_within(address, info->length, length), price) || tracked_before)
    return 0;
  /* Nobody would ask for its ring, and a user whose budget is used up would cause a record of its exit. */
  bpf_map_delete_elem(&tracked, &tgid);
  bpf_map_delete_elem(&rings, &tgid);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
