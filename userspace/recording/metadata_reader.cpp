// SPDX-License-Identifier: MIT
#include "recording/metadata_reader.hpp"

#include <array>
#include <optional>
#include <utility>

#include "recording/argument_values.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {
namespace {

/// Of a whole command line; the default limit of the kernel.
constexpr std::size_t max_argument_bytes = std::size_t{6} << 20, max_arguments = std::size_t{1} << 17;
constexpr std::size_t max_drops = 256, max_announcers = 4096;

/// A StackFrame with texts of its own.
struct ReadFrame {
  FrameKind kind{};
  bool inlined = false;
  std::uint32_t line = 0;
  std::uint64_t address = 0;
  std::string function, file, object, build_id;
};

std::unexpected<Error> incomplete(std::string_view what) {
  return bad_recording(std::string(what) + " lacks an argument");
}

}  // namespace

Result<bool> MetadataReader::take(std::string_view what, const Object& object) {
  using Take = Result<void> (MetadataReader::*)(const Object&);
  static constexpr std::array<std::pair<std::string_view, Take>, 16> takes{
      {{metadata_script, &MetadataReader::script},
       {metadata_process, &MetadataReader::process},
       {metadata_service, &MetadataReader::service},
       {metadata_accounting, &MetadataReader::accounting},
       {metadata_missed, &MetadataReader::missed},
       {metadata_left_alone, &MetadataReader::left_alone},
       {metadata_ring, &MetadataReader::ring},
       {metadata_frame, &MetadataReader::frame},
       {metadata_stack, &MetadataReader::stack},
       {metadata_header, &MetadataReader::header},
       {metadata_argument, &MetadataReader::argument},
       {metadata_others, &MetadataReader::others},
       {metadata_events, &MetadataReader::events},
       {metadata_drop, &MetadataReader::drop},
       {metadata_announcer, &MetadataReader::announcer},
       {metadata_summary, &MetadataReader::summary}}};
  for (const auto& [name, take] : takes) {
    if (name != what) continue;
    if (auto taken = (this->*take)(object); !taken) return std::unexpected(std::move(taken.error()));
    return true;
  }
  if (what == metadata_list) {
    lists_ = true;
    return true;
  }
  if (what == metadata_ring_gone) {
    if (std::in_range<std::uint32_t>(object.address)) stream_.forget_ring(static_cast<std::uint32_t>(object.address));
    return true;
  }
  if (what == metadata_process_gone) {
    if (std::in_range<ProcessIndex>(object.address)) stream_.forget_process(static_cast<ProcessIndex>(object.address));
    return true;
  }
  return false;
}

void MetadataReader::hand_out_header() {
  if (!has_header_ || std::exchange(header_is_out_, true)) return;
  stream_.header(header_);
}

Result<void> MetadataReader::header(const Object& object) {
  if (has_header_) return bad_recording("a second header");
  Values values(object.arguments);
  const auto version = values.number<std::uint32_t>(metadata_header);
  if (values.complete() && version != format_version) {
    return std::unexpected(Error{.what = "cannot read recording",
                                 .why = "another version of rtev-bpf wrote it",
                                 .hint = "read it with the version that wrote it"});
  }
  header_fields(header_, values);
  if (values.has("shown_from")) header_.shown_from_ns = values.number<std::uint64_t>("shown_from");
  if (values.has("selection")) {
    header_.not_recorded = {.selection = values.text("selection"), .kinds = values.number<std::uint64_t>("left_out")};
    for (std::size_t family = 0; family < left_out_phases.size(); ++family)
      if (values.has(left_out_phases[family]))
        header_.not_recorded.phases.at(family) = values.number<std::uint64_t>(left_out_phases[family]);
  }
  if (!values.complete()) return incomplete(metadata_header);
  has_header_ = true;
  return {};
}

Result<void> MetadataReader::argument(const Object& object) {
  if (!has_header_ || header_is_out_) return bad_recording("an argument of the command line without the header");
  Values values(object.arguments);
  const std::string piece = values.text(metadata_argument);
  const bool goes_on = values.boolean("goes_on");
  if (!values.complete()) return incomplete(metadata_argument);
  argument_bytes_ += piece.size();
  if (!argument_goes_on_) header_.command_line.emplace_back();
  header_.command_line.back() += piece;
  argument_goes_on_ = goes_on;
  if (argument_bytes_ > max_argument_bytes || header_.command_line.size() > max_arguments)
    return bad_recording("the command line is too long");
  return {};
}

