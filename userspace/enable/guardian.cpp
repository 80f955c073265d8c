// SPDX-License-Identifier: MIT
#include "enable/guardian.hpp"

#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "base/capabilities.hpp"
#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "base/user_share.hpp"
#include "enable/bounded_task.hpp"
#include "enable/pausing.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

// Where the archive looks for them: not in an unnamed namespace.
template <typename Archive>
static void fields(Archive& archive, EventFlags& flags) {
  archive(flags.enabled, flags.paused);
}
template <typename Archive>
static void fields(Archive& archive, ReplacedHook& hook) {
  archive(hook.address, hook.original, hook.replacement, hook.thread_hook, hook.witness, hook.witness_before,
          hook.request);
}

namespace {

using helper::Message;
using helper::Reader;
using helper::Writer;

/// How long the guardian may take to answer. It only takes a descriptor.
constexpr int answer_timeout_ms = 1000;

/// How long the memory of a process may take to answer.
constexpr std::chrono::milliseconds put_back_timeout{500};

/// For how long after the end events may still come on, and how often that is looked at.
constexpr std::uint64_t late_timeout_ns = 10'000'000'000;
constexpr std::chrono::milliseconds late_interval{50};

/// Programs whose events are paused at the end, each with a descriptor. When there are so many, those that have ended
/// are looked for.
constexpr std::size_t max_kept = 1 << 14, kept_check = 256;

/// Half of the descriptors that this process may have.
std::size_t room_for_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : kept_check;
}

enum class Order : std::uint8_t { hold, let_go, keep, watch, move, leave };

/// What the guardian is sent. Each message is answered: true if it is done, and of let_go if a hook was held.
struct Instruction {
  Order order{};
  UniqueFd descriptor{};          ///< the memory of the process, the socket to watch, or the next channel
  ReplacedHook hook{};            ///< of hold
  std::uint64_t window_ns = 0;    ///< likewise
  std::int32_t pid = 0;           ///< of hold and keep
  std::uint64_t start_ticks = 0;  ///< of keep
  std::uint32_t user = 0;         ///< likewise
  EventFlags flags{};             ///< likewise
};
template <typename Archive>
void pass(Archive&& archive, Instruction& instruction) {
  archive(instruction.order, instruction.descriptor, instruction.hook, instruction.window_ns, instruction.pid,
          instruction.start_ticks, instruction.user, instruction.flags);
}

class Guard {
 public:
  explicit Guard(UniqueFd channel) : channel_(std::move(channel)) {}

  /// Until the process that it guards ends.
  void run() {
    while (true) {
      // Without a descriptor poll() skips the entry.
      std::array<pollfd, 2> events{pollfd{.fd = channel_.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = tracer_ ? tracer_.get() : -1, .events = POLLRDHUP, .revents = 0}};
      if (::poll(events.data(), events.size(), held_ && !is_put_back_ ? hold_ms_ : -1) == 0) {
        // Still held: the other side is slow, and may write the hook yet.
        put_back_held();
        is_put_back_ = true;
        continue;
      }
      if (events[1].revents != 0) {
        pause_kept();
        tracer_.reset();
      }
      if (events[0].revents != 0 && !take()) break;
    }
    put_back_held();
    pause_kept();
    const std::uint64_t end_ns = monotonic_ns() + late_timeout_ns;
    while ((!late_.empty() || pauser_.is_waiting()) && monotonic_ns() < end_ns) {
      std::this_thread::sleep_for(late_interval);
      late_ = pauser_.pause(std::move(late_));
    }
    // Nothing else is to be done any more.
    pauser_.pause_here(std::move(late_));
  }

 private:
  struct Held {
    ProcessMemory memory;
    ReplacedHook hook;
  };

  /// False if the other side is gone.
  bool take() {
    auto received = helper::receive(channel_.get(), true);
    if (!received) return errno == EAGAIN;
    Instruction instruction;
    Reader reader(*received);
    pass(reader, instruction);
    if (!reader.is_complete()) return false;
    bool is_done = carry_out(instruction);
    Message answer;
    Writer{answer}(is_done);
    return helper::send(channel_.get(), answer);
  }

  bool carry_out(Instruction& instruction) {
    switch (instruction.order) {
      case Order::hold:
        held_ =
            std::make_shared<Held>(ProcessMemory(std::move(instruction.descriptor), instruction.pid), instruction.hook);
        is_put_back_ = false;
        hold_ms_ = static_cast<int>(instruction.window_ns / 1'000'000) + Guardian::guard_timeout_ms;
        return true;
      case Order::let_go: {
        const bool was_held = held_ != nullptr && !is_put_back_;
        held_.reset();
        return was_held;
      }
      case Order::keep:
        return keep({.pid = instruction.pid,
                     .start_ticks = instruction.start_ticks,
                     .user = instruction.user,
                     .memory = ProcessMemory(std::move(instruction.descriptor), instruction.pid),
                     .flags = instruction.flags});
      case Order::watch:
        tracer_ = std::move(instruction.descriptor);
        is_watching_ = true;
        return true;
      case Order::leave:
        kept_.clear();
        return true;
      case Order::move:
        if (!is_put_back_) put_back_held();
        held_.reset();
        channel_ = std::move(instruction.descriptor);
        return true;
    }
    return false;
  }

