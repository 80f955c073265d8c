// SPDX-License-Identifier: MIT
// Switches events on in running programs, from a process of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/requirements.hpp"
#include "rtev/error.hpp"
#include "stream/records.hpp"

namespace rtev::enable {

/// How long a program is watched after the last attempt on it: whether it comes to harm.
inline constexpr std::chrono::nanoseconds watch_time = std::chrono::seconds(2);

struct EnablerOptions {
  Allowed allowed{};  ///< see check_requirements()
  /// What is switched on is paused when the Enabler is destroyed, or its process killed.
  bool pauses_at_end = false;
  /// Also pause those at the end that another run has switched on, which leaves them on: see Enabler::leave().
  bool adopts = false;
  /// Also resume programs that paused their events themselves, not only those that had them switched on.
  bool resumes_all = false;
  std::uint32_t max_per_second = 50;  ///< programs that are switched on
};

/// What is to be done with the events of a process.
enum class Task : std::uint8_t {
  enable,
  disable,    ///< pause them; if they were switched on by rtev-bpf, also remove the ring's file
  take_back,  ///< the same, but only if rtev-bpf has switched them on: nothing is done to other programs
  check,      ///< only look at what enabling takes
  keep,       ///< have the guardian pause them at the end, if they were switched on by rtev-bpf
  finish,     ///< of no process: nothing is switched on from now on
  leave,      ///< of no process: nothing is switched on, and what is on stays on
  restarted,  ///< only as an answer, of no process: what switches events on ended or hung, and was replaced
};

struct EnableRequest {
  Task task = Task::enable;
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;     ///< field 22 of /proc/PID/stat; 0: any process with this pid
  std::uint32_t user = 0;            ///< charged_user() of the process when it was found: who is charged with waits
  std::uint32_t id = 0;              ///< for the caller: the answer has it, too
  bool is_child_of_enabled = false;  ///< its parent's events were on because of this run when it was forked
  /// How long to wait for a program that sleeps; nothing: as long as it lives.
  std::optional<std::chrono::nanoseconds> patience{};
};

struct HarmedProgram {
  std::uint64_t device = 0, inode = 0;
  std::uint32_t user = 0;
};

struct EnableAnswer {
  Task task{};
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint32_t id = 0;
  std::string comm{};
  EnableResult result{};
  bool is_correction = false;               ///< there was another answer before: the program came to harm after that
  std::string why{}, hint{};                ///< for people; may hold any bytes
  std::uint64_t took_ns = 0;                ///< from the first attempt on
  std::vector<Requirement> requirements{};  ///< of Task::check, and where one is not met
  std::string ring_path{};                  ///< if its events came on; may hold any bytes
  bool is_ours = false;                     ///< its events are on because of this run
  std::uint32_t user = 0;                   ///< of the request
  std::optional<HarmedProgram> harmed{};    ///< the program that is suspect from now on
};

/// The enabler process: it has the rights to look into processes and to write their memory. It
/// handles one program at a time; the first of a binary alone, the others after it went well. One thread.
class Enabler {
 public:
  /// Forks it, and the guardian: call it before there are threads.
  static Result<Enabler> start(const EnablerOptions& options);
  Enabler(Enabler&&) noexcept = default;
  Enabler& operator=(Enabler&&) = delete;
  /// Waits until events are paused that have to be, but not for long.
  ~Enabler();

  enum class Wait : std::uint8_t { yes, no };
  /// False if the process is busy, and it is not waited for. If it is gone, take() says so.
  bool ask(const EnableRequest& request, Wait wait);
  /// At the end events stay on: another run takes care of them. Waits until that is settled, but not for long.
  void leave();
  /// Readable (epoll) when there are answers.
  int event_fd() const { return channel_.get(); }
  /// Readable (epoll) if the process has ended: then nothing is switched on any more.
  int end_fd() const { return end_.get(); }
  /// The answers so far. Each request has one, in any order. An error at the end of the process.
  Result<std::vector<EnableAnswer>> take();

 private:
  Enabler(UniqueFd channel, UniqueFd end) : channel_(std::move(channel)), end_(std::move(end)) {}
  UniqueFd channel_, end_;
};

}  // namespace rtev::enable
