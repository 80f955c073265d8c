// SPDX-License-Identifier: MIT
#include "kernel/uprobe_link.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "kernel/features.hpp"

namespace rtev::kernel {
namespace {

constexpr pid_t every_process = 0;

constexpr int kernel_enotsupp = 524;  // has no name outside of the kernel, but reaches user space

/// BPF_TRACE_UPROBE_MULTI, newer than the headers of libbpf 1.1.
// NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
constexpr auto trace_uprobe_multi = static_cast<bpf_attach_type>(48);

/// The part of union bpf_attr that BPF_LINK_CREATE reads for uprobe_multi (Linux 6.6).
struct UprobeMultiAttr {
  std::uint32_t program_fd;
  std::uint32_t target_fd;
  std::uint32_t attach_type;
  std::uint32_t flags;
  std::uint64_t path;
  std::uint64_t offsets;
  std::uint64_t ref_counter_offsets;
  std::uint64_t cookies;
  std::uint32_t count;
  std::uint32_t probe_flags;
  std::uint32_t pid;
  std::uint32_t padding;
};
static_assert(sizeof(UprobeMultiAttr) == 64);

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The descriptor of the link, or -1 and errno.
UniqueFd create_multi_link(int program_fd, const char* path, std::span<const std::uint64_t> offsets,
                           std::span<const std::uint64_t> cookies, pid_t pid) {
  UprobeMultiAttr attr{};
  attr.program_fd = static_cast<std::uint32_t>(program_fd);
  attr.attach_type = trace_uprobe_multi;
  attr.path = address(path);
  attr.offsets = address(offsets.data());
  attr.cookies = address(cookies.data());
  attr.count = static_cast<std::uint32_t>(offsets.size());
  attr.pid = static_cast<std::uint32_t>(pid);
  return UniqueFd{static_cast<int>(::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr))};
}

/// The number by which perf_event_open(2) knows uprobes; errno.
std::optional<std::uint32_t> uprobe_event_type() {
  const auto text = read_small_file("/sys/bus/event_source/devices/uprobe/type", 16);
  const auto type = text ? parse_leading_number<std::uint32_t>(*text) : std::nullopt;
  if (!type) errno = EOPNOTSUPP;
  return type;
}

/// The descriptor of the link, which keeps the event; or -1 and errno.
UniqueFd create_perf_link(int program_fd, const char* path, std::uint64_t offset, std::uint64_t cookie) {
  const auto type = uprobe_event_type();
  if (!type) return {};
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = *type;
  attr.config1 = address(path);
  attr.config2 = offset;
  constexpr int any_process = -1, first_cpu = 0, no_group = -1;  // a uprobe hits on every cpu
  const UniqueFd event{
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, any_process, first_cpu, no_group, PERF_FLAG_FD_CLOEXEC))};
  if (!event) return {};
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.perf_event.bpf_cookie = cookie;
  return UniqueFd{bpf_link_create(program_fd, event.get(), BPF_PERF_EVENT, &options)};
}

/// Its path of a descriptor, which the kernel itself looks up: see own_proc().
const char* from_working_directory(const std::string& path) {
  struct stat own{}, here{};
  const bool is_own =
      own_proc() >= 0 && ::fstat(own_proc(), &own) == 0 && ::stat(".", &here) == 0 && own.st_dev == here.st_dev;
  return is_own ? proc_place(path).name : path.c_str();
}

std::unexpected<Error> attach_error(int code, const std::string& path) {
  return errno_error(code == kernel_enotsupp ? EOPNOTSUPP : code, "cannot probe", path);
}

/// True for the errors by which kernels refuse an instruction, depending on architecture and kind of link.
bool is_about_instruction(int code) {
  return code == kernel_enotsupp || code == EOPNOTSUPP || code == ENOEXEC || code == EINVAL;
}

struct EachSite {
  bool all;  ///< it is an error if a site cannot be probed
  bool slow_to_detach;
};

