// SPDX-License-Identifier: MIT
#include "enable/worker.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.hpp"
#include "base/user_share.hpp"
#include "enable/as_program.hpp"
#include "enable/process_status.hpp"
#include "enable/ring_removal.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev::enable {
namespace {

/// Between two attempts on one program: twice as long each time. One that never starts its events costs little.
constexpr std::uint64_t first_retry_ns = 10'000'000, last_retry_ns = 5'000'000'000;

/// For how long the first attempt waits for the program; further ones four times as long each time. A program that runs
/// for microseconds at a time is asleep again before its hook is replaced, and comes by it when it wakes.
constexpr std::uint64_t first_window_ns = 50'000'000;
constexpr std::uint64_t window_growth = 4;

/// How long a program is watched after its events came on, and for how long the other programs of its binary wait.
constexpr auto watch_ns = static_cast<std::uint64_t>(watch_time.count());
constexpr std::uint64_t proof_ns = 100'000'000;

/// How long the requirements of a program are taken to be met.
constexpr std::uint64_t checked_for_ns = 500'000'000;

/// A program of which was reported that it runs may have gone to sleep since.
constexpr std::uint64_t max_report_age_ns = 50'000'000;

constexpr std::uint64_t second_ns = 1'000'000'000;

/// For how long a program is not reported whose user has used up the user's share of time.
constexpr std::uint64_t no_time_pause_ns = 100'000'000;

/// How long the children of a program may take that is taken back: others wait.
constexpr std::uint64_t take_back_children_ns = 200'000'000;

/// A program that was started with this variable has a ring of its own.
constexpr std::string_view start_variable = "OCAML_RUNTIME_EVENTS_START";

constexpr std::uint64_t no_reports = UINT64_MAX;

/// A request that is taken again: when, and how often.
constexpr std::uint64_t later_ns = 100'000'000;
constexpr unsigned max_later = 30;
constexpr std::uint64_t not_due = UINT64_MAX;

/// Programs that are waited for. The map of the BPF programs has no more.
constexpr std::size_t max_waiting = RTEV_MAX_WANTED;

/// More than a program takes while it waits, or while its events are on.
constexpr std::size_t descriptors_of_program = 8;

/// What a program dies by if its memory was broken, its ring could not be made, or a limit or filter stopped it.
bool is_harm(std::uint32_t signal) {
  static constexpr std::array signals{SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXFSZ, SIGSYS};
  return std::ranges::find(signals, static_cast<int>(signal)) != signals.end();
}

/// Why the events of a program are switched off that has changed (RTEV_CHANGED_...).
Refused refused_for(std::uint32_t change) {
  const auto off = [](EnableResult result, const char* why,
                      const char* hint = "switch its events on when it has done that") {
    return Refused{.result = result, .why = std::string("its events are off again: ") + why, .hint = hint};
  };
  switch (change) {
    case RTEV_CHANGED_USER:
      return off(EnableResult::privileged, "it became another user, whose children could not make their rings");
    case RTEV_CHANGED_MOUNTS:
      return off(EnableResult::directory,
                 "it left its mount namespace, and its children might not find the directory of its ring");
    case RTEV_CHANGED_FILTER:
      return off(EnableResult::seccomp, "it has a filter of system calls now (seccomp)", confined_hint);
    case RTEV_CHANGED_FILES:
      return off(EnableResult::limit, "it can open few more files (RLIMIT_NOFILE), which its children need",
                 files_hint);
    default:
      return off(EnableResult::directory,
                 "it changed its root directory, where its children could not make their rings");
  }
}

Refused suspected(const Suspects& suspects, const UsersProgram& program) {
  return {.result = EnableResult::suspect,
          .why = suspects.is_full(program.user) ? "processes of many programs of its user came to harm"
                                                : "another process of its program came to harm",
          .hint = "to have it tried again remove " + suspects.entry_of(program)};
}

/// Nothing is switched on that could not be switched off if this process is killed.
Refused too_many_kept() {
  return {.result = EnableResult::denied,
          .why = "the events of too many programs of its user are on for the time of this run"};
}

Refused not_set_up() {
  return {.result = EnableResult::not_running,
          .why = "its runtime has not set up its events yet",
          .hint = "try again when it has started"};
}

Refused refusal_of(const Requirement& missing) {
  return {.result = missing.result, .why = missing.what + ": " + missing.found, .hint = missing.hint};
}

EnableAnswer answer_to(const EnableRequest& request, const Target& target, EnableResult result) {
  return {.task = request.task,
          .pid = request.pid,
          .start_ticks = target.process.start_ticks(),
          .id = request.id,
          .comm = target.comm,
          .result = result,
          .user = request.user};
}

}  // namespace

