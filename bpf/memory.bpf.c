// SPDX-License-Identifier: MIT
// How much memory the control group of a process has left: see userspace/kernel/group_memory.hpp. An object of its own,
// for those who need nothing else.
#include "maps.bpf.h"

#define MAX_GROUP_DEPTH 128

const volatile __u32 page_shift = 12;

/* Of the counts that a group keeps, with those of the groups below it: NR_INACTIVE_FILE and NR_ACTIVE_FILE, in pages,
 * and NR_SLAB_RECLAIMABLE_B, in bytes. All kernels since 6.1 keep them there. */
#define INACTIVE_FILE 2
#define ACTIVE_FILE 3
#define SLAB_RECLAIMABLE 5

struct walk {
  struct page_counter* counter; /* NULL above the root */
  __u64 pages_left;             /* of those below it */
};

/* Memory that the kernel reclaims when a group is full: page cache, and slabs such as unused dentries and inodes. Of
 * these a quarter: how many are in use, as those of files of a tmpfs are, is not counted. */
static __always_inline __u64 reclaimable_pages(struct page_counter* counter) {
  struct mem_cgroup* group = (void*)counter - bpf_core_field_offset(struct mem_cgroup, memory);
  struct memcg_vmstats* counts = BPF_CORE_READ(group, vmstats);
  long inactive = 0, active = 0, slab = 0;
  if (!counts) return 0;
  bpf_core_read(&inactive, sizeof(inactive), &counts->state[INACTIVE_FILE]);
  bpf_core_read(&active, sizeof(active), &counts->state[ACTIVE_FILE]);
  bpf_core_read(&slab, sizeof(slab), &counts->state[SLAB_RECLAIMABLE]);
  return (inactive > 0 ? inactive : 0) + (active > 0 ? active : 0) + (slab > 0 ? slab >> page_shift >> 2 : 0);
}

static long go_up(__u32 depth, struct walk* walk) {
  struct page_counter* counter = walk->counter;
  const __u64 max = BPF_CORE_READ(counter, max), used = BPF_CORE_READ(counter, usage.counter),
              reclaimable = reclaimable_pages(counter), needed = used > reclaimable ? used - reclaimable : 0,
              left = max > needed ? max - needed : 0;
  if (left < walk->pages_left) walk->pages_left = left;
  walk->counter = BPF_CORE_READ(counter, parent);
  return walk->counter == NULL; /* 1: no more */
}

/* Since Linux 5.8. `link_info.task` chooses the process: Linux 6.1. */
SEC("iter/task")
int group_memory(struct bpf_iter__task* context) {
  struct task_struct* task = context->task;
  if (!task) return 0; /* after the last one */
  struct rtev_group_memory found = {.start_time = BPF_CORE_READ(task, group_leader, start_boottime),
                                    .pages_left = RTEV_NO_LIMIT};
  /* A kernel without CONFIG_MEMCG has no such limits. */
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
    const __u64 offset = bpf_core_field_offset(struct css_set, subsys) +
                         bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id) * sizeof(void*);
    struct css_set* groups = BPF_CORE_READ(task, cgroups);
    void* state = NULL;
    bpf_probe_read_kernel(&state, sizeof(state), (void*)groups + offset);
    if (!state) return 0;
    struct mem_cgroup* group = state - bpf_core_field_offset(struct mem_cgroup, css);
    struct walk walk = {.counter = (void*)group + bpf_core_field_offset(struct mem_cgroup, memory),
                        .pages_left = RTEV_NO_LIMIT};
    bpf_loop(MAX_GROUP_DEPTH, go_up, &walk, 0);
    if (walk.counter) return 0; /* a group above may have less */
    found.pages_left = walk.pages_left;
  }
  bpf_seq_write(context->meta->seq, &found, sizeof(found));
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
