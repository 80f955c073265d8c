// SPDX-License-Identifier: MIT
#include "kernel/perf_stacks.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "base/capabilities.hpp"
#include "base/clock.hpp"
#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "unwind/byte_cursor.hpp"

namespace rtev::kernel {
namespace {

constexpr std::uint64_t perf_second_ns = 1'000'000'000;
constexpr std::uint32_t max_perf_rate_hz = 10'000;
constexpr const char* perf_failure = "cannot take stacks";
/// Copied above the stack pointer. Of a stack in OCaml code that is mostly all there is.
constexpr std::uint32_t copied_stack_bytes = 16 << 10;
/// Of a buffer, in pages. Users may lock 516 KiB for each CPU (kernel.perf_event_mlock_kb), for all that they run.
constexpr std::size_t most_pages = 128, fewest_pages = 16;
constexpr std::uint64_t sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                      PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
/// Threads that are there at first.
constexpr std::size_t max_threads = 1024;

// The kernel's numbers of registers, in their order, by DWARF's numbers: <asm/perf_regs.h>.
#if defined(__x86_64__)
constexpr std::uint64_t register_mask = 0xff'01ff;  // ax to ip, r8 to r15
constexpr std::array<std::uint8_t, 17> dwarf_numbers{0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::size_t stack_pointer = 7;
#elif defined(__aarch64__)
constexpr std::uint64_t register_mask = (std::uint64_t{1} << 33) - 1;  // x0 to x30, sp, pc
constexpr std::size_t stack_pointer = 31;
#endif

std::size_t dwarf_number(std::size_t index) {
#if defined(__x86_64__)
  return dwarf_numbers.at(index);
#else
  return index;
#endif
}

std::size_t perf_page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

int event_open(perf_event_attr& attr, pid_t thread, int cpu) {
  attr.size = sizeof attr;
  constexpr int no_group = -1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attr, thread, cpu, no_group, PERF_FLAG_FD_CLOEXEC));
}

/// "3", or "unknown".
std::string paranoid_level() {
  const auto text = read_small_file("/proc/sys/kernel/perf_event_paranoid", 16);
  const auto level = text ? parse_leading_number<int>(*text) : std::nullopt;
  return level ? std::to_string(*level) : "unknown";
}

Error refusal(int error) {
  const std::string level = paranoid_level();
  constexpr int most_for_users = 2;
  // Who may always trace is refused for another reason.
  const bool is_user = !has_capability(CAP_PERFMON) && !has_capability(CAP_SYS_ADMIN);
  if (is_user && (error == EACCES || error == EPERM) && parse_number<int>(level).value_or(0) > most_for_users)
    return {.what = perf_failure,
            .subject = {},
            .why = fmt::format("kernel.perf_event_paranoid is {}, which keeps perf_event_open(2) for root", level),
            .hint = "sudo sysctl kernel.perf_event_paranoid=2 allows it for programs of one's own; or trace as root"};
  return errno_error(
             error, perf_failure, {},
             fmt::format("perf_event_open(2) was refused (kernel.perf_event_paranoid is {}): in a container its "
                         "filter of system calls may forbid it{}",
                         level, is_user ? "; or trace as root" : ""))
      .error();
}

}  // namespace

/// The ring of one CPU, which the kernel writes to.
struct PerfStacks::Buffer {
  int cpu = 0;
  UniqueFd event;  ///< counts nothing: others write to its ring
  perf_event_mmap_page* page = nullptr;
  std::size_t bytes = 0;  ///< of data

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (page != nullptr) ::munmap(page, bytes + perf_page_bytes());
  }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(page) + perf_page_bytes(); }
};

PerfStacks::PerfStacks(std::uint64_t period_ns) : period_ns_(period_ns) {}

PerfStacks::~PerfStacks() = default;

