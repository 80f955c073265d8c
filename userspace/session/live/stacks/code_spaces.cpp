// SPDX-License-Identifier: MIT
#include "session/live/stacks/code_spaces.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "unwind/vdso.hpp"

namespace rtev {
namespace {

/// A program that runs code in memory of its own making must not have its mappings read all the time.
constexpr std::uint64_t usual_interval_ns = 500'000'000;

/// Right after its start a program maps its libraries one by one. The interval doubles with each answer: how long that
/// takes depends on the host.
constexpr std::uint64_t first_interval_ns = 5'000'000;
constexpr unsigned max_doublings = 7;

}  // namespace

CodeSpaces::CodeSpaces(ProcessQueries& readers, ProcessQueries& builders, OnKnown on_known, Clock clock)
    : readers_(readers), builders_(builders), on_known_(std::move(on_known)), clock_(std::move(clock)) {
  if (auto vdso = vdso_tables()) vdso_ = std::make_shared<const ObjectTables>(std::move(*vdso));
}

const AddressSpace* CodeSpaces::find(const Process& process) {
  const auto [known, is_new] = spaces_.try_emplace(process.index);
  if (is_new) ask(process, known->second);
  const Space& space = known->second;
  return space.has_mappings || space.answers != 0 ? &space.space : nullptr;
}

bool CodeSpaces::ask_again(const Process& process) {
  Space& space = spaces_[process.index];
  if (space.is_awaited) return true;
  const unsigned doublings = std::min(std::max(space.answers, 1U) - 1, max_doublings);
  const std::uint64_t interval_ns = std::min(first_interval_ns << doublings, usual_interval_ns);
  if (clock_() - space.asked_ns < interval_ns) return false;
  ask(process, space);
  return true;
}

bool CodeSpaces::is_awaited(ProcessIndex process) const {
  const auto known = spaces_.find(process);
  return known != spaces_.end() && known->second.is_awaited;
}

std::uint64_t CodeSpaces::final_until_ns(ProcessIndex process) const {
  const auto known = spaces_.find(process);
  return known != spaces_.end() && !known->second.is_awaited ? known->second.asked_ns : 0;
}

void CodeSpaces::ask(const Process& process, Space& space) {
  space.is_awaited = true;
  space.asked_ns = clock_();
  readers_.ask({.pid = process.pid, .code_but = std::vector<MappedFile>(), .builds_tables = false}, process.user,
               [this, process](ProcessView view) { take(process, Asked::mappings, std::move(view)); });
}

void CodeSpaces::take(const Process& process, Asked asked, ProcessView view) {
  const auto known = spaces_.find(process.index);
  if (known == spaces_.end()) return;
  Space& space = known->second;
  bool lacks_tables = false;
  // A process that ended has no mappings; those from before may still explain its last stacks.
  if (!view.code.empty()) {
    std::vector<CodeMapping> mappings;
    mappings.reserve(view.code.size());
    for (MappedCode& code : view.code) {
      CodeMapping mapping{.begin = code.begin, .end = code.end, .file_offset = code.offset, .path = code.path};
      if (code.path == vdso_path)
        mapping.tables = vdso_;
      else if (const auto found = tables_.find(code.file, process.user))
        mapping.tables = *found;
      else if (code.tables || code.has_none)
        mapping.tables = tables_.add(code, process.user);
      else
        lacks_tables |= mapping.is_unread = code.file.inode != 0;
      mappings.push_back(std::move(mapping));
    }
    space.space = AddressSpace(std::move(mappings));
    space.has_mappings = true;
  }
  if (lacks_tables && asked == Asked::mappings) {
    builders_.ask({.pid = process.pid, .code_but = tables_.known_to(process.user)}, process.user,
                  [this, process](ProcessView found) { take(process, Asked::tables, std::move(found)); });
  } else {
    space.is_awaited = false;
    ++space.answers;
  }
  on_known_(process.index);
}

}  // namespace rtev