Worker::Worker(const EnablerOptions& options, kernel::EnablePrograms programs, Journal journal, Guardian guardian,
               const Supervision& supervision, Processes tried_before, Answer answer)
    : options_(options),
      programs_(std::move(programs)),
      journal_(std::move(journal)),
      guardian_(std::move(guardian)),
      supervision_(supervision),
      tried_before_(std::move(tried_before)),
      answer_(std::move(answer)),
      suspects_(supervision.suspects),
      entries_(procfs_, max_descriptors_ / descriptors_of_program) {}

void Worker::take(const EnableRequest& request, std::uint64_t now_ns) {
  if (request.task == Task::finish) return finish(request, now_ns);
  // Unless the tracer has asked anew.
  const auto late = later_.extract(request.pid);
  const unsigned times = late && late.mapped().request.id == request.id ? late.mapped().times : 0;
  const Charge charge(costs_, request.user);
  std::uint64_t start_ticks = request.start_ticks;
  if (start_ticks == 0) start_ticks = procfs_.stat(request.pid).value_or(ProcessStat{}).start_ticks;
  const Progress::Scope at_work = supervision_.progress.work_on(request.pid, start_ticks, request.user);
  auto process = HeldProcess::hold(request.pid, request.start_ticks);
  auto found = process ? find_target(procfs_, std::move(*process)) : std::unexpected(process.error());
  if (!found && request.is_child_of_enabled) switch_off_child(request);
  if (!found) return refuse(request, found.error());
  const auto target = std::make_shared<const Target>(std::move(*found));
  const auto events = target->events_state();
  if (!events) return refuse(request, events.error(), &*target);
  if (request.task == Task::disable || request.task == Task::take_back) return disable(request, target, *events);
  if (request.task == Task::keep) {
    if (*events == EventsState::active && our_note(*target)) {
      keep(*target);
      EnableRequest enabled = request;
      enabled.task = Task::enable;
      watch_changes(enabled, target);
    }
    return refuse(request, {.result = EnableResult::nothing_to_do}, &*target);
  }
  if (const auto is_possible = check_ring_size(*target); !is_possible)
    return refuse(request, is_possible.error(), &*target);
  if (*events == EventsState::active) {
    if (request.is_child_of_enabled) return take_as_ours(request, target, EnableResult::nothing_to_do, boot_ticks());
    if (request.task == Task::enable && tried_before_.contains({request.pid, target->process.start_ticks()}))
      return take_as_ours(request, target, EnableResult::done, boot_ticks());
    if (options_.adopts && adopt(request, target)) return;
    return refuse(request, {.result = EnableResult::nothing_to_do}, &*target);
  }
  if (*events == EventsState::paused) {
    if (request.task == Task::check) return refuse(request, {.result = EnableResult::resumed}, &*target);
    return resume(request, target);
  }
  if (suspects_.contains(target->users_program()))
    return refuse(request, suspected(suspects_, target->users_program()), &*target);
  // The program may have executed itself: then the file of its ring has stayed.
  if (const auto before = last_enabled_note(request.pid, target->process.start_ticks());
      before && request.task != Task::check)
    remove_left_ring(procfs_, *target, *before);
  if (!target->is_initialised()) {
    if (request.task == Task::check) return refuse(request, not_set_up(), &*target);
    return enable(request, target, {}, now_ns);  // where its ring is to be will be known when it is
  }
  if (const auto hook = plan_hook(*target); !hook) {
    if (hook.error().is_passing && take_later(request, times)) return;
    return refuse(request, hook.error(), &*target);
  }
  Requirements requirements = requirements_of(*target);
  const Requirement* const missing = requirements.missing();
  // A child of a program whose events are on may be making its ring. The kernel sums up the memory that it can take
  // back every two seconds.
  const bool may_pass = missing != nullptr && (missing->what == free_name || missing->result == EnableResult::memory);
  if (may_pass && take_later(request, times)) return;
  if (missing != nullptr || request.task == Task::check) {
    const Refused refused = missing != nullptr ? refusal_of(*missing) : Refused{.result = EnableResult::done};
    EnableAnswer answer = answer_to(request, *target, refused.result);
    answer.why = refused.why;
    answer.hint = refused.hint;
    answer.requirements = std::move(requirements.list);
    return answer_(std::move(answer));
  }
  enable(request, target, std::move(requirements), now_ns);
}

/// Something stands in the way that may pass: takes the request again in a moment, for three seconds. False if it was,
/// or is only to be checked. `times`: how often it was put off already.
bool Worker::take_later(const EnableRequest& request, unsigned times) {
  if (request.task == Task::check || times == max_later) return false;
  later_.insert_or_assign(request.pid,
                          Later{.request = request, .due_ns = monotonic_ns() + later_ns, .times = times + 1});
  return true;
}