/// Attaches to each target that can be probed. attach_one(index) returns a link, or an empty one and errno.
template <typename AttachOne>
Result<AttachedUprobes> attach_each(const std::string& path, std::size_t targets, const EachSite& how,
                                    AttachOne attach_one) {
  AttachedUprobes attached;
  int error = 0;
  for (std::size_t i = 0; i < targets; ++i) {
    if (UniqueFd link = attach_one(i)) {
      attached.links.push_back({.fd = std::move(link), .slow_to_detach = how.slow_to_detach});
      continue;
    }
    error = errno;
    if (!is_about_instruction(error)) return attach_error(error, path);
    ++attached.skipped;
  }
  if (attached.skipped == 0) return attached;
  if (attached.links.empty()) return attach_error(error, path);
  if (how.all)
    return std::unexpected(Error{.what = "cannot probe", .why = "some functions that write events cannot be probed"});
  return attached;
}

/// In every process, or in one: ESRCH if there is no such process.
Result<AttachedUprobes> attach_in(pid_t pid, const UprobeRequest& request) {
  if (request.sites.empty()) return AttachedUprobes{};
  // By descriptor: the very file that was inspected, whatever its path means in this mount namespace or by now.
  const std::string path = fmt::format("/proc/self/fd/{}", request.file.get());
  const char* const place = from_working_directory(path);
  std::vector<std::uint64_t> offsets, cookies;
  for (const ProbeSite& site : request.sites) {
    offsets.push_back(site.file_offset);
    cookies.push_back(std::uint64_t{request.binary_id} << 8 | site.function);
  }
  const int program_fd = request.program.get();
  const bool all_sites = request.all_sites;
  if (!request.multi) {
    return attach_each(path, offsets.size(), {.all = all_sites, .slow_to_detach = true},
                       [&](std::size_t i) { return create_perf_link(program_fd, place, offsets[i], cookies[i]); });
  }
  if (UniqueFd link = create_multi_link(program_fd, place, offsets, cookies, pid)) {
    AttachedUprobes attached;
    attached.links.push_back({.fd = std::move(link)});
    return attached;
  }
  if (!is_about_instruction(errno)) return attach_error(errno, path);
  // The kernel attaches to all or to none, and does not say which instruction it refuses.
  return attach_each(path, offsets.size(), {.all = all_sites, .slow_to_detach = false}, [&](std::size_t i) {
    return create_multi_link(program_fd, place, std::span{&offsets[i], 1}, std::span{&cookies[i], 1}, pid);
  });
}

}  // namespace

void prepare_uprobe_multi(bpf_program* program) {
  bpf_program__set_expected_attach_type(program, trace_uprobe_multi);
}

UprobeRequest request_for(const UprobeProgram& program, int file, std::uint32_t binary_id,
                          std::vector<ProbeSite> sites) {
  const auto copy_of = [](int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); };
  return {.program = copy_of(bpf_program__fd(program.program)),
          .file = copy_of(file),
          .binary_id = binary_id,
          .sites = std::move(sites),
          .multi = program.multi};
}

Result<AttachedUprobes> attach_uprobes(const UprobeRequest& request) {
  if (request.pids.empty()) return attach_in(every_process, request);
  AttachedUprobes all;
  for (const pid_t pid : request.pids) {
    auto attached = attach_in(pid, request);
    if (!attached && attached.error().code == ESRCH) continue;  // the process has ended
    if (!attached) return attached;
    std::ranges::move(attached->links, std::back_inserter(all.links));
    all.skipped = attached->skipped;
  }
  return all;
}

bool can_probe_one_process(const UprobeProgram& program) {
  return program.multi && is_kernel_since({6, 10});
}

BpfAbilities probe_bpf() {
  const std::array<bpf_insn, 2> return_zero{{
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  }};
  bpf_prog_load_opts options{};
  options.sz = sizeof options;
  options.expected_attach_type = trace_uprobe_multi;
  const UniqueFd program{bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rtev_probe", "Dual MIT/GPL", return_zero.data(),
                                       return_zero.size(), &options)};
  if (!program) return {.error = errno};

  // Kernels that know this kind of link get as far as opening the file, which is a directory. Older kernels load the
  // program, too, but refuse the link.
  const std::array<std::uint64_t, 1> zero{};
  const UniqueFd link = create_multi_link(program.get(), "/", zero, zero, every_process);
  return {.error = 0, .uprobe_multi = !link && errno == EBADF};
}

}  // namespace rtev::kernel
