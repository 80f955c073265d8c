// SPDX-License-Identifier: MIT
// What user events say of tasks: of the fibers of Eio (0.14 and newer, lib_eio/runtime_events) and of the tasks of Miou
// (lib/miou_runtime_events.ml).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rtev/event.hpp"
#include "stream/registry.hpp"

namespace rtev {

enum class TaskLibrary : std::uint8_t { eio, miou };
inline constexpr std::size_t task_library_count = 2;
/// "eio".
std::string_view to_string(TaskLibrary library);

struct TaskEvent {
  enum class What : std::uint8_t {
    create,         ///< a task; `other`: the context (Eio), or the task that created it (Miou)
    run,            ///< the task runs in the domain from now on
    suspend,        ///< the current task waits for the operation `text`; empty: it lets others run
    operation,      ///< the task is about to wait for the operation `text`
    suspend_task,   ///< the task waits
    stop,           ///< the task does not run any more, and can run
    ready,          ///< the task can run
    end,            ///< the task ended
    cancel,         ///< the task is to be cancelled
    fail,           ///< the context, or task, `id` failed with the error `text`
    name,           ///< the task, context, or another object `id` is named `text`
    created_at,     ///< the task was created in line `other` of the file `text`
    enter_context,  ///< the current task entered the context `id` of type `text`
    leave_context,  ///< the current task left its innermost context
    wait_for,       ///< the current task is about to wait for the object `id`
    pass,           ///< the object `id` lets one of those who wait for it go on, or all of them
    poll_begin,     ///< the domain asks the system for events, and may wait for them
    poll_end,
  };
  What what{};
  TaskLibrary library{};
  std::int64_t id = 0;
  std::int64_t other = 0;
  std::string_view text{};  ///< as the program made it, in the batch
};

/// Reads the events of a stream. The name of an event is compared once for each id of a ring. Memory is bounded by the
/// number of slots. One thread.
class TaskEvents {
 public:
  /// Nothing for other events, and for those whose payload is not what the library writes.
  std::optional<TaskEvent> read(const Event& event, const Batch& batch, const Registry& registry);

  /// True for a user event that is known to be none of a task. Faster than read(): programs may write millions.
  bool is_other(const Event& event, const Registry& registry) const {
    const std::uint32_t slot = Source::unpack(event.source).slot;
    if (slot >= rings_.size() || event.id >= rings_[slot].layouts.size()) return false;
    const RingInfo* const ring = registry.ring(slot);
    return rings_[slot].layouts[event.id] == other_event && ring != nullptr && ring->process == rings_[slot].process;
  }

 private:
  /// Ids that are remembered; programs register few events.
  static constexpr std::size_t max_ids = 1024;
  enum : std::uint8_t { unnamed, other_event, first_layout };

  struct Ring {
    ProcessIndex process = 0;
    std::vector<std::uint8_t> layouts{};  ///< by id: one of the above, or first_layout + its place in the table
  };

  std::uint8_t layout_of(const Event& event, std::uint32_t slot, const RingInfo& ring);

  std::vector<Ring> rings_;  ///< by slot
};

}  // namespace rtev
