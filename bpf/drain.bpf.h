/* SPDX-License-Identifier: MIT */
/* Copies what a ring holds out of its program's memory, when that is about to go.
 * Positions are counted from the ring's birth, so user space can put together what comes in several parts, and knows
 * what is missing of it. */
#ifndef RTEV_DRAIN_BPF_H
#define RTEV_DRAIN_BPF_H

#include "rings.bpf.h"

#define MOST_RINGS 4096  /* of any OCaml 5 */
#define MOST_CHUNKS 8192 /* of one ring, however often it is drained: two full ones for each of 128 domains */
#define CHUNK_WORDS (RTEV_DRAINED_CHUNK / 8)
#define NAME_SLOT 128
#define NAME_SLOTS 8192

/* Its own, so that a burst of it cannot push out births and exits. Without wake-ups: the exit that follows is one. */
struct drained_map {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, RTEV_DRAINED_BYTES);
};
extern struct drained_map drained SEC(".maps");

struct drained_bare {
  struct rtev_drained record;
  char payload[RTEV_DRAINED_HEADER];
};
struct drained_name {
  struct rtev_drained record;
  char payload[NAME_SLOT];
};
struct drained_few {
  struct rtev_drained record;
  char payload[RTEV_DRAINED_FEW];
};
struct drained_chunk {
  struct rtev_drained record;
  char payload[RTEV_DRAINED_CHUNK];
};

/* The first words of a ring file. */
struct ring_header {
  __u64 version, rings, ring_header_bytes, ring_bytes, ring_words, headers_offset, data_offset, names_offset;
};

/* A drain that is under way. */
struct drain {
  struct rtev_ring* ring;
  __u64 base; /* of the mapping */
  struct ring_header header;
  __u32 tgid;
  __u32 domain;
  __u64 position, end; /* words of the domain that are next */
  __u64 zero;
  bool untold; /* how much a domain holds could not be told */
};

/* From the memory of the current program. The caller's kind of BPF program decides which of both it may do. */
static __always_inline long read_user(void* to, __u32 bytes, __u64 from, bool may_sleep) {
  return may_sleep ? bpf_copy_from_user(to, bytes, (void*)from) : bpf_probe_read_user(to, bytes, (void*)from);
}

static __always_inline struct rtev_drained describe_drained(const struct drain* drain, __u32 type, __u64 begin,
                                                            __u64 end, __u32 bytes) {
  return (struct rtev_drained){.birth_ns = drain->ring->birth_ns,
                               .begin = begin,
                               .end = end,
                               .tgid = drain->tgid,
                               .type = type,
                               .domain = drain->domain,
                               .bytes = bytes};
}

/* A record without a payload, or with the header for one. */
static __always_inline bool tell_bare(const struct drain* drain, __u32 type, __u64 begin, __u64 end) {
  struct drained_bare* bare = bpf_ringbuf_reserve(&drained, sizeof(*bare), 0);
  if (!bare) {
    count_drop(RTEV_STAT_DRAIN_DROPPED);
    return false;
  }
  bare->record = describe_drained(drain, type, begin, end, type == RTEV_DRAINED_RING ? sizeof(drain->header) : 0);
  __builtin_memcpy(bare->payload, &drain->header, sizeof(bare->payload));
  bpf_ringbuf_submit(bare, BPF_RB_NO_WAKEUP);
  return true;
}

/* Copies as much of the program's memory as the description says to a record of a kind that is large enough. The
 * verifier must see the very number that is checked. */
#define TELL_COPY(kind, description, from, may_sleep)                     \
  ({                                                                      \
    kind* copy = bpf_ringbuf_reserve(&drained, sizeof(kind), 0);          \
    __u32 copied = (description).bytes;                                   \
    bool told = false;                                                    \
    barrier_var(copied);                                                  \
    if (copy) {                                                           \
      if (copied > sizeof(copy->payload)) copied = sizeof(copy->payload); \
      told = !read_user(copy->payload, copied, from, may_sleep);          \
      copy->record = description;                                         \
      if (told)                                                           \
        bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);                       \
      else                                                                \
        bpf_ringbuf_discard(copy, BPF_RB_NO_WAKEUP);                      \
    }                                                                     \
    if (!told) count_drop(RTEV_STAT_DRAIN_DROPPED);                       \
    told;                                                                 \
  })