std::vector<EnableRequest> Worker::take_due(std::uint64_t now_ns) {
  std::vector<EnableRequest> due;
  for (auto& [pid, late] : later_) {
    if (late.due_ns > now_ns) continue;
    late.due_ns = not_due;
    due.push_back(late.request);
  }
  return due;
}

/// Nothing if rtev-bpf has not switched on the events of this very program.
std::optional<EnabledNote> Worker::our_note(const Target& target) {
  auto noted = enabled_note(target.process.pid(), target.process.start_ticks());
  const bool is_ours = noted && noted->enabled == Enabled::on && noted->place == target.hook();
  return is_ours ? std::move(noted) : std::nullopt;
}

/// From now on nothing is switched on. A program whose events may come on after its last attempt is left to the
/// guardian.
void Worker::finish(const EnableRequest& request, std::uint64_t now_ns) {
  is_finishing_ = true;
  removals_.finish();
  end_waits(now_ns);
  forget_all();
  later_.clear();
  answer_({.task = request.task, .pid = request.pid, .id = request.id});
}

void Worker::forget_all() {
  while (!waiting_.empty()) forget(waiting_.begin()->first);
}

void Worker::end() {
  forget_all();
  while (auto left = removals_.take_left(monotonic_ns())) {
    const Charge charge(costs_, left->first);
    remove_ring(left->second);
  }
}

void Worker::disable(const EnableRequest& request, const std::shared_ptr<const Target>& shared_target,
                     EventsState events) {
  const Target& target = *shared_target;
  const auto noted = our_note(target);
  if (!noted && request.task == Task::take_back)
    return refuse(request, {.result = EnableResult::nothing_to_do}, &target);
  if (auto paused = set_paused(target, true); !paused) return refuse(request, paused.error(), &target);
  const std::uint64_t end_ns = monotonic_ns() + take_back_children_ns;
  const bool is_as_before =
      events == EventsState::off || (noted && take_back(shared_target, noted->since_ticks, end_ns));
  EnableAnswer answer =
      answer_to(request, target, events == EventsState::active ? EnableResult::done : EnableResult::nothing_to_do);
  if (!is_as_before) answer.ring_path = ring_path(target);
  answer_(std::move(answer));
}

/// Leaves the program as it was, as far as that is possible. Of its children those are taken, too, that were forked
/// since then and run as the same user, until this time: their runtimes have made rings because it has one. False if
/// its ring's file stays.
bool Worker::take_back(const std::shared_ptr<const Target>& shared_target, std::uint64_t since_ticks,
                       std::uint64_t end_ns) {
  const Target& target = *shared_target;
  // At the end all go off first: a directory may keep from answering for a while. Children that are forked meanwhile
  // would make rings of their own.
  const bool is_forgotten =
      is_finishing_ ? target.check_unchanged(procfs_) && target.memory().write_word(target.flags().enabled, 0)
                    : forget_ring(procfs_, target);
  if (is_forgotten) note(target, Enabled::off, since_ticks);
  if (is_forgotten && is_finishing_) remove_later({.target = shared_target, .since_ticks = since_ticks});
  const std::uint32_t user = target.users_program().user;
  for (const std::int32_t pid : procfs_.children(target.process.pid())) {
    if (monotonic_ns() > end_ns) break;
    const auto stat = procfs_.stat(pid);
    if (!stat || stat->start_ticks < since_ticks || procfs_.user(pid) != user) continue;
    // Those that this or another run knows are taken back by requests of their own.
    if (enabled_by_us(pid, stat->start_ticks) != Enabled::never) continue;
    const Progress::Scope at_work = supervision_.progress.work_on(pid, stat->start_ticks, user);
    auto process = HeldProcess::hold(pid, stat->start_ticks);
    if (!process || process->started_with(start_variable)) continue;
    auto child = find_target(procfs_, std::move(*process));
    if (!child || !target.is_copy(*child)) continue;
    if (child->events_state() == EventsState::active && set_paused(*child, true))
      take_back(std::make_shared<const Target>(std::move(*child)), since_ticks, end_ns);
  }
  return is_forgotten;
}

/// Its events are on because of rtev-bpf: an earlier worker tried it, another run leaves it to this one, or it was
/// forked while the events of its parent were on, so that its runtime has made a ring of its own.
void Worker::take_as_ours(const EnableRequest& request, const std::shared_ptr<const Target>& target,
                          EnableResult result, std::uint64_t since_ticks) {
  if (!keep(*target)) {
    [[maybe_unused]] const auto paused = set_paused(*target, true);
    return refuse(request, too_many_kept(), &*target);
  }
  note(*target, Enabled::on, since_ticks);
  EnableAnswer answer = answer_to(request, *target, result);
  if (result == EnableResult::done) answer.ring_path = ring_path(*target);
  answer.is_ours = true;
  answer_(std::move(answer));
  watch_changes(request, target);
}

