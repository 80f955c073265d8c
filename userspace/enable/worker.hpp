// SPDX-License-Identifier: MIT
// What the enabler process does with requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/file_limit.hpp"
#include "enable/attempt.hpp"
#include "enable/enabled_entries.hpp"
#include "enable/enabler.hpp"
#include "enable/removal_queue.hpp"
#include "enable/user_costs.hpp"
#include "inspect/enabled_list.hpp"
#include "kernel/enable_programs.hpp"
#include "kernel/group_memory.hpp"

namespace rtev::enable {

/// Takes requests and gives answers. A program waits until it runs; the first of a binary goes alone. One thread; times
/// are ns of CLOCK_MONOTONIC.
class Worker {
 public:
  using Answer = std::function<void(EnableAnswer)>;
  /// Of `options.max_per_second` and of programs that wait, each user has a share. `tried_before`: by earlier workers.
  Worker(const EnablerOptions& options, kernel::EnablePrograms programs, Journal journal, Guardian guardian,
         const Supervision& supervision, Processes tried_before, Answer answer);

  void take(const EnableRequest& request, std::uint64_t now_ns);
  /// Requests that were put off, and are to be taken again now.
  std::vector<EnableRequest> take_due(std::uint64_t now_ns);
  /// False if the programs of this user have used up the user's share of this process's time. At the end all are taken.
  bool has_time_for(std::uint32_t user, std::uint64_t now_ns) const;
  /// Readable when step() has something to do, besides what time decides.
  std::array<int, 2> event_fds() const { return {programs_.fd(), entries_.event_fd()}; }
  /// Hung up (poll(2)) when the guardian is gone: then this process should end.
  int guardian_end_fd() const { return guardian_.end_fd(); }
  /// Continues with programs that run now, and gives up those that did not run in time.
  void step(std::uint64_t now_ns);
  std::optional<std::uint64_t> next_step_ns();
  /// Gives up all programs, so that nothing of attempts on them stays.
  void end();

 private:
  struct Program {
    EnableRequest request;
    std::shared_ptr<const Target> target;
    std::uint64_t begin_ns = 0;                ///< of the request, later of the first attempt
    std::optional<std::uint64_t> deadline_ns;  ///< to run
    Requirements requirements{};               ///< as they were checked last
    std::uint64_t retry_ns = 0;                ///< time between attempts, grows
    std::uint64_t window_ns = 0;               ///< of the next attempt, grows
    std::uint64_t thread_pointer = 0;          ///< of the thread that ran; 0: none, a report is waited for
    std::uint64_t checked_ns = 0;              ///< when its requirements were
    bool was_tried = false;
    std::uint64_t tried_ticks = 0;  ///< when it was first: children that were forked later have its ring
    std::optional<ReservedRing> made{};
    std::optional<std::uint64_t> watched_until_ns{};  ///< it was answered: whether it comes to harm
    bool is_on = false, is_change_watched = false;
  };

  /// The file of a ring that is to be removed.
  struct Removal {
    std::shared_ptr<const Target> target;
    std::optional<ReservedRing> made{};          ///< prepared here; nothing: the one that the program maps
    std::optional<std::uint64_t> since_ticks{};  ///< when its events came on, which were paused before they went off
  };

  /// A request that is taken again.
  struct Later {
    EnableRequest request;
    std::uint64_t due_ns = 0;
    unsigned times = 0;
  };

  using Charge = UserCosts::Charge;
  using Programs = std::map<std::int32_t, Program>;

  Programs::iterator find_asleep(std::uint64_t now_ns);
  void enable(const EnableRequest& request, std::shared_ptr<const Target> target, Requirements requirements,
              std::uint64_t now_ns);
  Requirements requirements_of(const Target& target);
  std::optional<Requirement> missing_now(Program& program, std::uint64_t now_ns);
  void attempt(Program& program, std::uint64_t now_ns);
  void try_later(Program& program, std::uint64_t now_ns);
  void came_on(Program& program, std::uint64_t now_ns);
  void refuse(const EnableRequest& request, const Refused& refused, const Target* target = nullptr);
  void answer(const Program& program, EnableResult result, std::uint64_t now_ns);
  void give_up(Program& program, std::uint64_t now_ns);
  void harmed(const Program& program, std::uint32_t signal);
  void forget(std::int32_t pid);
  void resume(const EnableRequest& request, const std::shared_ptr<const Target>& target);
  void disable(const EnableRequest& request, const std::shared_ptr<const Target>& shared_target, EventsState events);
  static std::optional<EnabledNote> our_note(const Target& target);
  bool adopt(const EnableRequest& request, const std::shared_ptr<const Target>& target);
  void take_as_ours(const EnableRequest& request, const std::shared_ptr<const Target>& target, EnableResult result,
                    std::uint64_t since_ticks);
  void switch_off_child(const EnableRequest& request);
  void watch_changes(const EnableRequest& request, const std::shared_ptr<const Target>& target);
  void changed(std::int32_t pid, std::uint32_t what);
  void switch_off(const EnableRequest& request, const std::shared_ptr<const Target>& target, const Refused& why);
  void remove_later(Removal removal);
  void remove_ring(Removal& removal);
  void keep_ring(const Target& target, std::uint64_t since_ticks);
  void forget_all();
  void finish(const EnableRequest& request, std::uint64_t now_ns);
  bool take_back(const std::shared_ptr<const Target>& shared_target, std::uint64_t since_ticks, std::uint64_t end_ns);
  void note(const Target& target, Enabled enabled, std::uint64_t since_ticks);
  std::string ring_path(const Target& target) const;
  bool take_later(const EnableRequest& request, unsigned times);
  bool keep(const Target& target);
  bool may_try(const Program& program, std::uint64_t now_ns) const;
  bool has_place_for(std::uint32_t user) const;
  void end_waits(std::uint64_t now_ns);

  EnablerOptions options_;
  Procfs procfs_;
  kernel::EnablePrograms programs_;
  std::optional<kernel::GroupMemory> group_memory_{};  ///< once it is needed: a worker has to start soon
  Journal journal_;
  Guardian guardian_;
  Supervision supervision_;
  Processes tried_before_;
  Answer answer_;
  Programs waiting_;                     ///< by pid; also those that are watched
  std::map<std::int32_t, Later> later_;  ///< by pid
  /// Of a binary that is not proved: whose events came on a moment ago. The others wait.
  std::map<UsersProgram, std::int32_t> first_of_;
  std::set<UsersProgram> proved_;
  Suspects suspects_;
  std::size_t max_descriptors_ = raise_file_limit();
  EnabledEntries entries_;
  /// Programs whose events are on, and that may change in a way that harms their children: see changed().
  std::map<std::int32_t, std::pair<EnableRequest, std::shared_ptr<const Target>>> watched_;
  UserCosts costs_;
  RemovalQueue<Removal> removals_{costs_};
  bool is_finishing_ = false;
  std::uint64_t next_check_ns_ = 0;                         ///< of what waits
  std::map<std::uint32_t, std::uint64_t> next_attempt_ns_;  ///< by user: see EnablerOptions::max_per_second
};

}  // namespace rtev::enable
