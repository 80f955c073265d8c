// SPDX-License-Identifier: MIT
// Requests and answers as messages between the tracer, the supervisor and the worker process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "enable/enabler.hpp"
#include "helper/channel.hpp"

namespace rtev::enable {

template <typename Archive>
void fields(Archive& archive, EnableRequest& request) {
  std::optional<std::int64_t> patience;
  if (request.patience) patience = request.patience->count();
  archive(request.task, request.pid, request.start_ticks, request.user, request.id, request.is_child_of_enabled,
          patience);
  if (patience) request.patience = std::chrono::nanoseconds(*patience);
}
template <typename Archive>
void fields(Archive& archive, Requirement& requirement) {
  archive(requirement.result, requirement.what, requirement.is_met, requirement.found, requirement.hint);
}
template <typename Archive>
void fields(Archive& archive, HarmedProgram& program) {
  archive(program.device, program.inode, program.user);
}
template <typename Archive>
void fields(Archive& archive, EnableAnswer& answer) {
  archive(answer.task, answer.pid, answer.start_ticks, answer.id, answer.comm, answer.result, answer.is_correction,
          answer.why, answer.hint, answer.took_ns, answer.requirements, answer.ring_path, answer.is_ours, answer.user,
          answer.harmed);
}

template <typename Value>
helper::Message encoded(Value value) {
  helper::Message message;
  helper::Writer{message}(value);
  return message;
}
/// Nothing if the message is cut or too long.
template <typename Value>
std::optional<Value> decoded(helper::Message& message) {
  Value value;
  helper::Reader reader(message);
  reader(value);
  return reader.is_complete() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace rtev::enable