/* Some room is kept for records that tell how much was lost. */
static __always_inline bool has_room(void) {
  if (bpf_ringbuf_query(&drained, BPF_RB_AVAIL_DATA) <= RTEV_DRAINED_BYTES - RTEV_DRAINED_SPARE) return true;
  count_drop(RTEV_STAT_DRAIN_DROPPED);
  return false;
}

static __always_inline bool tell_copy(struct rtev_drained description, __u64 from, bool may_sleep) {
  if (!has_room()) return false;
  return description.bytes <= RTEV_DRAINED_FEW ? TELL_COPY(struct drained_few, description, from, may_sleep)
                                               : TELL_COPY(struct drained_chunk, description, from, may_sleep);
}

/* One chunk of a domain's words, not across the ring's physical end. */
static __always_inline long drain_words(struct drain* drain, bool may_sleep) {
  __u64 position = drain->position, ring_words = drain->header.ring_words;
  __u64 place = position & (ring_words - 1), words = drain->end - position;
  if (position >= drain->end || drain->ring->chunks >= MOST_CHUNKS) return 1;
  ++drain->ring->chunks;
  if (words > ring_words - place) words = ring_words - place;
  if (words > CHUNK_WORDS) words = CHUNK_WORDS;
  __u64 from = drain->base + drain->header.data_offset + drain->domain * drain->header.ring_bytes + 8 * place;
  if (!tell_copy(describe_drained(drain, RTEV_DRAINED_WORDS, position, position + words, 8 * words), from, may_sleep))
    return 1;
  drain->position = position + words;
  return 0;
}
static long drain_words_at_once(__u32 step, struct drain* drain) {
  return drain_words(drain, false);
}
static long drain_words_sleeping(__u32 step, struct drain* drain) {
  return drain_words(drain, true);
}

struct ring_indices {
  __u64 head, tail;
};

static __always_inline long drain_domain(__u32 domain, struct drain* drain, bool may_sleep) {
  struct ring_indices indices = {};
  __u64 where = drain->base + drain->header.headers_offset + domain * drain->header.ring_header_bytes;
  if (read_user(&indices, sizeof(indices), where, may_sleep)) {
    count_drop(RTEV_STAT_DRAIN_DROPPED);
    drain->untold = true;
    return 1;
  }
  if (indices.tail <= indices.head) return 0;
  /* One register that is checked and used, and a pointer that is tested itself: the verifier of Linux 6.1 does not know
   * that copies of a number are equal, and forgets what it knew of the number where it is tested again. */
  __u64 remembered = domain;
  barrier_var(remembered);
  __u64* done = remembered < RTEV_REMEMBERED_DOMAINS ? &drain->ring->drained[remembered] : NULL;
  barrier_var(done);
  drain->domain = domain;
  drain->position = done && *done > indices.head ? *done : indices.head;
  /* Words must not be read before the tail that covers them: to add and fetch is a full barrier. */
  drain->end = indices.tail + __sync_fetch_and_add(&drain->zero, 0);
  if (drain->position >= drain->end) return 0;
  if (drain->end - drain->position <= drain->header.ring_words)
    bpf_loop(MOST_CHUNKS, may_sleep ? drain_words_sleeping : drain_words_at_once, drain, 0);
  if (done) *done = drain->position;
  /* While other domains still run, the oldest words may be overwritten as they are copied: the head tells. */
  read_user(&indices.head, sizeof(indices.head), where, may_sleep);
  if (!tell_bare(drain, RTEV_DRAINED_DOMAIN, indices.head, indices.tail)) drain->untold = true;
  return 0;
}
static long drain_domain_at_once(__u32 domain, struct drain* drain) {
  return drain_domain(domain, drain, false);
}
static long drain_domain_sleeping(__u32 domain, struct drain* drain) {
  return drain_domain(domain, drain, true);
}

