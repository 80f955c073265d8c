// SPDX-License-Identifier: MIT
#include "session/live/left_out_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/escape.hpp"

namespace rtev {

void LeftOutPrograms::add(std::int32_t pid, std::string_view exe, std::string_view why) {
  ++processes_;
  Name name(exe, why);
  auto program = programs_.find(name);
  if (program == programs_.end()) {
    if (programs_.size() == max_remembered) {
      ++nameless_;
      return;
    }
    program = programs_.try_emplace(std::move(name), Program{.pid = pid, .order = programs_.size()}).first;
  }
  ++program->second.processes;
}

std::string LeftOutPrograms::text() const {
  if (processes_ == 0) return {};
  std::vector<decltype(programs_)::const_iterator> rows;
  for (auto program = programs_.begin(); program != programs_.end(); ++program) rows.push_back(program);
  std::ranges::sort(rows, {}, [](const auto& program) { return program->second.order; });
  std::string text =
      processes_ == 1 ? fmt::format("{}:\n", wording_.one) : fmt::format("{} {}:\n", processes_, wording_.many);
  const auto named = std::min(rows.size(), max_named);
  for (std::size_t i = 0; i < named; ++i) {
    const auto& [path, why] = rows[i]->first;
    const Program& program = rows[i]->second;
    text += fmt::format("  {} (pid {}{}): {}\n", path.empty() ? "?" : escaped(path), program.pid,
                        program.processes == 1 ? "" : fmt::format(" and {} more", program.processes - 1), escaped(why));
  }
  if (const std::uint64_t others = rows.size() - named + nameless_; others > 0)
    text += fmt::format("  and {} more\n", others);
  text += fmt::format("hint: {}\n", wording_.hint);
  return text;
}

}  // namespace rtev