Result<void> MetadataReader::script(const Object& object) {
  Values values(object.arguments);
  script_ = {object.address, values.text("path")};
  return values.complete() ? Result<void>() : incomplete(metadata_script);
}

Result<void> MetadataReader::process(const Object& object) {
  Values values(object.arguments);
  ProcessInfo info;
  process_fields(info, values);
  if (script_.first == object.address) info.script = std::exchange(script_, {}).second;
  if (values.has("max_rss")) info.max_rss_bytes = values.number<std::uint64_t>("max_rss");
  if (!values.complete() || object.address == 0 || object.address >= UINT32_MAX) return incomplete(metadata_process);
  const auto index = static_cast<ProcessIndex>(object.address);
  if (!lists_) {
    if (!stream_.process(index, std::move(info))) return bad_recording("too many processes");
    return {};
  }
  list_bytes_ += info.comm.size() + info.exe.size() + info.script.size() + info.runtime.size() + info.version.size() +
                 info.ring_path.size();
  if (list_.processes.size() >= StreamBuilder::max_processes || list_bytes_ > StreamBuilder::max_process_bytes)
    return bad_recording("too many processes");
  if (!list_.processes.emplace(index, std::move(info)).second) return bad_recording("a process is listed twice");
  return {};
}

Result<void> MetadataReader::service(const Object& object) {
  Values values(object.arguments);
  ServiceIdentity service;
  service_fields(service, values);
  if (!values.complete()) return incomplete(metadata_service);
  if (!lists_) {
    const bool is_known = std::in_range<ProcessIndex>(object.address) &&
                          stream_.service(static_cast<ProcessIndex>(object.address), std::move(service));
    if (!is_known) return bad_recording("the service of a process that is not known");
    return {};
  }
  ProcessInfo* const info = listed(object);
  if (info == nullptr) return bad_recording("the service of a process that is not listed");
  list_bytes_ += service.text_bytes();
  if (list_bytes_ > StreamBuilder::max_process_bytes) return bad_recording("too many processes");
  info->service = std::move(service);
  return {};
}

Result<void> MetadataReader::accounting(const Object& object) {
  Values values(object.arguments);
  const auto domains = values.number<std::uint32_t>("domains");
  Accounting words;
  word_fields(words, values);
  if (!values.complete()) return incomplete(metadata_accounting);
  ProcessInfo* const info = listed(object);
  if (info == nullptr) return bad_recording("figures of a process that is not listed");
  info->domains = domains;
  info->words = words;
  ++accounted_;
  return {};
}

Result<void> MetadataReader::missed(const Object& object) {
  Values values(object.arguments);
  MissedRings missed;
  missed_fields(missed, values);
  if (values.has("too_large")) missed.too_large = values.number<std::uint64_t>("too_large");
  if (!values.complete()) return incomplete(metadata_missed);
  ProcessInfo* const info = listed(object);
  if (info == nullptr) return bad_recording("missed rings of a process that is not listed");
  info->missed = missed;
  return {};
}

Result<void> MetadataReader::left_alone(const Object& object) {
  Values values(object.arguments);
  LeftAlone left_alone;
  left_alone_fields(left_alone, values);
  if (!values.complete()) return incomplete(metadata_left_alone);
  ProcessInfo* const info = listed(object);
  if (info == nullptr) return bad_recording("pauses of a process that is not listed");
  info->left_alone = left_alone;
  return {};
}

/// The process of the summary that an object is about; null if there is none.
ProcessInfo* MetadataReader::listed(const Object& object) {
  if (!std::in_range<ProcessIndex>(object.address)) return nullptr;
  const auto found = list_.processes.find(static_cast<ProcessIndex>(object.address));
  return found != list_.processes.end() ? &found->second : nullptr;
}