/// The run that has switched its events on leaves them to this one. False if there is none.
bool Worker::adopt(const EnableRequest& request, const std::shared_ptr<const Target>& target) {
  const auto noted = enabled_note(target->process.pid(), target->process.start_ticks());
  if (!noted || noted->enabled != Enabled::on || !noted->for_a_run) return false;
  take_as_ours(request, target, EnableResult::nothing_to_do, noted->since_ticks);
  return true;
}

/// A child that has given up rights since it was forked, as a daemon's does, so that it is not written to like other
/// programs: what it forks would die.
void Worker::switch_off_child(const EnableRequest& request) {
  const auto stat = procfs_.stat(request.pid);
  const auto found = stat ? watched_.find(stat->parent) : watched_.end();
  if (found == watched_.end()) return;
  const Target& parent = *found->second.second;
  const auto memory = parent.process.memory_of_child(request.pid, stat->start_ticks);
  if (memory && memory->word(parent.flags().enabled) == 1) memory->write_word(parent.flags().enabled, 0);
}

/// Its children make rings as the user that the program is when it forks them, and below the root directory that it has
/// then, with the mounts, the filter of system calls and the open files that it has then. If they cannot, they end. Any
/// program may change all of these: in a user namespace of its own it may also change its root directory and mounts.
void Worker::watch_changes(const EnableRequest& request, const std::shared_ptr<const Target>& target) {
  const Credentials& credentials = target->process.credentials();
  const std::uint32_t user = target->users_program().user;
  const auto own = static_cast<std::size_t>(std::ranges::count_if(
      watched_, [user](const auto& entry) { return entry.second.second->users_program().user == user; }));
  if (!has_share(own, watched_.size(), RTEV_MAX_WATCHED) ||
      !programs_.watch(request.pid, credentials.user, options_.allowed.confined))
    return switch_off(request, target,
                      {.result = EnableResult::denied,
                       .why = "its events are off again: too many programs of its user have theirs on",
                       .hint = "trace some of them only (-p, -n)"});
  watched_.insert_or_assign(request.pid, std::pair(request, target));
  // Before that it was not seen: a child may have done it since it was forked, and made its ring.
  if (const auto stat = procfs_.stat(request.pid); stat && request.is_child_of_enabled) {
    if (const auto found = watched_.find(stat->parent); found != watched_.end()) {
      const HeldProcess& parent = found->second.second->process;
      if (parent.credentials().user != credentials.user) return changed(request.pid, RTEV_CHANGED_USER);
      if (!target->process.has_mounts_of(parent)) return changed(request.pid, RTEV_CHANGED_MOUNTS);
      if (!target->process.has_root_of(parent)) return changed(request.pid, RTEV_CHANGED_ROOT);
    }
  }
  const auto status = target->process.read("status").and_then(parse_status);
  if (status && status->user_ids[1] != credentials.user) return changed(request.pid, RTEV_CHANGED_USER);
  if (!target->process.has_its_mounts()) return changed(request.pid, RTEV_CHANGED_MOUNTS);
  if (!target->process.has_its_root()) changed(request.pid, RTEV_CHANGED_ROOT);
}

/// It has given up something that its children need for their rings.
void Worker::changed(std::int32_t pid, std::uint32_t what) {
  const auto [request, target] = std::move(watched_.extract(pid).mapped());
  programs_.unwatch(pid);
  switch_off(request, target, refused_for(what));
}

/// What was held is still its memory, so the runtime is made to believe that it has no ring, whatever its rights are
/// now.
void Worker::switch_off(const EnableRequest& request, const std::shared_ptr<const Target>& shared_target,
                        const Refused& why) {
  const Target& target = *shared_target;
  const Progress::Scope at_work = supervision_.progress.work_on(target.process);
  if (!target.memory().is_alive() || target.memory().word(target.flags().enabled) != 1) return;
  target.memory().write_word(target.flags().enabled, 0);
  note(target, Enabled::off, boot_ticks());
  remove_later({.target = shared_target});
  EnableAnswer answer = answer_to(request, target, why.result);
  answer.is_correction = true;
  answer.why = why.why;
  answer.hint = why.hint;
  answer_(std::move(answer));
}