Result<std::unique_ptr<PerfStacks>> PerfStacks::open(std::uint32_t rate_hz) {
  std::unique_ptr<PerfStacks> made(
      new PerfStacks(perf_second_ns / std::clamp<std::uint32_t>(rate_hz, 1, max_perf_rate_hz)));
  // Of this thread: what users may not do is refused here.
  constexpr int any_cpu = -1;
  UniqueFd trial = made->open_event(0, any_cpu);
  if (!trial && (errno == EACCES || errno == EPERM)) {
    made->sees_kernel_time_ = false;
    trial = made->open_event(0, any_cpu);
  }
  if (!trial) return std::unexpected(refusal(errno));
  if (auto opened = made->open_buffers(); !opened) return std::unexpected(std::move(opened.error()));
  return made;
}

UniqueFd PerfStacks::open_event(pid_t thread, int cpu) const {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period_ns_;
  attr.sample_type = sample_type;
  attr.sample_regs_user = register_mask;
  attr.sample_stack_user = copied_stack_bytes;
  attr.exclude_kernel = sees_kernel_time_ ? 0 : 1;
  attr.exclude_hv = 1;
  attr.exclude_idle = 1;
  // Threads that it starts, but no processes.
  attr.inherit = 1;
  attr.inherit_thread = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = most_pages / 2 * static_cast<std::uint32_t>(perf_page_bytes());
  return UniqueFd(event_open(attr, thread, cpu));
}

Result<void> PerfStacks::open_buffers() {
  filling_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!filling_) return errno_error(errno, perf_failure);
  const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
  std::size_t pages = most_pages;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto buffer = std::make_unique<Buffer>();
    buffer->cpu = cpu;
    perf_event_attr attr{};
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.watermark = 1;
    attr.wakeup_watermark = most_pages / 2 * static_cast<std::uint32_t>(perf_page_bytes());
    buffer->event = UniqueFd(event_open(attr, 0, cpu));
    if (!buffer->event && (errno == ENODEV || errno == ENXIO)) continue;  // it is not online
    if (!buffer->event) return std::unexpected(refusal(errno));
    for (void* memory = MAP_FAILED; memory == MAP_FAILED; pages /= 2) {
      buffer->bytes = pages * perf_page_bytes();
      memory = ::mmap(nullptr, buffer->bytes + perf_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                      buffer->event.get(), 0);
      if (memory != MAP_FAILED) {
        buffer->page = static_cast<perf_event_mmap_page*>(memory);
        break;
      }
      if ((errno != EPERM && errno != ENOMEM) || pages <= fewest_pages)
        return errno_error(
            errno, perf_failure, {},
            "other programs of the same user may hold the memory that users have for perf_event_open(2): "
            "kernel.perf_event_mlock_kb says how much that is for each CPU");
    }
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
    ::epoll_ctl(filling_.get(), EPOLL_CTL_ADD, buffer->event.get(), &event);
    buffers_.push_back(std::move(buffer));
  }
  return {};
}

Result<void> PerfStacks::add_thread(pid_t thread, Events& events) const {
  std::vector<UniqueFd>& of_thread = events[thread];
  for (const auto& buffer : buffers_) {
    UniqueFd event = open_event(thread, buffer->cpu);
    if (!event && errno == ESRCH) return {};  // it has ended
    if (!event || ::ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, buffer->event.get()) != 0)
      return errno_error(errno, perf_failure, fmt::format("of thread {}", thread));
    of_thread.push_back(std::move(event));
  }
  return {};
}

Result<void> PerfStacks::add_target(pid_t tgid, const rtev_stack_target& /*target*/) {
  Events events;
  // A thread that was not sampled yet may have started others meanwhile.
  for (bool found_new = true; found_new;) {
    found_new = false;
    Result<void> added;
    visit_names(fmt::format("/proc/{}/task", tgid), [&](std::string_view name) {
      const auto thread = parse_number<pid_t>(name);
      if (!thread || events.contains(*thread) || events.size() >= max_threads) return true;
      added = add_thread(*thread, events);
      found_new = true;
      return added.has_value();
    });
    if (!added) {
      targets_.insert_or_assign(tgid, std::move(events));
      return added;
    }
  }
  targets_.insert_or_assign(tgid, std::move(events));
  return {};
}

void PerfStacks::read_stacks(const StackConsumer& consumer) {
  for (const auto& buffer : buffers_) read(*buffer, consumer);
}