Result<void> MetadataReader::ring(const Object& object) {
  Values values(object.arguments);
  const auto process = values.number<ProcessIndex>(metadata_ring);
  const auto domains = values.number<std::uint32_t>("domains");
  std::optional<Producer> producer;
  if (values.has("producer")) {
    producer.emplace(Producer{.name = values.text("producer"), .family = {}});
    values("producer_family", producer->family);
  }
  if (!values.complete()) return incomplete(metadata_ring);
  if (!std::in_range<std::uint32_t>(object.address) ||
      !stream_.ring(static_cast<std::uint32_t>(object.address), process, domains, std::move(producer)))
    return bad_recording("the slot of a ring is out of range");
  return {};
}

Result<void> MetadataReader::frame(const Object& object) {
  Values values(object.arguments);
  ReadFrame read;
  frame_fields(read, values);
  if (!values.complete()) return incomplete(metadata_frame);
  const StackFrame frame{.kind = read.kind,
                         .inlined = read.inlined,
                         .line = read.line,
                         .address = read.address,
                         .function = read.function,
                         .file = read.file,
                         .object = read.object,
                         .build_id = read.build_id};
  if (!std::in_range<FrameIndex>(object.address) || !stream_.frame(static_cast<FrameIndex>(object.address), frame))
    return bad_recording("too many frames");
  return {};
}

Result<void> MetadataReader::stack(const Object& object) {
  Values values(object.arguments);
  const auto caller = values.number<StackIndex>("caller");
  const auto frame = values.number<FrameIndex>("frame");
  if (!values.complete()) return incomplete(metadata_stack);
  if (!std::in_range<StackIndex>(object.address) ||
      !stream_.stack(static_cast<StackIndex>(object.address), caller, frame))
    return bad_recording("too many stacks");
  return {};
}

Result<void> MetadataReader::others(const Object& object) {
  Values values(object.arguments);
  list_.others.count = values.number<std::uint64_t>(metadata_others);
  word_fields(list_.others.words, values);
  if (values.has("replaced")) list_.others.replaced = values.number<std::uint64_t>("replaced");
  if (!values.complete()) return incomplete(metadata_others);
  has_others_ = true;
  return {};
}

Result<void> MetadataReader::events(const Object& object) {
  Values values(object.arguments);
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    const std::string_view name = to_string(static_cast<EventKind>(kind));
    // The counts come in parts, and older recordings lack the newer kinds.
    if (values.has(name)) summary_.events[kind] = values.number<std::uint64_t>(name);
  }
  if (!values.complete()) return incomplete(metadata_events);
  has_events_ = true;
  return {};
}

Result<void> MetadataReader::drop(const Object& object) {
  Values values(object.arguments);
  RunSummary::Drop drop{.kind = values.text("kind"), .count = values.number<std::uint64_t>(metadata_drop)};
  if (!values.complete()) return incomplete(metadata_drop);
  if (summary_.drops.size() >= max_drops) return bad_recording("too many kinds of drops");
  summary_.drops.push_back(std::move(drop));
  return {};
}

Result<void> MetadataReader::announcer(const Object& object) {
  Values values(object.arguments);
  RunSummary::Announcer announcer{.pid = values.number<std::int32_t>("pid"),
                                  .comm = values.text("comm"),
                                  .dropped = values.number<std::uint64_t>(metadata_announcer)};
  if (!values.complete()) return incomplete(metadata_announcer);
  if (summary_.announcers.size() >= max_announcers) return bad_recording("too many announcers");
  summary_.announcers.push_back(std::move(announcer));
  return {};
}

Result<void> MetadataReader::summary(const Object& object) {
  if (!has_header_) return bad_recording("a summary without a header");
  Values values(object.arguments);
  summary_fields(summary_, values);
  summary_.whole_ring = values.has("whole_ring") && values.boolean("whole_ring");
  if (!values.complete()) return incomplete(metadata_summary);
  hand_out_header();
  // A damaged recording may lack these: then its figures are those of its events.
  summary_.complete &= lists_ && has_others_ && has_events_ && accounted_ == list_.processes.size();
  if (!has_events_) summary_.events = stream_.counted().events;
  stream_.finish(summary_, lists_ ? std::optional(std::move(list_)) : std::nullopt);
  ended_ = true;
  return {};
}

}  // namespace rtev::record