void Worker::resume(const EnableRequest& request, const std::shared_ptr<const Target>& shared_target) {
  const Target& target = *shared_target;
  if (!options_.resumes_all && enabled_by_us(target.process.pid(), target.process.start_ticks()) == Enabled::never)
    return refuse(request,
                  {.result = EnableResult::own_pause,
                   .why = "it paused its events itself",
                   .hint = "rtev-bpf enable resumes them"},
                  &target);
  // Before they are on: this process may be killed at any time.
  if (!keep(target)) return refuse(request, too_many_kept(), &target);
  if (auto resumed = set_paused(target, false); !resumed) return refuse(request, resumed.error(), &target);
  EnableAnswer answer = answer_to(request, target, EnableResult::resumed);
  answer.ring_path = ring_path(target);
  answer.is_ours = true;
  answer_(std::move(answer));
  watch_changes(request, shared_target);
}

/// Without the note it is not resumed by a later run, and its ring stays: no reason to fail.
void Worker::note(const Target& target, Enabled enabled, std::uint64_t since_ticks) {
  const HeldProcess& process = target.process;
  const auto ring = enabled == Enabled::on ? present_ring(procfs_, process) : std::nullopt;
  [[maybe_unused]] const auto noted = note_enabled(process.pid(), process.start_ticks(),
                                                   {.enabled = enabled,
                                                    .for_a_run = options_.pauses_at_end,
                                                    .since_ticks = since_ticks,
                                                    .place = target.hook(),
                                                    .user = process.credentials().user,
                                                    .ring_inode = ring ? ring->inode : 0,
                                                    .ring_path = ring ? ring->path : std::string()});
  entries_.add(process);
}

/// As the kernel names it; empty if the program maps none that has a name.
std::string Worker::ring_path(const Target& target) const {
  return present_ring(procfs_, target.process).value_or(Mapping{}).path;
}

/// Has the guardian pause the events at the end, if they are to be. False if too many programs of the user are on
/// already.
bool Worker::keep(const Target& target) {
  if (!entries_.has_place_for(target.users_program().user)) return false;
  if (!options_.pauses_at_end) return true;
  const auto kept = guardian_.keep(target);
  if (!kept) end_without_guardian(supervision_.progress);
  return *kept;
}

bool Worker::has_place_for(std::uint32_t user) const {
  const auto own = static_cast<std::size_t>(std::ranges::count_if(
      waiting_, [user](const auto& entry) { return entry.second.target->users_program().user == user; }));
  const std::size_t places = std::min(max_waiting, max_descriptors_ / descriptors_of_program);
  return has_share(own + removals_.size_of(user), waiting_.size() + removals_.size(), places);
}

void Worker::enable(const EnableRequest& request, std::shared_ptr<const Target> target, Requirements requirements,
                    std::uint64_t now_ns) {
  if (waiting_.contains(request.pid)) forget(request.pid);
  // The next attempt makes a file of the same name, and an entry of the same process in the journal.
  const auto is_of_process = [&](const Removal& removal) { return removal.target->process.pid() == request.pid; };
  for (Removal& removal : removals_.take_all(target->users_program().user, is_of_process)) remove_ring(removal);
  if (!has_place_for(target->users_program().user))
    return refuse(request, {.result = EnableResult::not_running, .why = "too many programs of its user are waited for"},
                  target.get());
  if (auto wanted = programs_.want(request.pid, 0); !wanted)
    return refuse(request, {.result = EnableResult::denied, .why = wanted.error().message()}, target.get());
  std::optional<std::uint64_t> deadline_ns;
  if (request.patience) deadline_ns = now_ns + static_cast<std::uint64_t>(request.patience->count());
  const bool is_checked = !requirements.list.empty();
  waiting_.emplace(request.pid, Program{.request = request,
                                        .target = std::move(target),
                                        .begin_ns = now_ns,
                                        .deadline_ns = deadline_ns,
                                        .requirements = std::move(requirements),
                                        .retry_ns = first_retry_ns,
                                        .window_ns = first_window_ns,
                                        .checked_ns = is_checked ? now_ns : 0});
}

/// What it takes to switch its events on.
Requirements Worker::requirements_of(const Target& target) {
  const std::uint32_t user = target.users_program().user;
  costs_.forget(user, monotonic_ns());
  if (costs_.unanswered(user) >= UserCosts::max_unanswered)
    return {.list = {{.result = EnableResult::no_answer,
                      .what = "directory of the ring",
                      .found = "those of other programs of its user do not answer"}}};
  if (!group_memory_) group_memory_.emplace();
  const auto memory_left = group_memory_->left(target.process.pid(), target.process.start_ticks());
  return check_requirements(target, options_.allowed, memory_left, costs_.silent_directories(user));
}

/// Looks again at what it takes: the program may have slept for hours since. Nothing if nothing is missing.
std::optional<Requirement> Worker::missing_now(Program& program, std::uint64_t now_ns) {
  const bool is_first_attempt = program.window_ns == first_window_ns;
  if (is_first_attempt && now_ns - program.checked_ns < checked_for_ns) return std::nullopt;
  program.requirements = requirements_of(*program.target);
  // Once it was tried the file may be its own: its runtime may be about to start the events.
  const auto missing = std::ranges::find_if(program.requirements.list, [&](const Requirement& requirement) {
    return !requirement.is_met && !(program.was_tried && requirement.what == free_name);
  });
  program.checked_ns = monotonic_ns();
  return missing == program.requirements.list.end() ? std::nullopt : std::optional(*missing);
}

