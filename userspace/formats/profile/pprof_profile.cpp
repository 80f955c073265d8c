// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/protobuf_message.hpp"
#include "base/text_format.hpp"
#include "formats/profile/flame_tree.hpp"
#include "formats/profile/pprof_fields.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev {
namespace {

using protobuf::Message;

/// What the values of a sample are, as other profilers call them.
struct Types {
  std::string_view count, weight, unit;
};
Types types_of(const ProfileReport& report) {
  switch (report.kind) {
    case SampleKind::off_cpu:
      return {"samples", "offcpu", "nanoseconds"};
    case SampleKind::allocation:
      if (report.unit == WeightUnit::bytes) return {"samples", "alloc_space", "bytes"};
      return {"samples", "alloc_samples", "count"};
    case SampleKind::on_cpu:
      break;
  }
  return {"samples", "cpu", "nanoseconds"};
}

class Pprof {
 public:
  explicit Pprof(const ProfileReport& report) : report_(report), tree_(report.tree) { text(""); }

  std::string bytes() {
    const Types types = types_of(report_);
    value_type(pprof::Profile::sample_type, types.count, "count");
    value_type(pprof::Profile::sample_type, types.weight, types.unit);
    samples();
    functions();
    locations();
    const SampleValue& all = report_.shown(report_.all);
    const std::uint64_t started_ns = report_.start_ns - report_.run_ns + report_.run_realtime_ns;
    if (report_.run_realtime_ns != 0) profile_.add_number(pprof::Profile::time_nanos, started_ns);
    profile_.add_number(pprof::Profile::duration_nanos, report_.end_ns - report_.start_ns);
    value_type(pprof::Profile::period_type, types.weight, types.unit);
    if (all.samples > 0) profile_.add_number(pprof::Profile::period, all.weight / all.samples);
    profile_.add_number(pprof::Profile::default_sample_type, text(types.weight));
    for (const std::string& about : {"rtev-bpf " + report_.version, report_.host, command_of(report_)})
      if (!about.empty()) profile_.add_number(pprof::Profile::comment, text(about));
    // The last ones: all others may add to them.
    for (const std::string& text : texts_) profile_.add_bytes(pprof::Profile::string_table, text);
    return std::string(out_.text());
  }

 private:
  /// Valid UTF-8, or readers refuse the file.
  std::uint64_t text(std::string_view text) {
    std::string clean = escaped(text);
    const auto [known, is_new] = text_indices_.try_emplace(clean, texts_.size());
    if (is_new) texts_.push_back(std::move(clean));
    return known->second;
  }

  void value_type(pprof::Profile field, std::string_view type, std::string_view unit) {
    Message<pprof::ValueType> message(profile_, field);
    message.add_number(pprof::ValueType::type, text(type));
    message.add_number(pprof::ValueType::unit, text(unit));
  }

  template <typename Value>
  void label(Message<pprof::Sample>& sample, std::string_view key, pprof::Label field, Value value) {
    Message<pprof::Label> message(sample, pprof::Sample::label);
    message.add_number(pprof::Label::key, text(key));
    message.add_number(field, value);
  }

  void samples() {
    SampleValue left_out;
    std::size_t frames = 0;
    for (const ProfileEntry& entry : report_.entries) {
      if (entry.side != report_.shown_side()) continue;
      frames += tree_.nodes()[entry.node].depth;
      if (frames > max_file_frames) {
        left_out += entry.value;
        continue;
      }
      Message<pprof::Sample> sample(profile_, pprof::Profile::sample);
      // Innermost first. The root's place has no id.
      for (CallTree::Index node = entry.node; node != CallTree::root; node = tree_.nodes()[node].parent)
        sample.add_number(pprof::Sample::location_id, tree_.nodes()[node].place);
      values(sample, entry.value);
      labels(sample, entry);
    }
    if (left_out.samples == 0) return;
    Message<pprof::Sample> sample(profile_, pprof::Profile::sample);
    sample.add_number(pprof::Sample::location_id, left_out_id());
    values(sample, left_out);
  }

