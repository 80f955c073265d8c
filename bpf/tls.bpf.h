/* SPDX-License-Identifier: MIT */
/* Where a thread has the variables of a shared library. */
#ifndef RTEV_TLS_BPF_H
#define RTEV_TLS_BPF_H

#include "arch.bpf.h"

/* Where the offsets of a library's thread-local variables count from (see RuntimeBinary); 0 if that cannot be told.
 * glibc keeps a table of the blocks of each library, with entries of two words. */
static __always_inline __u64 library_tls(__u64 thread_pointer, __u64 module) {
  __u64 table = 0, block = 0;
  if (bpf_probe_read_user(&table, sizeof(table), (void*)(thread_pointer + TLS_TABLE)) ||
      bpf_probe_read_user(&block, sizeof(block), (void*)(table + module * 2 * sizeof(block))))
    return 0;
  return block && block != ~0ull ? block - 1 : 0; /* all ones: the thread has none yet */
}

#endif
