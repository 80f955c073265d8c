// SPDX-License-Identifier: MIT
#include "load/mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/escape.hpp"
#include "base/parse.hpp"

namespace rtev::load {
namespace {

constexpr std::array<std::pair<std::string_view, Part>, 7> names{{{"gc", Part::gc},
                                                                  {"counters", Part::counters},
                                                                  {"counter", Part::counters},
                                                                  {"alloc", Part::alloc},
                                                                  {"user", Part::user},
                                                                  {"spans", Part::spans},
                                                                  {"custom", Part::custom}}};
constexpr std::uint32_t max_weight = 1000;

}  // namespace

Mix Mix::all() {
  return Mix({8, 2, 1, 4, 2, 1});
}

Mix Mix::runtime_only() {
  return Mix({8, 2, 1, 0, 0, 0});
}

std::vector<std::string> Mix::words() {
  std::vector<std::string> words;
  words.reserve(part_count);
  for (std::size_t part = 0; part < part_count; ++part)  // a part may have several names, the first is the usual one
    words.emplace_back(std::ranges::find(names, static_cast<Part>(part), &decltype(names)::value_type::second)->first);
  return words;
}

bool Mix::has_user_events() const {
  return std::ranges::any_of(std::array{Part::user, Part::spans, Part::custom},
                             [this](Part part) { return weight(part) > 0; });
}

std::expected<Mix, std::string> Mix::parse(std::string_view text) {
  if (text == "all") return all();
  Mix mix({});
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(more ? comma + 1 : text.size());

    const std::string_view name = entry.substr(0, entry.find('='));
    const auto known = std::ranges::find(names, name, &decltype(names)::value_type::first);
    if (known == names.end())
      return std::unexpected(fmt::format("'{}' is not one of {}", escaped(name), fmt::join(words(), ", ")));
    std::uint32_t weight = 1;
    if (name.size() != entry.size()) {
      const auto number = parse_number<std::uint32_t>(entry.substr(name.size() + 1));
      if (!number || *number > max_weight)
        return std::unexpected("'" + escaped(entry) + "' does not have a weight from 0 to 1000");
      weight = *number;
    }
    mix.weights_[static_cast<std::size_t>(known->second)] = weight;
  }
  if (std::ranges::all_of(mix.weights_, [](std::uint32_t weight) { return weight == 0; }))
    return std::unexpected("all weights are 0");
  return mix;
}

}  // namespace rtev::load
