// SPDX-License-Identifier: MIT
#include "analysis/tasks/task_events.hpp"

#include <algorithm>
#include <array>
#include <variant>

#include "stream/user_fields.hpp"

namespace rtev {
namespace {

using TaskWhat = TaskEvent::What;

/// An event of a library. Those of kind user_custom have the fields that user_fields() finds.
struct TaskLayout {
  std::string_view name;
  EventKind kind;
  TaskWhat what;
  TaskLibrary library;
};

// Sorted. "eio.suspend_domain" is a span: the kind of the event says whether it begins or ends.
constexpr std::array task_layouts{
    TaskLayout{"eio.create_cc", EventKind::user_custom, TaskWhat::enter_context, TaskLibrary::eio},
    TaskLayout{"eio.create_fiber", EventKind::user_custom, TaskWhat::create, TaskLibrary::eio},
    TaskLayout{"eio.error", EventKind::user_custom, TaskWhat::fail, TaskLibrary::eio},
    TaskLayout{"eio.exit_cc", EventKind::user_unit, TaskWhat::leave_context, TaskLibrary::eio},
    TaskLayout{"eio.exit_fiber", EventKind::user_int, TaskWhat::end, TaskLibrary::eio},
    TaskLayout{"eio.fiber", EventKind::user_int, TaskWhat::run, TaskLibrary::eio},
    TaskLayout{"eio.name", EventKind::user_custom, TaskWhat::name, TaskLibrary::eio},
    TaskLayout{"eio.put", EventKind::user_int, TaskWhat::pass, TaskLibrary::eio},
    TaskLayout{"eio.suspend_domain", EventKind::user_begin, TaskWhat::poll_begin, TaskLibrary::eio},
    TaskLayout{"eio.suspend_fiber", EventKind::user_custom, TaskWhat::suspend, TaskLibrary::eio},
    TaskLayout{"eio.try_get", EventKind::user_int, TaskWhat::wait_for, TaskLibrary::eio},
    TaskLayout{"miou.await", EventKind::user_custom, TaskWhat::suspend_task, TaskLibrary::miou},
    TaskLayout{"miou.begin", EventKind::user_custom, TaskWhat::run, TaskLibrary::miou},
    TaskLayout{"miou.cancel", EventKind::user_custom, TaskWhat::cancel, TaskLibrary::miou},
    TaskLayout{"miou.done", EventKind::user_custom, TaskWhat::end, TaskLibrary::miou},
    TaskLayout{"miou.end", EventKind::user_custom, TaskWhat::stop, TaskLibrary::miou},
    TaskLayout{"miou.location", EventKind::user_custom, TaskWhat::created_at, TaskLibrary::miou},
    TaskLayout{"miou.resume", EventKind::user_custom, TaskWhat::ready, TaskLibrary::miou},
    TaskLayout{"miou.spawn", EventKind::user_custom, TaskWhat::create, TaskLibrary::miou},
    TaskLayout{"miou.suspend", EventKind::user_custom, TaskWhat::operation, TaskLibrary::miou},
};
static_assert(std::ranges::is_sorted(task_layouts, {}, &TaskLayout::name));

}  // namespace

std::string_view to_string(TaskLibrary library) {
  constexpr std::array<std::string_view, task_library_count> names{"eio", "miou"};
  return names.at(static_cast<std::size_t>(library));
}

std::uint8_t TaskEvents::layout_of(const Event& event, std::uint32_t slot, const RingInfo& ring) {
  if (!ring.user_event_name) return unnamed;
  std::uint8_t* known = nullptr;
  if (event.id < max_ids) {
    if (slot >= rings_.size()) rings_.resize(std::size_t{slot} + 1);
    Ring& of = rings_[slot];
    if (of.process != ring.process) of = {.process = ring.process};
    if (event.id >= of.layouts.size()) of.layouts.resize(std::size_t{event.id} + 1, unnamed);
    known = &of.layouts[event.id];
    if (*known != unnamed) return *known;
  }
  const std::string_view name = ring.user_event_name(event.id);
  if (name.empty()) return unnamed;  // it may come later
  const auto found = std::ranges::lower_bound(task_layouts, name, {}, &TaskLayout::name);
  const bool is_one = found != task_layouts.end() && found->name == name;
  const auto layout =
      static_cast<std::uint8_t>(is_one ? first_layout + (found - task_layouts.begin()) : std::ptrdiff_t{other_event});
  if (known != nullptr) *known = layout;
  return layout;
}

std::optional<TaskEvent> TaskEvents::read(const Event& event, const Batch& batch, const Registry& registry) {
  if (!is_user_event(event.kind)) return std::nullopt;
  const std::uint32_t slot = Source::unpack(event.source).slot;
  const RingInfo* const ring = registry.ring(slot);
  if (ring == nullptr) return std::nullopt;
  const std::uint8_t index = layout_of(event, slot, *ring);
  if (index < first_layout) return std::nullopt;
  const TaskLayout& layout = task_layouts.at(index - first_layout);
  TaskEvent read{.what = layout.what, .library = layout.library};
  if (layout.what == TaskWhat::poll_begin && event.kind == EventKind::user_end) {
    read.what = TaskWhat::poll_end;
    return read;
  }
  if (event.kind != layout.kind) return std::nullopt;
  if (event.kind == EventKind::user_int) read.id = event.signed_value();
  if (event.kind != EventKind::user_custom) return read;
  const UserFields fields = user_fields(layout.name, batch.payload(event));
  if (fields.empty()) return std::nullopt;
  std::size_t integers = 0;
  for (const UserField& field : fields) {
    if (const auto* const integer = std::get_if<std::int64_t>(&field.value)) {
      if (integers == 0) read.id = *integer;
      if (integers == 1) read.other = *integer;
      ++integers;
    } else if (const auto* const text = std::get_if<std::string_view>(&field.value)) {
      read.text = *text;
    }
  }
  return read;
}

}  // namespace rtev
