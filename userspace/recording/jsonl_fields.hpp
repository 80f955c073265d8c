// SPDX-License-Identifier: MIT
// The fields of JSON lines, schema 1, as values of ours. A field that is not there or has another type reads as
// nothing: 0, or an empty text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev::jsonl {

/// With members in the order of the file: it is that of lists like the summary's drops.
using Json = nlohmann::ordered_json;

template <typename Number>
Number as_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return std::in_range<Number>(number) ? static_cast<Number>(number) : Number{};
  }
  if (!value.is_number_integer()) return {};
  const auto number = value.get<std::int64_t>();
  return std::in_range<Number>(number) ? static_cast<Number>(number) : Number{};
}

/// A member of an object; null where there is none.
const Json& member(const Json& object, const char* key);
/// The same where a list is expected; empty where there is none.
const Json& list(const Json& object, const char* key);
std::string string(const Json& object, const char* key);

template <typename Number>
Number number(const Json& object, const char* key) {
  return as_number<Number>(member(object, key));
}

/// Of the kinds that JSON lines name by "type" alone.
std::optional<EventKind> kind_of(std::string_view type);
std::optional<LossReason> loss_reason_of(std::string_view reason);
std::optional<ProcessAction> action_of(std::string_view action);
LeftState state_of(std::string_view state);

std::optional<std::vector<std::byte>> from_hex(std::string_view text);

/// What found, exec and fork say of an image.
/// What a line says of the version of a program.
void read_family(const Json& line, ProcessInfo& facts);
void read_image(const Json& line, ProcessInfo& facts);
/// ProcessRecord::detail of an exit.
std::int64_t exit_detail(const Json& line);
Thread read_thread(const Json& object);
/// Sched events are in order by cpu, as far as there is a buffer for each.
std::uint32_t sched_source(std::uint32_t cpu);

Accounting read_words(const Json& object);
/// A process of the summary.
void read_figures(const Json& process, ProcessInfo& facts);
RunSummary read_summary(const Json& line);

}  // namespace rtev::jsonl
