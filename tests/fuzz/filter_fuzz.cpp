// SPDX-License-Identifier: MIT
// Any list of events for --events, on a line, and any names of user events, on further lines.
#include "fuzz/fuzzing.hpp"
#include "stream/filter.hpp"
#include "unit/stream/world.hpp"

namespace rtev::fuzz {

void filter(Bytes bytes) {
  Input input(bytes);
  // A pattern with many stars takes long: it is the user's own.
  const std::string_view list = input.take_until('\n').substr(0, 64);
  const bool has_empty_word = list.empty() || list.starts_with(',') || list.ends_with(',') || list.contains(",,");
  auto parsed = EventFilter::parse(list);
  check(parsed.has_value() != has_empty_word, "only an empty word is refused", list);
  if (!parsed) return;

  test::World world;
  test::Events events(world.slot);
  std::vector<std::string> names;
  while (!input.empty() && names.size() < 8) {
    names.emplace_back(input.take_until('\n').substr(0, 127));
    names.back().resize(std::min(names.back().size(), names.back().find('\0')));
    const auto id = static_cast<std::uint16_t>(names.size());
    world.user_names[id] = names.back();
    events.add(id, EventKind::user_unit, id).add(id, EventKind::user_begin, id);
  }
  events.add(9, EventKind::begin, test::phase_minor)
      .add_record(10, EventKind::lost, Loss{.words = 1, .from_ns = 9, .to_ns = 10}, 0);

  const auto has_word = [&](std::string_view word) {
    std::string_view rest = list;
    for (std::size_t comma = 0; comma != std::string_view::npos; rest.remove_prefix(comma + 1)) {
      comma = rest.find(',');
      if (rest.substr(0, comma) == word) return true;
      if (comma == std::string_view::npos) break;
    }
    return false;
  };
  const std::vector<std::string>& kinds = EventFilter::all_kinds();
  const Batch batch = events.batch();
  for (const Event& event : batch.events()) {
    const bool accepted = parsed->accepts(event, world.registry);
    check(parsed->accepts(event, world.registry) == accepted, "the same answer again");
    check(EventFilter::parse(list)->accepts(event, world.registry) == accepted, "the same answer of a new filter");
    if (event.kind == EventKind::lost) {
      check(accepted, "losses are always shown");
      continue;
    }
    const std::string_view kind = event.kind == EventKind::begin ? "phase" : "user";
    const std::string name(known_name_of(event, world.registry));
    // A name that is the word of a kind stands for the kind.
    const bool is_kind = std::ranges::find(kinds, name) != kinds.end();
    if (has_word(kind) || (has_word(name) && !is_kind)) check(accepted, "what is in the list is shown", name);
  }
}

}  // namespace rtev::fuzz
