// SPDX-License-Identifier: MIT
// Streams of the events that Eio and Miou write, made by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "unit/stream/world.hpp"

namespace rtev::test {

/// The events of one ring. Times are in ns, `domain` is that of all events until it is changed.
class TaskScript {
 public:
  explicit TaskScript(World& world) : world_(world), events_(world.slot) {}

  TaskScript& at(std::uint64_t time_ns) {
    now_ = time_ns;
    return *this;
  }
  TaskScript& on(std::uint16_t domain) {
    domain_ = domain;
    return *this;
  }
  TaskScript& create_fiber(std::int64_t id, std::int64_t context) {
    return custom("eio.create_fiber", bytes(id) + bytes(context));
  }
  TaskScript& fiber(std::int64_t id) { return integer("eio.fiber", id); }
  TaskScript& suspend(std::string_view operation) { return custom("eio.suspend_fiber", std::string(operation)); }
  TaskScript& yield() { return suspend(""); }
  TaskScript& exit_fiber(std::int64_t id) { return integer("eio.exit_fiber", id); }
  TaskScript& name(std::int64_t id, std::string_view text) { return custom("eio.name", bytes(id).append(text)); }
  TaskScript& create_context(std::int64_t id, char type) { return custom("eio.create_cc", bytes(id) + type); }
  TaskScript& exit_context() { return add(EventKind::user_unit, "eio.exit_cc", 0); }
  TaskScript& error(std::int64_t id, std::string_view text) { return custom("eio.error", bytes(id).append(text)); }
  TaskScript& try_get(std::int64_t id) { return integer("eio.try_get", id); }
  TaskScript& put(std::int64_t id) { return integer("eio.put", id); }
  /// The scheduler asks the system for events, until then.
  TaskScript& poll(std::uint64_t until_ns) {
    add(EventKind::user_begin, "eio.suspend_domain", 0);
    now_ = until_ns;
    return add(EventKind::user_end, "eio.suspend_domain", 0);
  }
  TaskScript& miou(std::string_view what, std::int64_t id) { return custom("miou." + std::string(what), bytes(id)); }
  TaskScript& miou_spawn(std::int64_t id, std::int64_t parent) {
    return custom("miou.spawn", bytes(id) + bytes(parent) + bytes(0) + '\1');
  }
  TaskScript& miou_suspend(std::int64_t id, std::string_view operation) {
    return custom("miou.suspend", bytes(id) + bytes(static_cast<std::int64_t>(operation.size())).append(operation));
  }
  TaskScript& miou_location(std::int64_t id, std::string_view file, std::int64_t line) {
    const std::string size = bytes(static_cast<std::int64_t>(file.size()));
    return custom("miou.location", (bytes(id) + bytes(line) + size).append(file));
  }
  TaskScript& loss() {
    events_.add_record(now_, EventKind::lost, Loss{.words = 10, .from_ns = now_ - 1, .to_ns = now_}, 0, domain_);
    return *this;
  }
  TaskScript& script(const std::string& text, std::uint64_t base_ns = 0) {
    events_.add(text, base_ns);
    return *this;
  }
  TaskScript& custom(std::string_view name, const std::string& payload) {
    events_.add_bytes(now_, EventKind::user_custom, payload, id_of(name), domain_);
    return *this;
  }
  TaskScript& integer(std::string_view name, std::int64_t value) {
    return add(EventKind::user_int, name, static_cast<std::uint64_t>(value));
  }

  static std::string bytes(std::int64_t number) {
    std::string text(sizeof number, '\0');
    std::memcpy(text.data(), &number, sizeof number);
    return text;
  }

  Batch batch() const { return events_.batch(); }

 private:
  TaskScript& add(EventKind kind, std::string_view name, std::uint64_t value) {
    events_.add(now_, kind, id_of(name), value, domain_);
    return *this;
  }
  std::uint16_t id_of(std::string_view name) {
    for (const auto& [id, known] : world_.user_names)
      if (known == name) return id;
    const auto id = static_cast<std::uint16_t>(100 + world_.user_names.size());
    world_.user_names[id] = name;
    return id;
  }

  World& world_;
  Events events_;
  std::uint64_t now_ = 1000;
  std::uint16_t domain_ = 0;
};

}  // namespace rtev::test
