// SPDX-License-Identifier: MIT
// The first and only process of a guest kernel. Mounts the usual file systems, loads the modules in /modules, runs one
// command, reports its status and the number of BPF objects left behind in lines that begin with "guest: ", and shuts
// the guest down. Static, so that it needs no other file to run.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { max_arguments = 32, read_all_of_log = 3 };

static void mount_at(const char* type, const char* where) {
  mkdir(where, 0755);
  if (mount(type, where, type, 0, NULL) != 0) printf("guest: cannot mount %s: %s\n", where, strerror(errno));
}

static void load_modules(void) {
  DIR* modules = opendir("/modules");
  if (modules == NULL) return;
  for (struct dirent* entry = readdir(modules); entry != NULL; entry = readdir(modules)) {
    if (entry->d_name[0] == '.') continue;
    const int file = openat(dirfd(modules), entry->d_name, O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, file, "", 0) != 0)
      printf("guest: cannot load %s: %s\n", entry->d_name, strerror(errno));
    close(file);
  }
  closedir(modules);
}

/// Counts BPF objects of one kind, with a "next id" command of bpf(2).
static unsigned count_objects(int command) {
  unsigned count = 0;
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  while (syscall(SYS_bpf, command, &attr, sizeof attr) == 0) {
    attr.start_id = attr.next_id;
    ++count;
  }
  return count;
}

static unsigned bpf_objects(void) {
  return count_objects(BPF_PROG_GET_NEXT_ID) + count_objects(BPF_MAP_GET_NEXT_ID) + count_objects(BPF_LINK_GET_NEXT_ID);
}

/// The kernel frees them some time after their last user is gone.
static unsigned bpf_objects_beyond(unsigned before) {
  const struct timespec pause = {0, 100 * 1000 * 1000};
  unsigned now = bpf_objects();
  for (int i = 0; i < 100 && now > before; ++i) {
    nanosleep(&pause, NULL);
    now = bpf_objects();
  }
  return now > before ? now - before : 0;
}

/// The command is in /command, one argument per line.
static int run_command(void) {
  static char text[4096];
  char* arguments[max_arguments + 1] = {NULL};
  const int file = open("/command", O_RDONLY | O_CLOEXEC);
  const ssize_t length = read(file, text, sizeof text - 1);
  if (length <= 0) return -1;
  int count = 0;
  for (char* word = strtok(text, "\n"); word && count < max_arguments; word = strtok(NULL, "\n"))
    arguments[count++] = word;

  const pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], arguments);
    printf("guest: cannot run %s: %s\n", arguments[0], strerror(errno));
    fflush(stdout);
    _exit(127);
  }
  int status = -1, any = 0;
  for (pid_t ended = 0; ended != child; ended = wait(&any))  // also reaps orphans
    if (ended < 0 && errno == ECHILD) return status;
  status = any;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void print_kernel_log(void) {
  static char log[1 << 20];
  const int length = klogctl(read_all_of_log, log, sizeof log);
  printf("guest: the kernel's log\n%.*s\n", length > 0 ? length : 0, log);
}

int main(void) {
  mount_at("proc", "/proc");
  mount_at("sysfs", "/sys");
  mount_at("cgroup2", "/sys/fs/cgroup");
  mount_at("devtmpfs", "/dev");
  load_modules();
  // On the root file system, which is in memory and may hold the programs below /tmp. Not for others to write to:
  // enabling refuses a file system in memory that they may fill.
  mkdir("/tmp", 0755);
  chmod("/tmp", 0755);
  chmod("/", 0755);
  setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv("GTEST_COLOR", "no", 1);
  const unsigned before = bpf_objects();
  printf("guest: begins\n");
  fflush(stdout);
  const int status = run_command();
  printf("guest: status %d\n", status);
  printf("guest: left behind %u\n", bpf_objects_beyond(before));
  if (status != 0) print_kernel_log();
  printf("guest: ends\n");
  fflush(stdout);
  reboot(RB_AUTOBOOT);
  return 1;
}
