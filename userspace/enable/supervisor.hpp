// SPDX-License-Identifier: MIT
// Replaces the process that switches events on when a program keeps it waiting.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>

#include "base/unique_fd.hpp"
#include "enable/attempt.hpp"
#include "enable/enabler.hpp"
#include "enable/guardian.hpp"
#include "enable/journal.hpp"
#include "enable/left_alone_log.hpp"
#include "enable/mending.hpp"
#include "enable/progress.hpp"
#include "enable/silent_processes.hpp"

namespace rtev::enable {

/// Passes requests of the tracer to a worker process, and its answers back. It never looks into the memory of programs
/// itself. A worker that waits for one program for too long is killed and left behind: SIGKILL does not end a process
/// that waits for a page of a FUSE file. The next worker takes its place, without that program. One thread.
class Supervisor {
 public:
  /// `tracer`: the socket; must outlive the object.
  static Result<Supervisor> create(int tracer, const EnablerOptions& options);
  Supervisor(Supervisor&&) noexcept = default;
  Supervisor& operator=(Supervisor&&) = delete;
  /// Ends the worker.
  ~Supervisor();
  /// Until the tracer is gone, or workers end too often. The first message to the tracer says whether it could start.
  void run();

 private:
  struct Asked {
    EnableRequest request;
    std::uint64_t time_ns;
  };

  Supervisor(int tracer, const EnablerOptions& options, Journal journal, Guardian guardian, Progress progress,
             const JournalOwner& own)
      : tracer_(tracer),
        options_(options),
        journal_(std::move(journal)),
        guardian_(std::move(guardian)),
        progress_(std::move(progress)),
        own_(own) {}

  static Result<Guardian> start_guardian(int tracer, const EnablerOptions& options);
  std::optional<EnableAnswer> start_worker();
  [[noreturn]] void work(int channel);
  void abandon_worker();
  void end_worker();
  bool start_next_worker(WorkerEnd end);
  bool wait_to_start() const;
  bool replace_worker(bool is_gone);
  void order_queue();
  void keep_ours();
  void forget_ended();
  bool take_request();
  void pass_requests();
  bool pass_answers();
  void note_in_log(const EnableAnswer& answer, std::uint32_t user);
  void add_suspect(const UsersProgram& suspect);
  void finish();
  void leave();
  bool attend(pollfd* other);
  void ask(const EnableRequest& request);
  int timeout_ms() const;

  int tracer_;
  EnablerOptions options_;
  Journal journal_;
  Guardian guardian_;
  Progress progress_;
  JournalOwner own_;
  SilentProcesses silent_{};
  Mending mending_ = Mending::side_by_side;  ///< of the worker
  bool has_started_ = false;                 ///< the first one
  LeftAloneLog left_alone_{};
  Suspects suspects_ = read_suspects();
  UniqueFd worker_{}, worker_process_{};          ///< its socket, and its pidfd
  std::map<std::int32_t, Asked> asked_{};         ///< requests without an answer, by pid
  std::deque<std::int32_t> queue_{};              ///< those that the worker has still to be sent
  std::map<std::int32_t, EnableRequest> ours_{};  ///< to keep those whose events are on because of this run
  std::size_t next_check_ = 0;                    ///< when there are so many of them: see forget_ended()
  bool is_finishing_ = false;
  std::uint64_t last_answer_ns_ = 0;
  std::deque<std::uint64_t> replaced_ns_{};  ///< when workers were replaced, of the last hour
};

}  // namespace rtev::enable