  /// The entry of the journal stays: the next worker removes the file of the ring, for which the guardian has no right.
  void put_back_held() const {
    if (!held_) return;
    run_bounded(std::packaged_task<void()>([held = held_] { put_back(held->memory, held->hook); }), put_back_timeout);
  }

  bool keep(PausedAtEnd program) {
    if (kept_.size() >= next_check_) {
      std::erase_if(kept_, [this](const PausedAtEnd& kept) {
        const auto stat = procfs_.stat(kept.pid);
        return !stat || stat->start_ticks != kept.start_ticks;
      });
      next_check_ = 2 * kept_.size() + kept_check;
    }
    // An entry of the same process is of the program that it ran before an exec.
    std::erase_if(kept_, [&](const PausedAtEnd& kept) {
      return kept.pid == program.pid && kept.start_ticks == program.start_ticks;
    });
    const auto own = static_cast<std::size_t>(std::ranges::count(kept_, program.user, &PausedAtEnd::user));
    if (!has_share(own, kept_.size(), max_kept_)) return false;
    kept_.push_back(std::move(program));
    // The tracer has ended while the events came on.
    if (is_watching_ && !tracer_) pause_kept();
    return true;
  }

  void pause_kept() { std::ranges::move(pauser_.pause(std::exchange(kept_, {})), std::back_inserter(late_)); }

  UniqueFd channel_;
  Procfs procfs_;
  std::shared_ptr<const Held> held_;
  bool is_put_back_ = false;  ///< because it took too long
  int hold_ms_ = 0;           ///< how long that is
  UniqueFd tracer_;
  bool is_watching_ = false;
  std::vector<PausedAtEnd> kept_;
  Pauser pauser_;
  std::vector<PausedAtEnd> late_;  ///< their events were off when the others were paused
  std::size_t next_check_ = kept_check;
  std::size_t max_kept_ = std::min(max_kept, room_for_descriptors());
};

bool send_only(int channel, Instruction instruction) {
  Message message;
  pass(Writer(message), instruction);
  return helper::send(channel, message, true);
}

/// Nothing if the guardian is gone, or does not answer.
std::optional<bool> receive_answer(int channel) {
  pollfd answered{.fd = channel, .events = POLLIN, .revents = 0};
  if (::poll(&answered, 1, answer_timeout_ms) <= 0) return std::nullopt;
  auto answer = helper::receive(channel, true);
  if (!answer) return std::nullopt;
  bool is_done = false;
  Reader reader(*answer);
  reader(is_done);
  return reader.is_complete() ? std::optional(is_done) : std::nullopt;
}

std::optional<bool> send(int channel, Instruction instruction) {
  return send_only(channel, std::move(instruction)) ? receive_answer(channel) : std::nullopt;
}

}  // namespace

Result<Guardian> Guardian::start() {
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the process that guards hooks");
  if (pid == 0) {
    helper::leave_tracer(channel->second.get());
    ::prctl(PR_SET_NAME, "rtev-guardian");
    constexpr int nice = -10;
    ::setpriority(PRIO_PROCESS, 0, nice);
    raise_file_limit();
    // For process_vm_readv(2): see ProcessMemory. It writes only to descriptors that it was sent.
    keep_capabilities({CAP_SYS_PTRACE});
    Guard(std::move(channel->second)).run();
    ::_exit(0);
  }
  return Guardian(std::move(channel->first));
}

Result<void> Guardian::watch(int tracer) {
  UniqueFd own(::dup(tracer));
  if (!own) return errno_error(errno, "cannot share the socket of the tracer");
  if (send(channel_.get(), {.order = Order::watch, .descriptor = std::move(own)}).value_or(false)) return {};
  return std::unexpected(Error{.what = "cannot replace a hook", .why = "the process that guards it is gone"});
}

bool Guardian::renew() {
  auto channel = helper::make_channel();
  // The answer comes by the new channel: the old one may have one for the other process.
  if (!channel || !send_only(channel_.get(), {.order = Order::move, .descriptor = std::move(channel->second)}))
    return false;
  channel_ = std::move(channel->first);
  return receive_answer(channel_.get()).value_or(false);
}

bool Guardian::hold(const ProcessMemory& memory, const ReplacedHook& hook, std::uint64_t window_ns) {
  UniqueFd own(::dup(memory.fd().get()));
  return own && send(channel_.get(), {.order = Order::hold,
                                      .descriptor = std::move(own),
                                      .hook = hook,
                                      .window_ns = window_ns,
                                      .pid = memory.pid()})
                    .value_or(false);
}

bool Guardian::let_go() {
  return send(channel_.get(), {.order = Order::let_go}).value_or(false);
}

bool Guardian::leave() {
  return send(channel_.get(), {.order = Order::leave}).value_or(false);
}

std::optional<bool> Guardian::keep(const Target& target) {
  UniqueFd own(::dup(target.memory().fd().get()));
  if (!own) return false;
  return send(channel_.get(), {.order = Order::keep,
                               .descriptor = std::move(own),
                               .pid = target.process.pid(),
                               .start_ticks = target.process.start_ticks(),
                               .user = target.users_program().user,
                               .flags = target.flags()});
}

}  // namespace rtev::enable
