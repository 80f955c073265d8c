// SPDX-License-Identifier: MIT
#include "bench/peer.hpp"

#include <fmt/core.h>
#include <signal.h>

#include <sstream>
#include <stdexcept>

#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

test::Command command(std::string_view mode, PeerKind kind, const std::filesystem::path& directory, pid_t pid,
                      int cpu) {
  return {.argv = {RTEV_PEER, std::string(mode), kind == PeerKind::c ? "c" : "ocaml", directory.string(),
                   std::to_string(pid)},
          .cpu = cpu};
}

test::Command with(test::Command command, int argument) {
  command.argv.push_back(std::to_string(argument));
  return command;
}

}  // namespace

std::string_view name_of(PeerKind kind) {
  return kind == PeerKind::c ? "OCaml's C reader" : "OCaml's reader";
}

DecodingPeer::DecodingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu)
    : process_(command("decode", kind, directory, pid, cpu)) {}

Decoded DecodingPeer::round(int times, bool touched) {
  process_.write(fmt::format("{} {}\n", times, touched ? "touched" : "fresh"));
  const auto lines = process_.lines_until("done");
  Decoded decoded;
  std::istringstream words(lines.empty() ? std::string() : lines.back());
  if (!(words >> decoded.ns >> decoded.events >> decoded.time_sum))
    throw std::runtime_error("invalid output of a peer");
  return decoded;
}

FollowingPeer::FollowingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu, int interval_us)
    : process_(with(command("follow", kind, directory, pid, cpu), interval_us)) {
  process_.lines_until("ready");
}

Followed FollowingPeer::stop() {
  process_.signal(SIGTERM);
  const test::Outcome outcome = process_.wait();
  std::istringstream words(outcome.out.substr(outcome.out.find('\n') + 1));
  Followed followed;
  if (!(words >> followed.events >> followed.lost_words >> followed.polls >> followed.failed_polls >> followed.cpu_ns))
    throw std::runtime_error("invalid output of a peer: " + outcome.out + outcome.err);
  return followed;
}

WritingPeer::WritingPeer(const std::filesystem::path& directory, pid_t pid, int interval_us,
                         const std::filesystem::path& file)
    : process_({.argv = {RTEV_PEER, "write", directory.string(), std::to_string(pid), std::to_string(interval_us),
                         file.string()}},
               "ready") {}

std::uint64_t WritingPeer::cpu_ns() const {
  return total_cpu_ns(process_.pid());
}

std::uint64_t WritingPeer::stop() {
  process_.signal(SIGTERM);
  const test::Outcome outcome = process_.wait();
  std::istringstream words(outcome.out.substr(outcome.out.find('\n') + 1));
  std::uint64_t events = 0, lost_words = 0;
  if (!(words >> events >> lost_words) || events == 0)
    throw std::runtime_error("a peer read nothing: " + outcome.out + outcome.err);
  return lost_words;
}

}  // namespace rtev::bench