/* One name; they are given out from the first slot on. Without sleeping, only what the program has touched can be read:
 * up to the name's end, no further. */
static __always_inline long drain_name(__u32 id, struct drain* drain, bool may_sleep) {
  void* from = (void*)(drain->base + drain->header.names_offset + id * NAME_SLOT);
  if (!has_room()) return 1;
  struct drained_name* name = bpf_ringbuf_reserve(&drained, sizeof(*name), 0);
  if (!name) {
    count_drop(RTEV_STAT_DRAIN_DROPPED);
    return 1;
  }
  long error = may_sleep ? bpf_copy_from_user(name->payload, sizeof(name->payload), from)
                         : bpf_probe_read_user_str(name->payload, sizeof(name->payload), from);
  if (error < 0 || !name->payload[0]) {
    bpf_ringbuf_discard(name, BPF_RB_NO_WAKEUP);
    return 1;
  }
  name->record = describe_drained(drain, RTEV_DRAINED_NAME, id, id + 1, sizeof(name->payload));
  bpf_ringbuf_submit(name, BPF_RB_NO_WAKEUP);
  return 0;
}
static long drain_name_at_once(__u32 id, struct drain* drain) {
  return drain_name(id, drain, false);
}
static long drain_name_sleeping(__u32 id, struct drain* drain) {
  return drain_name(id, drain, true);
}

/* `is_last`: nothing is written after that. */
static __always_inline void drain_ring(struct rtev_ring* ring, __u32 tgid, __u64 base, bool may_sleep, bool is_last) {
  struct drain drain = {.ring = ring, .base = base, .tgid = tgid};
  struct ring_header* header = &drain.header;
  if (read_user(header, sizeof(*header), base, may_sleep)) {
    count_drop(RTEV_STAT_DRAIN_DROPPED);
    return;
  }
  /* User space checks the header in earnest. Here all that matters is that the work ends. */
  if (!header->rings || header->rings > MOST_RINGS || !header->ring_words) return;
  if (!ring->header_told) ring->header_told = tell_bare(&drain, RTEV_DRAINED_RING, 0, ring->length);
  if (!ring->header_told) return;
  bpf_loop(header->rings, may_sleep ? drain_domain_sleeping : drain_domain_at_once, &drain, 0);
  if (is_last && !drain.untold) tell_bare(&drain, RTEV_DRAINED_LAST, 0, 0);
  /* OCaml 5.0 has no names and leaves their offset to chance. */
  if (ring->names_told || !header->names_offset || header->names_offset >= ring->length) return;
  ring->names_told = true;
  bpf_loop(NAME_SLOTS, may_sleep ? drain_name_sleeping : drain_name_at_once, &drain, 0);
}

struct found_mapping {
  __u64 inode;
  __u64 begin; /* 0: is another file's */
};

static long find_begin(struct task_struct* task, struct vm_area_struct* area, struct found_mapping* mapping) {
  if (BPF_CORE_READ(area, vm_file, f_inode, i_ino) == mapping->inode) mapping->begin = BPF_CORE_READ(area, vm_start);
  return 0;
}

/* Where the current process maps its ring; 0 if that cannot be told. Fails while another thread changes the mappings,
 * so it is tried again: there may not be another chance. */
static __always_inline __u64 find_mapping(const struct rtev_ring* ring) {
  struct found_mapping mapping = {.inode = ring->inode};
  for (int tries = 0; tries < 4 && !mapping.begin; ++tries)
    bpf_find_vma(bpf_get_current_task_btf(), ring->inside, find_begin, &mapping, 0);
  return mapping.begin;
}

#endif
