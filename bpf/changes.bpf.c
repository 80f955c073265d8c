// SPDX-License-Identifier: MIT
// Tells whether a file is being changed, and what its mappings are like. Runs when user space asks, not on events.
#include "maps.bpf.h"

/* Of a semaphore's count, where it has one: kernels with PREEMPT_RT have another kind. */
#define HELD_BY_WRITER 1

/* Returns 1 if reading or mapping this open file of the calling process may wait. Whatever changes the size of a file,
 * or cuts a hole, holds the semaphore of its inode, on all file systems. What visits all mappings of a file holds
 * i_mmap_rwsem, for which mmap(2) and munmap(2) of the file wait; each end of a program that maps it does so briefly.
 */
SEC("syscall")
int file_is_changing(struct rtev_open_file* asked) {
  struct file* file = open_file(bpf_get_current_task_btf(), asked->fd);
  if (!file || !bpf_core_field_exists(struct rw_semaphore, count)) return 0;
  return (BPF_CORE_READ(file, f_inode, i_rwsem.count.counter) & HELD_BY_WRITER) ||
         (asked->is_to_be_mapped && BPF_CORE_READ(file, f_mapping, i_mmap_rwsem.count.counter) != 0);
}

/* How often the lock of a memory map is looked at again, over all of a file's mappings. Nearly all are held for a few
 * microseconds. This takes less than a millisecond. */
#define MAX_LOOKS 4096
/* Each mapping is met up to three times: from above, and from below on both sides. */
#define MAX_STEPS (3 * RTEV_MAX_MAPPINGS + MAX_LOOKS)

/* A walk through the tree of a file's mappings, in which each one comes before those below it. */
struct mappings_walk {
  struct rb_node* node; /* NULL: the walk is over */
  struct rb_node* from; /* where it was before */
  __u32 mappings;       /* so far */
  __u32 looks;          /* at locks that were held */
  __u32 result;         /* enum rtev_mappings */
};

/* Any holder counts: to attach or detach a uprobe, the kernel takes the lock as a writer. */
static __always_inline bool is_map_locked(struct rb_node* node) {
  void* begin = (void*)node - bpf_core_field_offset(struct vm_area_struct___shared, shared.rb);
  struct vm_area_struct* mapping = begin;
  return bpf_core_field_exists(struct rw_semaphore, count) &&
         BPF_CORE_READ(mapping, vm_mm, mmap_lock.count.counter) != 0;
}

static long visit_mapping(__u64 index, void* context) {
  struct mappings_walk* walk = context;
  struct rb_node* node = walk->node;
  if (!node) return 1;
  struct rb_node* left = BPF_CORE_READ(node, rb_left);
  struct rb_node* right = BPF_CORE_READ(node, rb_right);
  /* The lowest bits hold the colour. */
  struct rb_node* parent = (struct rb_node*)(BPF_CORE_READ(node, __rb_parent_color) & ~3ul);
  struct rb_node* next = parent;
  if (walk->from == parent) {
    if (is_map_locked(node)) {
      if (++walk->looks < MAX_LOOKS) return 0;
      walk->result = RTEV_MAPPINGS_LOCKED;
      return 1;
    }
    if (++walk->mappings > RTEV_MAX_MAPPINGS) {
      walk->result = RTEV_MAPPINGS_MANY;
      return 1;
    }
    if (left)
      next = left;
    else if (right)
      next = right;
  } else if (walk->from == left && right) {
    next = right;
  }
  walk->from = node;
  walk->node = next;
  return 0;
}

static long find_mapped_file(struct task_struct* task, struct vm_area_struct* mapping, void* context) {
  struct address_space** found = context;
  *found = BPF_CORE_READ(mapping, vm_file, f_mapping);
  return 0;
}

/* Returns an enum rtev_mappings for an open file of the calling process. The file on an overlay has no mappings: who
 * maps it maps the file below, whose inode uprobes use, too. That one is found by the caller's own mapping. It is
 * another one than uprobes use if the file was copied to the upper layer after it had been opened: then nothing is seen
 * of its mappings.
 *
 * The tree is read without its lock. What changes it meanwhile can hide mappings, or show some twice. */
SEC("syscall")
int file_mappings(struct rtev_open_file* asked) {
  struct address_space* mapped = NULL;
  if (asked->address) {
    bpf_find_vma(bpf_get_current_task_btf(), asked->address, find_mapped_file, &mapped, 0);
    if (!mapped) return RTEV_MAPPINGS_LOCKED; /* another thread holds the lock of the memory map */
  } else {
    struct file* file = open_file(bpf_get_current_task_btf(), asked->fd);
    if (!file) return RTEV_MAPPINGS_FREE;
    mapped = BPF_CORE_READ(file, f_mapping);
  }
  /* The verifier of Linux 6.1 looks at one step only, and removes what cannot happen in it. So it must not know that
   * the counters begin with 0. */
  __u32 zero = asked->zero;
  struct mappings_walk walk = {.node = BPF_CORE_READ(mapped, i_mmap.rb_root.rb_node),
                               .from = (struct rb_node*)(unsigned long)zero,
                               .mappings = zero,
                               .looks = zero,
                               .result = zero};
  bpf_loop(MAX_STEPS, visit_mapping, &walk, 0);
  if (walk.result == RTEV_MAPPINGS_FREE && walk.node) return RTEV_MAPPINGS_MANY;
  return walk.result;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