bool Worker::has_time_for(std::uint32_t user, std::uint64_t now_ns) const {
  return is_finishing_ || costs_.has_time_for(user, now_ns);
}

bool Worker::may_try(const Program& program, std::uint64_t now_ns) const {
  const UsersProgram what = program.target->users_program();
  const auto next = next_attempt_ns_.find(what.user);
  return (next == next_attempt_ns_.end() || now_ns >= next->second) && has_time_for(what.user, now_ns) &&
         !program.watched_until_ns && !first_of_.contains(what);
}

void Worker::step(std::uint64_t now_ns) {
  for (const std::int32_t pid : entries_.remove_ended())
    if (watched_.erase(pid) > 0) programs_.unwatch(pid);
  std::vector<rtev_running> records;
  programs_.read([&](const rtev_running& record) { records.push_back(record); });
  // A report is too old after the attempts before it: users who were not tried for long come first.
  std::ranges::stable_sort(records, {}, [this](const rtev_running& record) {
    const auto program = waiting_.find(static_cast<std::int32_t>(record.tgid));
    if (program == waiting_.end()) return std::uint64_t{0};
    const auto next = next_attempt_ns_.find(program->second.target->users_program().user);
    return next == next_attempt_ns_.end() ? 0 : next->second;
  });
  for (const rtev_running& record : records) {
    const auto found = watched_.find(static_cast<std::int32_t>(record.tgid));
    if (record.changed != 0 && found != watched_.end() &&
        kernel::is_of(record, found->second.second->process.start_ticks()))
      changed(found->first, record.changed);
  }
  for (const rtev_running& record : records) {
    const auto found = waiting_.find(static_cast<std::int32_t>(record.tgid));
    if (found == waiting_.end() || record.changed != 0) continue;
    Program& program = found->second;
    if (!kernel::is_of(record, program.target->process.start_ticks())) continue;
    const Charge charge(costs_, program.target->users_program().user);
    if (record.signal != 0) {
      if (is_harm(record.signal)) harmed(program, record.signal);
    } else if (!record.dumpable && !program.watched_until_ns) {
      refuse(program.request, privileged(not_dumpable).error(), program.target.get());
      give_up(program, monotonic_ns());
    } else if (record.locks && !program.watched_until_ns) {
      refuse(program.request,
             {.result = EnableResult::memory,
              .why = "all that it maps is locked in memory (mlockall), so would be the whole ring",
              .hint = "start it with OCAML_RUNTIME_EVENTS_START=1"},
             program.target.get());
      give_up(program, monotonic_ns());
    } else if (const std::uint64_t now = monotonic_ns(); !has_time_for(program.target->users_program().user, now)) {
      // Each report costs time, too.
      [[maybe_unused]] const auto wanted = programs_.want(program.request.pid, now + no_time_pause_ns);
    } else if (may_try(program, now) && record.time_ns + max_report_age_ns > now) {
      program.thread_pointer = record.thread_pointer;
      attempt(program, now);
    }
  }
  // After those that are known to run.
  if (const auto asleep = find_asleep(monotonic_ns()); asleep != waiting_.end()) {
    const Charge charge(costs_, asleep->second.target->users_program().user);
    attempt(asleep->second, monotonic_ns());
  }
  if (now_ns >= next_check_ns_) end_waits(now_ns);
  if (auto removal = removals_.take(monotonic_ns())) {
    const Charge charge(costs_, removal->first);
    remove_ring(removal->second);
  }
}

void Worker::remove_later(Removal removal) {
  const std::uint32_t user = removal.target->users_program().user;
  removals_.add(user, std::move(removal));
}

void Worker::remove_ring(Removal& removal) {
  const Progress::Scope at_work = supervision_.progress.work_on(removal.target->process);
  if (removal.made)
    end_attempts(procfs_, *removal.target, removal.made, journal_);
  else if (!removal.since_ticks)
    remove_present_ring(procfs_, *removal.target);
  else if (!remove_present_ring(procfs_, *removal.target))
    keep_ring(*removal.target, *removal.since_ticks);
}

/// The file of its ring stays, so its events are only paused: the runtime would not make another one.
void Worker::keep_ring(const Target& target, std::uint64_t since_ticks) {
  if (!target.check_unchanged(procfs_) || target.memory().word(target.flags().enabled) != 0) return;
  if (target.memory().word(target.flags().paused) == 1 && target.memory().write_word(target.flags().enabled, 1))
    note(target, Enabled::on, since_ticks);
}

