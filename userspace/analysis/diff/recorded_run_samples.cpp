// SPDX-License-Identifier: MIT
// The samples of a RecordedRunSink.
#include "analysis/diff/recorded_run_sink.hpp"
#include "analysis/profile/call_tree.hpp"
#include "base/text_format.hpp"

namespace rtev {

void RecordedRunSink::sample(const Event& event, const Batch& batch) {
  const auto record = batch.payload_as<Sample>(event);
  const auto kind = static_cast<SampleKind>(event.id);
  if (!record || (kind != SampleKind::on_cpu && kind != SampleKind::allocation)) return;
  const auto process = processes_.find(record->process);
  if (process == processes_.end()) return;
  Program& program = *process->second.program;
  const std::size_t slice = clock_.at(event.time);
  if (sample_cells_ >= max_sample_cells) {
    program.record.lacks_room = true;
    return;
  }
  count(program, kind == SampleKind::on_cpu ? SliceSum::cpu_samples : SliceSum::allocation_samples, event.time);
  std::vector<SampleCount>& counts = samples_[{program.index, record->stack, kind}];
  if (!counts.empty() && counts.back().slice == slice) {
    ++counts.back().count;
  } else {
    counts.push_back({static_cast<std::uint16_t>(slice), 1});
    ++sample_cells_;
  }
}

/// Of the functions that have a notable part of the samples. A stack counts for its innermost OCaml function: what the
/// runtime, C and the kernel do for it belongs to it.
void RecordedRunSink::name_samples(const Registry& registry) {
  constexpr std::uint64_t least_part = 500;
  CallTree tree(registry.stacks());
  const auto function_of = [&](StackIndex stack) {
    return tree.place_of(tree.add(stack, CallTree::Inner::ocaml_only)).function;
  };
  std::map<std::tuple<std::size_t, SampleKind, std::uint32_t>, std::uint64_t> totals;
  std::map<std::pair<std::size_t, SampleKind>, std::uint64_t> all;
  for (const auto& [key, counts] : samples_) {
    std::uint64_t total = 0;
    for (const SampleCount& count : counts) total += count.count;
    totals[{key.program, key.kind, function_of(key.stack)}] += total;
    all[{key.program, key.kind}] += total;
  }
  for (const auto& [key, counts] : samples_) {
    const std::uint32_t function = function_of(key.stack);
    if (totals[{key.program, key.kind, function}] < all[{key.program, key.kind}] / least_part) continue;
    RecordedProgram& program = programs_[key.program]->record;
    const std::string name = fmt::format("{}", tree.functions()[function]);
    SlicedSamples& samples = (key.kind == SampleKind::on_cpu ? program.cpu : program.allocation)[name];
    for (const SampleCount& count : counts) {
      if (samples.size() <= count.slice) samples.resize(count.slice + std::size_t{1});
      samples[count.slice] += count.count;
    }
  }
  samples_.clear();
}

}  // namespace rtev
