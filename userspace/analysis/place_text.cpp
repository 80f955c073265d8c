// SPDX-License-Identifier: MIT
#include "analysis/place_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text_buffer.hpp"
#include "stream/stack_text.hpp"

namespace rtev {
namespace {

struct MainPlace {
  std::string text;
  std::uint64_t samples = 0, of_samples = 0;
  std::uint64_t ns = 0;
};

template <typename Summary>
std::optional<MainPlace> main_place(const std::vector<SeenStack>& seen, SampleKind kind, const StackTable& stacks,
                                    const Summary& summary) {
  std::map<std::string, MainPlace, std::less<>> places;
  for (const SeenStack& one : seen) {
    if (one.kind != kind) continue;
    TextBuffer text;
    summary(text, stacks, one.stack);
    MainPlace& place = places[std::string(text.text())];
    place.text = text.text();
    place.samples += one.samples;
    place.of_samples = one.of_samples;
    place.ns += one.ns;
  }
  if (places.empty()) return std::nullopt;
  return std::ranges::max_element(places, {}, [](const auto& entry) { return entry.second.ns; })->second;
}

}  // namespace

std::string place_text(const std::vector<SeenStack>& seen, SampleKind kind, const StackTable& stacks) {
  const auto found = main_place(seen, kind, stacks, add_stack_summary);
  if (!found || found->of_samples == 1) return found ? found->text : std::string();
  return fmt::format("{} ({} of {} samples)", found->text, found->samples, found->of_samples);
}

std::string short_place_text(const std::vector<SeenStack>& seen, SampleKind kind, const StackTable& stacks) {
  const auto found = main_place(seen, kind, stacks, add_short_stack_summary);
  return found ? found->text : std::string();
}

}  // namespace rtev
