// SPDX-License-Identifier: MIT
// Tells whether memory of the tracer that maps files of others can be touched without waiting. Runs when user space
// asks, not on events.
#include "maps.bpf.h"

#define TMPFS_MAGIC 0x01021994

/* Entries of an XArray (include/linux/xarray.h of Linux): bit 0 marks values, such as pages that are swapped out; bit 1
 * marks nodes, and small numbers with it name another slot of the same node, which has a large page. */
#define XA_MARKS 3
#define XA_INTERNAL 2
#define XA_MAX_SMALL 4096
#define XA_MAX_DEPTH 12

const volatile __u32 page_shift = 12;

/* What user space asks about, and the answers. */
struct rtev_page_range page_ranges[RTEV_MAX_PAGE_RANGES];

/* A page was looked for in the page tables and not found, in this call of look_at_pages. */
static bool attempts_fail;

struct page_at {
  __u64 address;
  enum rtev_page_state state;
};

/* The page of a file with this index, or a value; NULL if it is not in memory. */
static __always_inline void* cached_page(struct address_space* file, __u64 index) {
  __u64 entry = (__u64)BPF_CORE_READ(file, i_pages.xa_head);
  struct xa_node* node = NULL;
  const __u64 slots = bpf_core_field_size(node->slots) / sizeof(void*);
  for (int depth = 0; depth < XA_MAX_DEPTH; ++depth) {
    if ((entry & XA_MARKS) != XA_INTERNAL) return depth > 0 || index == 0 ? (void*)entry : NULL;
    if (entry > XA_MAX_SMALL) node = (struct xa_node*)(entry - XA_INTERNAL);
    __u64 slot = entry > XA_MAX_SMALL ? index >> BPF_CORE_READ(node, shift) : entry >> 2;
    if (depth == 0 && slot >= slots) return NULL;
    if (bpf_core_read(&entry, sizeof(entry), &node->slots[slot & (slots - 1)])) return NULL;
  }
  return NULL;
}

GLOBAL_FUNCTION enum rtev_page_state state_in_cache(__u64 address_space, __u64 index) {
  struct address_space* file = (struct address_space*)address_space;
  struct inode* inode = BPF_CORE_READ(file, host);
  const bool in_memory = BPF_CORE_READ(inode, i_sb, s_magic) == TMPFS_MAGIC;
  /* tmpfs keeps there what fallocate(2) is doing: whoever touches a page of a hole that it cuts waits for the call. */
  if (in_memory && BPF_CORE_READ(inode, i_private)) return RTEV_PAGES_BUSY;
  void* page = cached_page(file, index);
  if (!page) return in_memory ? RTEV_PAGES_HOLE : RTEV_PAGES_ABSENT;
  if ((__u64)page & XA_MARKS) return RTEV_PAGES_ABSENT;
  /* Its first member, in a struct of its own since Linux 6.18. */
  __u64 flags = 0;
  bpf_probe_read_kernel(&flags, sizeof(flags), page);
  if (flags >> bpf_core_enum_value(enum pageflags, PG_locked) & 1) return RTEV_PAGES_BUSY;
  if (flags >> bpf_core_enum_value(enum pageflags, PG_uptodate) & 1) return RTEV_PAGES_READY;
  return in_memory ? RTEV_PAGES_HOLE : RTEV_PAGES_ABSENT;
}

static long look_in_file(struct task_struct* task, struct vm_area_struct* area, struct page_at* page) {
  const __u64 index = ((page->address - BPF_CORE_READ(area, vm_start)) >> page_shift) + BPF_CORE_READ(area, vm_pgoff);
  /* The file that was mapped: on overlayfs it is another one than the open file. */
  page->state = state_in_cache((__u64)BPF_CORE_READ(area, vm_file, f_mapping), index);
  return 0;
}

/* What is in the page tables is touched without waiting, whatever happens to the file. */
static __always_inline bool is_in_page_tables(__u64 address) {
  __u8 byte;
  return bpf_probe_read_user(&byte, sizeof(byte), (const void*)address) == 0;
}

static __always_inline enum rtev_page_state state_of(__u64 address) {
  struct page_at page = {.address = address, .state = RTEV_PAGES_BUSY};
  long error = bpf_find_vma(bpf_get_current_task_btf(), address, look_in_file, &page, 0);
  return error == -EBUSY ? RTEV_PAGES_RETRY : page.state;
}

/* A page of a range. */
struct page_of_range {
  __u32 range;
  __u64 address;
};

/* Not a loop in look_at_range(): the verifier would follow each of its turns on each way to it, for half a second. */
static long look_at_page(__u32 turn, struct page_of_range* page) {
  if (page->range >= RTEV_MAX_PAGE_RANGES) return 1;
  struct rtev_page_range* range = &page_ranges[page->range];
  const __u64 page_bytes = 1ull << page_shift;
  if (page->address >= range->address + range->bytes) return 1;
  /* An attempt in vain takes a microsecond. Where one was, others follow: then the file is asked first. */
  bool ready = !attempts_fail && is_in_page_tables(page->address);
  if (!ready) {
    enum rtev_page_state state = state_of(page->address);
    ready =
        state == RTEV_PAGES_READY || (state >= RTEV_PAGES_BUSY && attempts_fail && is_in_page_tables(page->address));
    attempts_fail = true;
    if (!ready && state > range->state) range->state = state;
  }
  page->address = (page->address & ~(page_bytes - 1)) + page_bytes;
  return 0;
}

static long look_at_range(__u32 index, void* unused) {
  if (index >= RTEV_MAX_PAGE_RANGES) return 1;
  struct rtev_page_range* range = &page_ranges[index];
  range->state = RTEV_PAGES_READY;
  struct page_of_range page = {.range = index, .address = range->address};
  bpf_loop(RTEV_MAX_PAGES_OF_RANGE, look_at_page, &page, 0);
  return 0;
}

SEC("syscall")
int look_at_pages(struct rtev_page_count* asked) {
  attempts_fail = false;
  bpf_loop(asked->ranges, look_at_range, NULL, 0);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
