// SPDX-License-Identifier: MIT
// Writes one trace event of Chrome's JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/json_writer.hpp"

namespace rtev {

/// Order of the calls: start, name, further members, args, finish.
class ChromeEvent {
 public:
  explicit ChromeEvent(TextBuffer& out) : json_(out) {}

  /// What "ts" counts from, in ns. Earlier times are written as this one.
  void set_origin(std::uint64_t origin_ns) { origin_ns_ = origin_ns; }

  void start(char phase, std::uint64_t time_ns, std::int32_t pid, std::int32_t tid) {
    json_.restart();
    json_.begin_object();
    json_.plain_member("ph", {&phase, 1});
    microseconds("ts", since_origin(time_ns), safe_digit);
    json_.member("pid", pid);
    json_.member("tid", tid);
  }
  /// About a thread, or about the process where both are the same.
  void start_metadata(std::string_view name, std::int32_t pid, std::int32_t tid) {
    json_.restart();
    json_.begin_object();
    json_.plain_member("ph", "M");
    json_.plain_member("name", name);
    json_.member("pid", pid);
    json_.member("tid", tid);
    args();
  }

  void name(std::string_view name, std::string_view category) {
    json_.plain_member("cat", category);
    json_.member("name", name);
  }
  void complete(std::uint64_t duration_ns) { microseconds("dur", duration_ns, safe_digit); }
  /// On the scale of "ts".
  void time(std::string_view key, std::uint64_t time_ns) { microseconds(key, since_origin(time_ns)); }
  void duration(std::string_view key, std::uint64_t ns) { microseconds(key, ns); }

  /// For members of other kinds.
  JsonWriter& json() { return json_; }

  /// What follows belongs to "args". May be called again.
  void args() {
    if (!has_args_) json_.key("args").begin_object();
    has_args_ = true;
  }
  void finish() {
    if (has_args_) json_.end_object();
    json_.end_object();
    has_args_ = false;
  }

 private:
  /// Follows the three decimals of a time that viewers convert to nanoseconds. Perfetto multiplies by 1000 and drops
  /// the rest, which would be one ns too early for one time in a hundred. With this digit neither dropping nor rounding
  /// is.
  static constexpr std::string_view safe_digit = "2";

  std::uint64_t since_origin(std::uint64_t time_ns) const { return time_ns > origin_ns_ ? time_ns - origin_ns_ : 0; }

  void microseconds(std::string_view key, std::uint64_t ns, std::string_view more_digits = {}) {
    std::array<char, 32> text;
    char* at = std::to_chars(text.data(), text.data() + 20, ns / 1000).ptr;
    const auto fraction = static_cast<unsigned>(ns % 1000);
    *at++ = '.';
    for (const unsigned digit : {fraction / 100, fraction / 10 % 10, fraction % 10})
      *at++ = static_cast<char>('0' + digit);
    for (const char digit : more_digits) *at++ = digit;
    json_.key(key).raw({text.data(), at});
  }

  JsonWriter json_;
  std::uint64_t origin_ns_ = 0;
  bool has_args_ = false;
};

}  // namespace rtev
