// SPDX-License-Identifier: MIT
#include "session/live/stacks/code_spaces.hpp"

#include <utility>
#include <vector>

#include "unwind/vdso.hpp"

namespace rtev {
namespace {

/// A program that runs code in memory of its own making must not have its mappings read all the time.
constexpr std::uint64_t usual_interval_ns = 500'000'000;

/// Right after its start a program maps its libraries one by one.
constexpr unsigned quick_answers = 4;
constexpr std::uint64_t quick_interval_ns = 5'000'000;

}  // namespace

CodeSpaces::CodeSpaces(ProcessQueries& queries, OnKnown on_known, Clock clock)
    : queries_(queries), on_known_(std::move(on_known)), clock_(std::move(clock)) {
  if (auto vdso = vdso_tables()) vdso_ = std::make_shared<const ObjectTables>(std::move(*vdso));
}

const AddressSpace* CodeSpaces::find(const Process& process) {
  const auto [known, is_new] = spaces_.try_emplace(process.index);
  if (is_new) ask(process, known->second);
  return known->second.answers != 0 ? &known->second.space : nullptr;
}

bool CodeSpaces::ask_again(const Process& process) {
  Space& space = spaces_[process.index];
  if (space.is_awaited) return true;
  const std::uint64_t interval_ns = space.answers < quick_answers ? quick_interval_ns : usual_interval_ns;
  if (clock_() - space.asked_ns < interval_ns) return false;
  ask(process, space);
  return true;
}

bool CodeSpaces::is_awaited(ProcessIndex process) const {
  const auto known = spaces_.find(process);
  return known != spaces_.end() && known->second.is_awaited;
}

std::uint64_t CodeSpaces::asked_ns(ProcessIndex process) const {
  const auto known = spaces_.find(process);
  return known != spaces_.end() ? known->second.asked_ns : 0;
}

void CodeSpaces::ask(const Process& process, Space& space) {
  space.is_awaited = true;
  space.asked_ns = clock_();
  queries_.ask({.pid = process.pid, .code_but = tables_.known_to(process.user)}, process.user,
               [this, process](ProcessView view) { take(process, std::move(view)); });
}

void CodeSpaces::take(const Process& process, ProcessView view) {
  const auto known = spaces_.find(process.index);
  if (known == spaces_.end()) return;
  Space& space = known->second;
  space.is_awaited = false;
  ++space.answers;
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
        mapping.is_unread = code.file.inode != 0;
      mappings.push_back(std::move(mapping));
    }
    space.space = AddressSpace(std::move(mappings));
  }
  on_known_(process.index);
}

}  // namespace rtev
