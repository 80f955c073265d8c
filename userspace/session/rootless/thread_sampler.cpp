// SPDX-License-Identifier: MIT
#include "session/rootless/thread_sampler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/proc_files.hpp"

namespace rtev {
namespace {

using Buffer = std::array<char, 8192>;

/// In which all of a sample is read: some 50 µs, unless another thread has the CPU. Then it is read again.
constexpr std::uint64_t max_reading_ns = 1'000'000;
constexpr int max_readings = 3;

/// Empty if it cannot be read.
std::string_view read_again(const UniqueFd& file, Buffer& buffer) {
  const ssize_t size = file ? ::pread(file.get(), buffer.data(), buffer.size(), 0) : -1;
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

void ThreadSampler::add(std::int32_t pid) {
  if (threads_.size() >= max_threads) return;
  const auto is_taken = [&](std::uint16_t index) {
    return std::ranges::any_of(threads_, [&](const auto& other) { return other.second.index == index; });
  };
  std::uint16_t index = 0;
  while (is_taken(index)) ++index;
  const std::filesystem::path directory = proc_ / fmt::format("{}/task/{}", pid, pid);
  const auto open = [&](const char* name) { return open_proc(directory / name, O_RDONLY); };
  const Thread thread{.pid = pid,
                      .tid = pid,
                      .domain = 0,
                      .priority = 0,
                      .role = ThreadRole::mutator,
                      .tracked = true,
                      .holds_lock = false,
                      .comm_bytes = {}};
  threads_.insert_or_assign(pid, Watched{.index = index,
                                         .thread = SampledThread(thread, index),
                                         .schedstat = open("schedstat"),
                                         .status = open("status"),
                                         .syscall = open("syscall")});
  if (!sampling_.due_ns()) sampling_.at_once();
}

void ThreadSampler::sample(std::uint64_t now_ns) {
  for (auto thread = threads_.begin(); thread != threads_.end();)
    thread = look(thread->second) ? std::next(thread) : threads_.erase(thread);
  if (!threads_.empty()) sampling_.at(now_ns + interval_ns);
}

/// False if the thread has ended.
bool ThreadSampler::look(Watched& watched) {
  Buffer buffer;
  for (int attempt = 0; attempt < max_readings; ++attempt) {
    ThreadSample sample{.time_ns = clock_()};
    parse_schedstat(read_again(watched.schedstat, buffer), sample);
    parse_status(read_again(watched.status, buffer), sample);
    if (sample.has_ended) return false;
    parse_syscall(read_again(watched.syscall, buffer), sample);
    // Who lost the CPU meanwhile has CPU time of one moment and sleeps of another one: a turn that there never was.
    if (clock_() - sample.time_ns > max_reading_ns) continue;
    watched.thread.add(
        sample, [&](std::uint64_t time_ns, const SchedSwitch& change) { emit_(watched.index, time_ns, change); });
    break;
  }
  return true;
}

}  // namespace rtev
