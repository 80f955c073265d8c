/* SPDX-License-Identifier: MIT */
/* Rings of running programs. A ring has to be saved if its program ends before user space has opened it, or execs: the
 * next program may reuse the ring file. */
#ifndef RTEV_RINGS_BPF_H
#define RTEV_RINGS_BPF_H

#include "maps.bpf.h"

/* By tgid. Added when the ring is announced, or by user space if the ring is older than the tracer; removed when the
 * program ends. */
struct rings_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_RING_SLOTS);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* elements are added only in contexts that may allocate */
  __type(key, __u32);
  __type(value, struct rtev_ring);
};
extern struct rings_map rings SEC(".maps");

/* announced_ns of the rings that user space has open, by tgid; written by user space. The write may come late, when the
 * process runs its next program or has ended: the LRU map evicts such stale entries. */
struct opened_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RTEV_RING_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct opened_map opened SEC(".maps");

/* When each process last announced a ring, by tgid. User space reads it to find out whether the words that it read from
 * a ring file can belong to a later program. */
struct announced_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RTEV_RING_SLOTS);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct announced_map announced SEC(".maps");

/* Where an element of `rings` is put together: too large for the stack. */
struct rings_scratch_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rtev_ring);
};
extern struct rings_scratch_map rings_scratch SEC(".maps");

extern const volatile enum rtev_save_mode save_mode;

static __always_inline bool is_opened(__u32 tgid, const struct rtev_ring* ring) {
  __u64* announced_ns = bpf_map_lookup_elem(&opened, &tgid);
  return announced_ns && *announced_ns == ring->announced_ns;
}

#endif