  void values(Message<pprof::Sample>& sample, const SampleValue& value) const {
    sample.add_number(pprof::Sample::value, value.samples);
    sample.add_number(pprof::Sample::value, value.weight);
  }

  void labels(Message<pprof::Sample>& sample, const ProfileEntry& entry) {
    const ProfileProcess& process = report_.processes[entry.process];
    if (process.pid != 0) {
      label(sample, "process", pprof::Label::str, text(process.comm));
      label(sample, "pid", pprof::Label::num, static_cast<std::uint32_t>(process.pid));
    }
    // As text: pprof takes numbers for sizes.
    if (entry.domain >= 0) label(sample, "domain", pprof::Label::str, text(std::to_string(entry.domain)));
    if (entry.label != 0) label(sample, to_string(report_.by), pprof::Label::str, text(report_.labels[entry.label]));
    if (entry.in_gc) label(sample, "gc", pprof::Label::str, text("yes"));
  }

  /// Behind those of the tree.
  std::uint64_t left_out_id() const { return tree_.places().size(); }

  void functions() {
    for (std::size_t i = 1; i < tree_.functions().size(); ++i) {
      const ProfileFunction& of = tree_.functions()[i];
      function(i, function_label(of), of.name, of.file);
    }
    function(tree_.functions().size(), left_out_frame, {}, {});
  }
  void function(std::size_t id, std::string_view name, std::string_view system_name, std::string_view file) {
    Message<pprof::Function> message(profile_, pprof::Profile::function);
    message.add_number(pprof::Function::id, id);
    // It is escaped already: a second time would double its backslashes.
    const auto [known, is_new] = text_indices_.try_emplace(std::string(name), texts_.size());
    if (is_new) texts_.emplace_back(name);
    message.add_number(pprof::Function::name, known->second);
    if (!system_name.empty()) message.add_number(pprof::Function::system_name, text(system_name));
    if (!file.empty()) message.add_number(pprof::Function::filename, text(file));
  }

  void locations() {
    for (std::size_t i = 1; i < tree_.places().size(); ++i) {
      const ProfilePlace& place = tree_.places()[i];
      const ProfileFunction& function = tree_.functions()[place.function];
      location(i, mapping_of(function), place.address, place.function, place.line);
    }
    location(left_out_id(), 0, 0, tree_.functions().size(), 0);
  }
  void location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address, std::uint64_t function,
                std::uint32_t line_number) {
    Message<pprof::Location> message(profile_, pprof::Profile::location);
    message.add_number(pprof::Location::id, id);
    if (mapping != 0) message.add_number(pprof::Location::mapping_id, mapping);
    if (address != 0) message.add_number(pprof::Location::address, address);
    Message<pprof::Line> line(message, pprof::Location::line);
    line.add_number(pprof::Line::function_id, function);
    if (line_number != 0) line.add_number(pprof::Line::line, line_number);
  }

  /// The file that has the code; 0 if it is unknown.
  std::uint64_t mapping_of(const ProfileFunction& function) {
    if (function.object.empty()) return 0;
    const auto [known, is_new] =
        mappings_.try_emplace(std::pair(function.object, function.build_id), mappings_.size() + 1);
    if (!is_new) return known->second;
    Message<pprof::Mapping> mapping(profile_, pprof::Profile::mapping);
    mapping.add_number(pprof::Mapping::id, known->second);
    mapping.add_number(pprof::Mapping::filename, text(function.object));
    if (!function.build_id.empty()) mapping.add_number(pprof::Mapping::build_id, text(function.build_id));
    for (const auto known_already :
         {pprof::Mapping::has_functions, pprof::Mapping::has_filenames, pprof::Mapping::has_line_numbers})
      mapping.add_number(known_already, true);
    return known->second;
  }

  const ProfileReport& report_;
  const CallTree& tree_;
  TextBuffer out_;
  Message<pprof::Profile> profile_{out_};
  std::unordered_map<std::string, std::uint64_t> text_indices_;
  std::vector<std::string> texts_;
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> mappings_;
};

}  // namespace

std::string pprof_profile(const ProfileReport& report) {
  return Pprof(report).bytes();
}

}  // namespace rtev
