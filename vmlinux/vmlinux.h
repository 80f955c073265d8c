/* SPDX-License-Identifier: MIT */
/* The kernel types that bpf/ uses, and only the members it uses. Offsets are the running kernel's: CO-RE relocates every
 * access. Written by vmlinux/regenerate: change the list there. */
/* clang-format off */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef short int __s16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long int __s64;
typedef long long unsigned int __u64;
typedef __s64 time64_t;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef _Bool bool;
typedef int pid_t;
typedef u32 dev_t;
typedef struct {
  u32 val;
} kuid_t;
typedef unsigned int fmode_t;

/* Only libbpf's declarations of helpers (bpf_helper_defs.h) need these. */
typedef short unsigned int __u16;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { false = 0, true = 1 };

/* CO-RE finds the values by name. */
enum pageflags { PG_locked = 0, PG_uptodate = 3 };
enum cgroup_subsys_id { memory_cgrp_id = 4 };

enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_F_NO_PREALLOC = 1,
  BPF_ANY = 0,
  BPF_NOEXIST = 1,
  BPF_RB_NO_WAKEUP = 1,
  BPF_RB_FORCE_WAKEUP = 2,
  BPF_RB_AVAIL_DATA = 0,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  int counter;
} atomic_t;

typedef struct {
  __s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t;

/* Registers and the thread pointer are the only types that differ by architecture. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
  long unsigned int r15;
  long unsigned int r14;
  long unsigned int r13;
  long unsigned int r12;
  long unsigned int bp;
  long unsigned int bx;
  long unsigned int r11;
  long unsigned int r10;
  long unsigned int r9;
  long unsigned int r8;
  long unsigned int ax;
  long unsigned int cx;
  long unsigned int dx;
  long unsigned int si;
  long unsigned int di;
  long unsigned int orig_ax;
  long unsigned int ip;
  long unsigned int flags;
  long unsigned int sp;
};

struct thread_struct {
  long unsigned int fsbase;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs { /* what libbpf's PT_REGS_* macros read on arm64 */
  u64 regs[31];
  u64 sp;
  u64 pc;
};

struct pt_regs {
  s32 syscallno;
};

struct thread_struct {
  struct {
    long unsigned int tp_value;
  } uw;
};
#else
#error "unknown architecture"
#endif

struct thread_info {
  u32 cpu;
};

struct rlimit {
  long unsigned int rlim_cur;
};

struct signal_struct {
  atomic_t live;
  int group_exit_code;
  unsigned int flags;
  long unsigned int maxrss;
  struct rlimit rlim[16];
};

struct qstr {
  u32 len;
  const unsigned char *name;
};

struct super_block {
  dev_t s_dev;
  long unsigned int s_magic;
};

struct vm_unmapped_area_info {
  long unsigned int length;
};

struct rw_semaphore {
  atomic_long_t count;
};

struct rb_node {
  long unsigned int __rb_parent_color;
  struct rb_node *rb_right;
  struct rb_node *rb_left;
};

struct rb_root {
  struct rb_node *rb_node;
};

struct rb_root_cached {
  struct rb_root rb_root;
};

struct inode {
  struct super_block *i_sb;
  long unsigned int i_ino;
  struct rw_semaphore i_rwsem;
  void *i_private;
};

struct dentry {
  struct dentry *d_parent;
  const struct qstr d_name;
  struct super_block *d_sb;
};

struct path {
  struct vfsmount *mnt;
  struct dentry *dentry;
};

struct fs_struct {
  struct path root;
};

struct xarray {
  void *xa_head;
};

struct xa_node {
  unsigned char shift;
  void *slots[64];
};

struct address_space {
  struct inode *host;
  struct xarray i_pages;
  struct rb_root_cached i_mmap;
  struct rw_semaphore i_mmap_rwsem;
};

struct file {
  fmode_t f_mode;
  struct address_space *f_mapping;
  struct inode *f_inode;
  const struct path f_path;
};

struct vm_area_struct {
  long unsigned int vm_start;
  struct mm_struct *vm_mm;
  long unsigned int vm_pgoff;
  struct file *vm_file;
};

struct mm_struct {
  struct rw_semaphore mmap_lock;
  long unsigned int def_flags;
  long unsigned int flags;
  long unsigned int start_code;
  long unsigned int start_stack;
  struct task_struct *owner;
  struct file *exe_file;
};

struct fdtable {
  unsigned int max_fds;
  struct file **fd;
  long unsigned int *open_fds;
  long unsigned int *full_fds_bits;
};

struct files_struct {
  struct fdtable *fdt;
};

struct upid {
  int nr;
};

struct pid {
  unsigned int level;
  struct upid numbers[0];
};

struct cred {
  kuid_t uid;
  kuid_t euid;
};

struct timespec64 {
  time64_t tv_sec;
  long int tv_nsec;
};

struct timens_offsets {
  struct timespec64 monotonic;
};

struct time_namespace {
  struct timens_offsets offsets;
};

struct nsproxy {
  struct mnt_namespace *mnt_ns;
  struct time_namespace *time_ns;
};

struct page_counter {
  atomic_long_t usage;
  long unsigned int max;
  struct page_counter *parent;
};

struct cgroup_subsys_state {
  struct cgroup *cgroup;
};

struct memcg_vmstats {
  long int state[40];
};

struct mem_cgroup {
  struct cgroup_subsys_state css;
  struct page_counter memory;
  struct memcg_vmstats *vmstats;
};

struct css_set {
  struct cgroup_subsys_state *subsys[12];
};

struct bpf_iter_meta {
  struct seq_file *seq;
};

struct uprobe_task {
  long unsigned int vaddr;
  struct uprobe *active_uprobe;
  long unsigned int xol_vaddr;
};

struct seccomp {
  int mode;
};

struct task_struct {
  struct thread_info thread_info;
  unsigned int flags;
  int prio;
  struct mm_struct *mm;
  int exit_code;
  pid_t pid;
  pid_t tgid;
  struct task_struct *group_leader;
  struct pid *thread_pid;
  struct completion *vfork_done;
  u64 start_boottime;
  const struct cred *real_cred;
  char comm[16];
  struct fs_struct *fs;
  struct files_struct *files;
  struct nsproxy *nsproxy;
  struct signal_struct *signal;
  struct seccomp seccomp;
  u64 self_exec_id;
  struct css_set *cgroups;
  struct uprobe_task *utask;
  struct thread_struct thread;
};

struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};

/* More of struct vm_area_struct: a member whose type has no name. CO-RE ignores what follows three underscores. */
struct vm_area_struct___shared {
  struct {
    struct rb_node rb;
  } shared;
};

/* Opaque: bpf/ only passes pointers to it. */
struct linux_binprm;

#pragma clang attribute pop

#endif
