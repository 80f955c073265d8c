// SPDX-License-Identifier: MIT
#include "enable/guardian.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/capabilities.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"

namespace rtev::enable {

// Where the archive looks for it: not in an unnamed namespace.
template <typename Archive>
static void fields(Archive& archive, JournalEntry& entry) {
  ReplacedHook& hook = entry.hook;
  archive(entry.pid, entry.start_ticks, hook.address, hook.original, hook.replacement, hook.thread_hook, hook.witness,
          hook.witness_before);
}

namespace {

using helper::Message;
using helper::Reader;
using helper::Writer;

/// How long the guardian may take to answer. It only takes a descriptor.
constexpr int answer_timeout_ms = 1000;

struct Held {
  ProcessMemory memory;
  JournalEntry entry;
};

/// A message with a descriptor is a hook to be guarded, one without releases it. Each is answered: true if the hook was
/// guarded until then.
[[noreturn]] void guard(int channel, const Journal& journal) {
  constexpr int nice = -10;
  ::setpriority(PRIO_PROCESS, 0, nice);
  keep_capabilities({});
  std::optional<Held> held;
  const auto end_guard = [&] {
    put_back(held->memory, held->entry.hook);
    journal.remove(held->entry);
    held.reset();
  };
  while (true) {
    pollfd message{.fd = channel, .events = POLLIN, .revents = 0};
    if (::poll(&message, 1, held ? Guardian::guard_timeout_ms : -1) == 0) {
      end_guard();
      continue;
    }
    auto received = helper::receive(channel, true);
    if (!received && errno == EAGAIN) continue;
    if (!received) break;
    UniqueFd memory;
    JournalEntry entry;
    Reader reader(*received);
    reader(memory, entry);
    if (!reader.is_complete()) break;
    bool was_held = held.has_value();
    held.reset();
    if (memory) {
      held.emplace(ProcessMemory(std::move(memory)), entry);
      was_held = true;
    }
    Message answer;
    Writer{answer}(was_held);
    if (!helper::send(channel, answer)) break;
  }
  if (held) end_guard();
  ::_exit(0);
}

/// Nothing if the guardian is gone, or does not answer.
std::optional<bool> ask(int channel, UniqueFd memory, JournalEntry entry) {
  Message message;
  Writer{message}(memory, entry);
  if (!helper::send(channel, message, true)) return std::nullopt;
  pollfd answered{.fd = channel, .events = POLLIN, .revents = 0};
  if (::poll(&answered, 1, answer_timeout_ms) <= 0) return std::nullopt;
  auto answer = helper::receive(channel, true);
  if (!answer) return std::nullopt;
  bool was_held = false;
  Reader reader(*answer);
  reader(was_held);
  return reader.is_complete() ? std::optional(was_held) : std::nullopt;
}

}  // namespace

Result<Guardian> Guardian::start(Journal journal) {
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the process that guards hooks");
  if (pid == 0) {
    helper::leave_tracer(channel->second.get());
    guard(channel->second.get(), journal);
  }
  return Guardian(std::move(channel->first));
}

Result<void> Guardian::hold(const ProcessMemory& memory, const JournalEntry& entry) {
  UniqueFd own(::dup(memory.fd().get()));
  if (!own) return errno_error(errno, "cannot share the memory of a process");
  if (ask(channel_.get(), std::move(own), entry).value_or(false)) return {};
  return std::unexpected(Error{.what = "cannot replace a hook", .why = "the process that guards it is gone"});
}

bool Guardian::release() {
  return ask(channel_.get(), {}, {}).value_or(false);
}

}  // namespace rtev::enable
