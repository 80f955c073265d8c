/* SPDX-License-Identifier: MIT */
/* Rings of the programs that run. They have to be drained when their program ends before user space has them open, or
 * makes room for another program, which may take their file over. */
#ifndef RTEV_RINGS_BPF_H
#define RTEV_RINGS_BPF_H

#include "maps.bpf.h"

/* By tgid. Entered at birth, or by user space if that was before its time; removed when the program ends. */
struct rings_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_SLOTS);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* elements are added only where it is safe to allocate */
  __type(key, __u32);
  __type(value, struct rtev_ring);
};
extern struct rings_map rings SEC(".maps");

/* Births of the rings that user space has open, by tgid; written by user space. It may be late, when the process runs
 * the next program, or is gone: entries that mean nothing any more give way to others. */
struct opened_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RTEV_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct opened_map opened SEC(".maps");

/* When each process last announced a ring, by tgid. User space asks whether it was another one before it takes what it
 * read for the words of an earlier program. */
struct births_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RTEV_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct births_map births SEC(".maps");

/* Where an element is put together: too large for the stack. */
struct rings_scratch_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rtev_ring);
};
extern struct rings_scratch_map rings_scratch SEC(".maps");

extern const volatile enum rtev_drain_mode drain_mode;

static __always_inline bool is_opened(__u32 tgid, const struct rtev_ring* ring) {
  __u64* birth_ns = bpf_map_lookup_elem(&opened, &tgid);
  return birth_ns && *birth_ns == ring->birth_ns;
}

/* The kernel may look for more room than asked for, so that it can align the mapping to large pages within. The end of
 * what it adds, measured from the begin, lies in the mapping wherever that begins. */
static __always_inline __u64 address_inside(__u64 found, __u64 room, __u64 length) {
  const __u64 page = 4096;
  __u64 pages = (length + page - 1) & ~(page - 1);
  return room > pages && room - pages < pages ? found + (room - pages) : found;
}

static __always_inline void note_birth(__u32 tgid, const struct rtev_birth* birth, __u64 inside) {
  __u32 zero = 0;
  __u64 birth_ns = birth->lifecycle.time_ns;
  bpf_map_update_elem(&births, &tgid, &birth_ns, BPF_ANY);
  if (drain_mode == RTEV_DRAIN_OFF) return;
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings_scratch, &zero);
  if (!ring) return;
  /* The rest of it stays zero. */
  ring->birth_ns = birth_ns;
  ring->inode = birth->ring.inode;
  ring->length = birth->lifecycle.detail;
  ring->inside = inside;
  count_untracked(bpf_map_update_elem(&rings, &tgid, ring, BPF_ANY));
}

#endif
