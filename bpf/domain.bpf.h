/* SPDX-License-Identifier: MIT */
/* The OCaml domain of a thread, read from its thread-local variables. */
#ifndef RTEV_DOMAIN_BPF_H
#define RTEV_DOMAIN_BPF_H

#include "arch.bpf.h"

#define MAX_LIBRARIES 65536

/* The address that offsets of a shared library's thread-local variables count from: one byte before the library's block
 * (see RuntimeBinary). 0 if unknown. In glibc each thread has a dynamic thread vector with one entry of two words for
 * each library. */
static __always_inline __u64 library_tls(__u64 thread_pointer, __u64 module) {
  __u64 vector = 0, block = 0;
  if (bpf_probe_read_user(&vector, sizeof(vector), (void*)(thread_pointer + DTV_OFFSET)) ||
      bpf_probe_read_user(&block, sizeof(block), (void*)(vector + module * 2 * sizeof(block))))
    return 0;
  return block && block != ~0ull ? block - 1 : 0; /* all ones: not allocated for this thread yet */
}

/* Where the current thread's variables of the runtime are; 0 if unknown. */
static __always_inline __u64 runtime_tls(struct rtev_tracked* process, struct task_struct* task) {
  __u64 thread_pointer = THREAD_POINTER(task), module = 0;
  if (!process->tls_module && process->tls_module_word &&
      !bpf_probe_read_user(&module, sizeof(module), (void*)process->tls_module_word) && module <= MAX_LIBRARIES)
    process->tls_module = module;
  /* Of a library whose number is not known the offsets mean nothing. */
  if (process->tls_module_word && !process->tls_module) return 0;
  return process->tls_module ? library_tls(thread_pointer, process->tls_module) : thread_pointer;
}

/* Where a binary keeps the domain of a thread: see struct rtev_tracked. */
struct domain_variables {
  __s64 domain_self_tls;
  __s64 caml_state_tls;
  __u32 id_offset;
};

/* The domain of the current thread, whose offsets count from `tls`; -1 if unknown. domain_self is set for the life of
 * the thread; caml_state, for binaries without that symbol, only while the thread holds its domain's lock. */
static __always_inline __s32 read_domain(const struct domain_variables* variables, __u64 tls) {
  __u64 address = 0;
  __s32 id = -1;
  if (!tls) return -1;
  if (variables->domain_self_tls)
    bpf_probe_read_user(&address, sizeof(address), (void*)(tls + variables->domain_self_tls));
  if (!address && variables->caml_state_tls && variables->id_offset) {
    bpf_probe_read_user(&address, sizeof(address), (void*)(tls + variables->caml_state_tls));
    if (address) address += variables->id_offset;
  }
  if (!address || bpf_probe_read_user(&id, sizeof(id), (void*)address)) return -1;
  return id >= 0 && id < RTEV_MAX_DOMAINS ? id : -1;
}

#endif
