// SPDX-License-Identifier: MIT
#include "base/mappings_check.hpp"

#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/unique_fd.hpp"

namespace rtev {
namespace {

constexpr std::size_t mapped_bytes = 1;  // the kernel makes it a page

/// A mapping of a file on an overlay leads to the file below. Null for others, and if it cannot be mapped.
MemoryMap map_overlay(int fd) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0 || system.f_type != OVERLAYFS_SUPER_MAGIC) return {};
  void* const mapping = ::mmap(nullptr, mapped_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) return {};
  return MemoryMap(static_cast<std::byte*>(mapping), Unmap{mapped_bytes});
}

}  // namespace

rtev_mappings check_mappings(int program, int fd) {
  const MemoryMap mapping = map_overlay(fd);
  rtev_open_file asked{.fd = static_cast<std::uint32_t>(fd),
                       .is_to_be_mapped = 0,
                       .zero = 0,
                       .pad = 0,
                       .address = reinterpret_cast<std::uintptr_t>(mapping.get())};
  bpf_attr run{};
  run.test.prog_fd = static_cast<std::uint32_t>(program);
  run.test.ctx_in = reinterpret_cast<std::uintptr_t>(&asked);
  run.test.ctx_size_in = sizeof asked;
  if (::syscall(SYS_bpf, BPF_PROG_RUN, &run, sizeof run) != 0) return RTEV_MAPPINGS_FREE;
  return static_cast<rtev_mappings>(run.test.retval);
}

}  // namespace rtev