void PerfStacks::read(Buffer& buffer, const StackConsumer& consumer) {
  const std::uint64_t head = std::atomic_ref{buffer.page->data_head}.load(std::memory_order_acquire);
  std::uint64_t tail = buffer.page->data_tail;
  const auto copy = [&](std::uint64_t from, std::size_t size) {
    record_.resize(size);
    const auto at = static_cast<std::size_t>(from % buffer.bytes);
    const std::size_t first = std::min(size, buffer.bytes - at);
    std::memcpy(record_.data(), buffer.data() + at, first);
    std::memcpy(record_.data() + first, buffer.data(), size - first);
  };
  while (head - tail >= sizeof(perf_event_header)) {
    perf_event_header header;
    copy(tail, sizeof header);
    std::memcpy(&header, record_.data(), sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    copy(tail, header.size);
    tail += header.size;
    rtev_stack stack;
    if (header.type == PERF_RECORD_LOST && header.size >= sizeof header + 16) {
      std::uint64_t lost = 0;
      std::memcpy(&lost, record_.data() + sizeof header + 8, sizeof lost);
      lost_ += lost;
    } else if (parse(record_, stack, payload_)) {
      consumer(stack, payload_);
    }
  }
  // All was read, or makes no sense.
  std::atomic_ref{buffer.page->data_tail}.store(head, std::memory_order_release);
}

bool PerfStacks::parse(std::span<const std::byte> record, rtev_stack& stack, std::vector<std::byte>& payload) {
  ByteCursor cursor(record);
  const auto header = cursor.take<perf_event_header>();
  if (!cursor.ok() || header.type != PERF_RECORD_SAMPLE) return false;
  stack = {};
  stack.tgid = cursor.take<std::uint32_t>();
  stack.tid = cursor.take<std::uint32_t>();
  stack.time_ns = cursor.take<std::uint64_t>();
  stack.cpu = cursor.take<std::uint32_t>();
  cursor.take<std::uint32_t>();
  stack.weight = cursor.take<std::uint64_t>();
  payload.clear();
  stack.kind = RTEV_STACK_ON_CPU;
  stack.flags = RTEV_STACK_NO_LAYOUT;
  stack.domain = -1;
  if (stack.tid == stack.tgid) {
    stack.domain = 0;
    stack.role = RTEV_ROLE_MUTATOR;
  }
  if (cursor.take<std::uint64_t>() == PERF_SAMPLE_REGS_ABI_64) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(std::popcount(register_mask)); ++i)
      stack.registers[dwarf_number(i)] = cursor.take<std::uint64_t>();
  }
  const auto room = cursor.take<std::uint64_t>();
  const auto memory = cursor.take_bytes(room);
  const std::uint64_t copied = room > 0 ? cursor.take<std::uint64_t>() : 0;
  if (!cursor.ok()) return false;
  const rtev_stack_copy copy{.address = stack.registers[stack_pointer],
                             .bytes = static_cast<std::uint32_t>(std::min(copied, room) & ~std::uint64_t{7}),
                             .pad = 0};
  if (copy.bytes == 0 || copy.address % 8 != 0) return true;
  stack.copies = 1;
  const auto head = std::as_bytes(std::span(&copy, 1));
  payload.insert(payload.end(), head.begin(), head.end());
  payload.insert(payload.end(), memory.begin(), memory.begin() + copy.bytes);
  stack.bytes = static_cast<std::uint32_t>(payload.size());
  return true;
}

std::vector<StackDrop> PerfStacks::take_stack_drops(std::uint64_t now_ns) {
  const std::uint64_t since_ns = std::exchange(last_read_ns_, now_ns);
  const std::uint64_t lost = std::exchange(lost_, 0);
  if (lost == 0) return {};
  return {{.kind = RTEV_STACK_ON_CPU,
           .loss = RTEV_STACK_FULL,
           .count = lost,
           .first_ns = since_ns != 0 ? since_ns : now_ns,
           .last_ns = now_ns}};
}

}  // namespace rtev::kernel