/// A program that went to sleep during its last attempt, and may be tried again without a report that it runs.
Worker::Programs::iterator Worker::find_asleep(std::uint64_t now_ns) {
  return std::ranges::find_if(
      waiting_, [&](const auto& entry) { return entry.second.thread_pointer != 0 && may_try(entry.second, now_ns); });
}

/// Ends the wait for programs that are gone or did not run in time, and the watch over those whose events are on.
void Worker::end_waits(std::uint64_t now_ns) {
  next_check_ns_ = now_ns + proof_ns / 2;
  std::vector<std::int32_t> over;
  for (auto& [pid, program] : waiting_) {
    const std::uint32_t user = program.target->users_program().user;
    const Charge charge(costs_, user);
    const Progress::Scope at_work = supervision_.progress.work_on(program.target->process);
    // The runtime may have been about to start them when the last attempt ended.
    if (program.was_tried && !program.is_on && has_time_for(user, monotonic_ns())) {
      const auto events = program.target->events_state();
      if (events && *events != EventsState::off) came_on(program, now_ns);
    }
    const UsersProgram what = program.target->users_program();
    const auto first = first_of_.find(what);
    const bool is_first = first != first_of_.end() && first->second == pid;
    const bool is_proved = program.is_on && now_ns + watch_ns >= *program.watched_until_ns + proof_ns;
    // Not at once: a thread may be in the function that starts events, which would make the ring again.
    if (is_proved && !std::exchange(program.is_change_watched, true)) watch_changes(program.request, program.target);
    if (is_first && is_proved) {
      proved_.insert(what);
      first_of_.erase(first);
    }
    // Whether it runs another program by now is seen when it is tried: to look at its memory may take time.
    const bool is_gone = program.target->process.has_ended();
    if (!is_gone && program.watched_until_ns ? now_ns >= *program.watched_until_ns : is_gone) over.push_back(pid);
    const bool is_late = program.deadline_ns && now_ns >= *program.deadline_ns;
    if (program.watched_until_ns || (!is_gone && !is_late)) continue;
    answer(program, is_gone ? EnableResult::gone : EnableResult::not_running, now_ns);
    give_up(program, now_ns);
  }
  for (const std::int32_t pid : over) forget(pid);
}

/// The program was answered. If it was tried it is watched for a while: it may come to harm.
void Worker::give_up(Program& program, std::uint64_t now_ns) {
  if (program.made) remove_later({.target = program.target, .made = std::move(program.made)});
  program.made.reset();
  program.watched_until_ns = program.was_tried ? now_ns + watch_ns : now_ns;
  [[maybe_unused]] const auto wanted = programs_.want(program.request.pid, no_reports);
}

std::optional<std::uint64_t> Worker::next_step_ns() {
  if (find_asleep(monotonic_ns()) != waiting_.end()) return 0;
  const std::uint64_t now_ns = monotonic_ns();
  if (removals_.is_due(now_ns)) return 0;
  // Whether a program is gone is looked at ten times a second.
  return waiting_.empty() && later_.empty() && removals_.is_empty() ? std::nullopt : std::optional(now_ns + proof_ns);
}

void Worker::attempt(Program& program, std::uint64_t now_ns) {
  const Progress::Scope at_work = supervision_.progress.work_on(program.target->process);
  if (!program.target->memory().is_alive()) {
    answer(program, EnableResult::gone, now_ns);  // it runs another program by now
    return give_up(program, now_ns);
  }
  const auto events = program.target->events_state();
  if (program.was_tried && events && *events != EventsState::off) return came_on(program, now_ns);
  if (!program.target->is_initialised()) return try_later(program, now_ns);
  if (const auto missing = missing_now(program, now_ns)) {
    refuse(program.request, refusal_of(*missing), program.target.get());
    return give_up(program, now_ns);
  }
  if (!program.was_tried) {
    program.begin_ns = now_ns;
    program.tried_ticks = boot_ticks();
    // Now, because this process may be killed at any time, and because the events may come on after the attempt.
    if (!keep(*program.target)) {
      refuse(program.request, too_many_kept(), program.target.get());
      return give_up(program, now_ns);
    }
  }
  program.was_tried = true;
  const auto started = start_events(procfs_, *program.target, program.thread_pointer, program.window_ns,
                                    program.requirements, program.made, journal_, guardian_, supervision_);
  const std::uint64_t begin_ns = std::exchange(now_ns, monotonic_ns());
  if (!started) {
    refuse(program.request, started.error(), program.target.get());
    return give_up(program, now_ns);
  }
  if (*started == Started::yes) return came_on(program, now_ns);
  // Who does not get on takes half of the time at the most: others are tried meanwhile.
  next_attempt_ns_[program.target->users_program().user] = now_ns + (now_ns - begin_ns);
  // If its thread has no domain, and after the longest attempt, it is tried again when it runs the next time.
  const bool goes_on = now_ns - begin_ns >= program.window_ns && program.window_ns < max_replaced_ns;
  program.window_ns = goes_on ? window_growth * program.window_ns : first_window_ns;
  const std::uint64_t thread_pointer = program.thread_pointer;
  try_later(program, now_ns);
  if (goes_on) program.thread_pointer = thread_pointer;
}

