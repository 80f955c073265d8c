// SPDX-License-Identifier: MIT
// Writes one trace event of Chrome's JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/json_writer.hpp"
#include "formats/chrome/time_text.hpp"

namespace rtev {

/// Order of the calls: start, name, further members, args, finish.
class ChromeEvent {
 public:
  explicit ChromeEvent(TextBuffer& out) : out_(out), json_(out) {}

  /// What "ts" counts from, in ns. Earlier times are written as this one.
  void set_origin(std::uint64_t origin_ns) { origin_ns_ = origin_ns; }

  void start(char phase, std::uint64_t time_ns, std::int32_t pid, std::int32_t tid) {
    const Place& place = place_of(pid, tid);
    out_.add_with(begin.size() + TimeText::max_bytes + place.text.size(), [&](char* at) {
      std::memcpy(at, begin.data(), begin.size());
      at[phase_at] = phase;
      at = times_.put(at + begin.size(), since_origin(time_ns));
      *at++ = safe_digit;
      std::memcpy(at, place.text.data(), place.text.size());
      return at + place.length;
    });
    json_.resume();
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

  /// The name consists of texts and numbers.
  template <typename... Parts>
  void name(std::string_view category, const Parts&... parts) {
    out_.add(R"(,"cat":")", category, R"(","name":")");
    (add_part(parts), ...);
    out_.add('"');
  }
  void complete(std::uint64_t duration_ns) { microseconds("dur", duration_ns, {&safe_digit, 1}); }
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
  /// What is between two events.
  static constexpr std::string_view separator = ",\n";
  /// With the separator behind it.
  void finish() {
    if (has_args_) out_.add('}');
    out_.add("},\n");
    has_args_ = false;
  }

 private:
  /// Follows the three decimals of a time that viewers convert to nanoseconds. Perfetto multiplies by 1000 and drops
  /// the rest, which would be one ns too early for one time in a hundred. With this digit neither dropping nor rounding
  /// is.
  static constexpr char safe_digit = '2';
  static constexpr std::string_view begin = R"({"ph":"?","ts":)";
  static constexpr std::size_t phase_at = begin.find('?');

  /// A row in a viewer, as members of an event.
  struct Place {
    std::int32_t pid = 0, tid = 0;
    std::size_t length = 0;
    std::array<char, std::string_view{R"(,"pid":-2147483648,"tid":-2147483648)"}.size()> text{};
  };
  static constexpr unsigned places_bits = 6;

  const Place& place_of(std::int32_t pid, std::int32_t tid) {
    Place& place = places_[(static_cast<std::uint32_t>(pid) * 31 + static_cast<std::uint32_t>(tid)) * 0x9E37'79B1u >>
                           (32 - places_bits)];
    if (place.pid != pid || place.tid != tid || place.length == 0) [[unlikely]]
      place = make_place(pid, tid);
    return place;
  }
  [[gnu::noinline]] static Place make_place(std::int32_t pid, std::int32_t tid) {
    TextBuffer text;
    text.add(R"(,"pid":)", pid, R"(,"tid":)", tid);
    Place place{.pid = pid, .tid = tid, .length = text.size()};
    std::ranges::copy(text.text(), place.text.begin());
    return place;
  }

  void add_part(std::string_view text) { add_json_text(out_, text); }
  void add_part(std::integral auto number) { out_.add(number); }

  std::uint64_t since_origin(std::uint64_t time_ns) const { return time_ns > origin_ns_ ? time_ns - origin_ns_ : 0; }

  void microseconds(std::string_view key, std::uint64_t ns, std::string_view more_digits = {}) {
    std::array<char, 32> text;
    char* at = TimeText::put_anew(text.data(), ns);
    for (const char digit : more_digits) *at++ = digit;
    json_.key(key).raw({text.data(), at});
  }

  TextBuffer& out_;
  JsonWriter json_;
  TimeText times_;
  std::array<Place, std::size_t{1} << places_bits> places_{};  ///< the ones used last: few have most events
  std::uint64_t origin_ns_ = 0;
  bool has_args_ = false;
};

}  // namespace rtev