/// When it runs after a while, which is longer each time.
void Worker::try_later(Program& program, std::uint64_t now_ns) {
  program.thread_pointer = 0;
  program.checked_ns = 0;  // where its ring is to be may be known only now
  [[maybe_unused]] const auto wanted = programs_.want(program.request.pid, now_ns + program.retry_ns);
  program.retry_ns = std::min(2 * program.retry_ns, last_retry_ns);
}

void Worker::came_on(Program& program, std::uint64_t now_ns) {
  const std::int32_t pid = program.request.pid;
  const UsersProgram what = program.target->users_program();
  note(*program.target, Enabled::on, program.tried_ticks);
  answer(program, EnableResult::done, now_ns);
  end_attempts(procfs_, *program.target, program.made, journal_);
  free_removed_rings(procfs_, *program.target);
  program.is_on = true;
  next_attempt_ns_[what.user] = now_ns + second_ns / options_.max_per_second;
  program.watched_until_ns = now_ns + watch_ns;
  if (!proved_.contains(what)) first_of_.emplace(what, pid);
  [[maybe_unused]] const auto wanted = programs_.want(pid, no_reports);
}

void Worker::harmed(const Program& program, std::uint32_t signal) {
  if (!program.was_tried) {
    if (!program.watched_until_ns) answer(program, EnableResult::gone, monotonic_ns());
    return forget(program.request.pid);
  }
  const UsersProgram what = program.target->users_program();
  suspects_.insert(what);
  EnableAnswer answer = answer_to(program.request, *program.target, EnableResult::suspect);
  answer.is_correction = program.watched_until_ns.has_value();
  answer.why = fmt::format("it died by signal {} when its events were switched on", signal);
  answer.hint = "its program is left alone from now on; to have it tried again remove " + suspects_.entry_of(what);
  answer.harmed = HarmedProgram{.device = what.file.first, .inode = what.file.second, .user = what.user};
  answer_(std::move(answer));
  forget(program.request.pid);
  std::vector<std::int32_t> others;
  for (const auto& [pid, other] : waiting_) {
    if (other.target->users_program() != what || other.watched_until_ns) continue;
    refuse(other.request, suspected(suspects_, what), other.target.get());
    others.push_back(pid);
  }
  for (const std::int32_t pid : others) forget(pid);
}

void Worker::refuse(const EnableRequest& request, const Refused& refused, const Target* target) {
  const auto stat = target == nullptr ? procfs_.stat(request.pid) : std::nullopt;
  answer_({.task = request.task,
           .pid = request.pid,
           .start_ticks = target != nullptr ? target->process.start_ticks() : request.start_ticks,
           .id = request.id,
           .comm = target != nullptr ? target->comm
                   : stat            ? stat->comm
                                     : std::string(),
           .result = refused.result,
           .why = refused.why,
           .hint = refused.hint});
}

void Worker::answer(const Program& program, EnableResult result, std::uint64_t now_ns) {
  EnableAnswer answer = answer_to(program.request, *program.target, result);
  answer.took_ns = now_ns - program.begin_ns;
  if (result == EnableResult::done) {
    answer.ring_path = ring_path(*program.target);
    answer.is_ours = true;
  }
  if (result == EnableResult::gone) answer.why = "it ended";
  if (result == EnableResult::not_running && !program.target->is_initialised()) {
    const Refused refused = not_set_up();
    answer.why = refused.why;
    answer.hint = refused.hint;
  } else if (result == EnableResult::not_running) {
    answer.why = program.was_tried ? "it did not come to a place where its runtime may start events in time"
                                   : "it did not run, or only when others were switched on";
    answer.hint = "wait longer (-d)";
  }
  answer_(std::move(answer));
}

void Worker::forget(std::int32_t pid) {
  programs_.forget(pid);
  if (const auto waiting = waiting_.find(pid); waiting != waiting_.end()) {
    Program& program = waiting->second;
    if (program.made) remove_later({.target = program.target, .made = std::move(program.made)});
    waiting_.erase(waiting);
  }
  std::erase_if(first_of_, [pid](const auto& entry) { return entry.second == pid; });
}

}  // namespace rtev::enable
