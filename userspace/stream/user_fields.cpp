// SPDX-License-Identifier: MIT
#include "stream/user_fields.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/escape.hpp"

namespace rtev {
namespace {

/// How a field is written. Integers are little-endian unless said.
enum class Form : std::uint8_t {
  int64,
  float64,
  big16,   ///< two bytes, big-endian, unsigned
  choice,  ///< a byte that stands for one of Part::choices
  rest,    ///< text to the end of the payload
  text8,   ///< a byte with the length, then the text
  text64,  ///< an int64 with the length, then the text
};

struct Choice {
  std::uint8_t byte;
  std::string_view name;
};

struct Part {
  std::string_view name;
  Form form;
  std::span<const Choice> choices{};
};

struct Layout {
  std::string_view event;
  std::span<const Part> parts;
};

constexpr Choice eio_objects[]{{15, "promise"}, {16, "semaphore"}, {18, "stream"}, {19, "mutex"}};
constexpr Choice eio_contexts[]{{3, "switch"}, {4, "protect"}, {5, "sub"}, {6, "root"}, {7, "any"}};
constexpr Choice lwt_marks[]{{'B', "begin"}, {'E', "end"}};
constexpr Choice miou_kinds[]{{1, "async"}, {2, "parallel"}};

constexpr Part fiber_in[]{{"id", Form::int64}, {"cc", Form::int64}};
constexpr Part context[]{{"id", Form::int64}, {"type", Form::choice, eio_contexts}};
constexpr Part object[]{{"id", Form::int64}, {"type", Form::choice, eio_objects}};
constexpr Part named[]{{"id", Form::int64}, {"name", Form::rest}};
constexpr Part failed[]{{"id", Form::int64}, {"error", Form::rest}};
constexpr Part message[]{{"text", Form::rest}};
constexpr Part name_only[]{{"name", Form::rest}};
constexpr Part lwt_span[]{
    {"mark", Form::choice, lwt_marks}, {"context", Form::text8}, {"line", Form::big16}, {"file", Form::text8}};
constexpr Part miou_spawn[]{
    {"uid", Form::int64}, {"parent", Form::int64}, {"runner", Form::int64}, {"kind", Form::choice, miou_kinds}};
constexpr Part uid[]{{"uid", Form::int64}};
constexpr Part uid_name[]{{"uid", Form::int64}, {"name", Form::text64}};
constexpr Part place[]{{"uid", Form::int64}, {"line", Form::int64}, {"file", Form::text64}};
constexpr Part resource[]{{"resource", Form::int64}, {"uid", Form::int64}};
constexpr Part self_and_promise[]{{"self", Form::int64}, {"uid", Form::int64}};
constexpr Part int_metric[]{{"value", Form::int64}, {"name", Form::rest}};
constexpr Part float_metric[]{{"value", Form::float64}, {"name", Form::rest}};

// Sorted. Events of these libraries with a value of OCaml's own types need no layout.
constexpr Layout layouts[]{
    {"eio.create_cc", context},
    {"eio.create_fiber", fiber_in},
    {"eio.create_obj", object},
    {"eio.enter_span", name_only},
    {"eio.error", failed},
    {"eio.log", message},
    {"eio.name", named},
    {"eio.suspend_fiber", name_only},
    {"lwt-trace", lwt_span},
    {"miou.attach", resource},
    {"miou.await", uid},
    {"miou.begin", uid},
    {"miou.cancel", uid},
    {"miou.cancelled", uid},
    {"miou.continue", uid_name},
    {"miou.detach", resource},
    {"miou.done", uid},
    {"miou.end", uid},
    {"miou.exn.not_a_child", self_and_promise},
    {"miou.exn.not_owner", resource},
    {"miou.exn.resouce_leaked", uid},  // Miou's spelling
    {"miou.exn.still_has_children", uid},
    {"miou.location", place},
    {"miou.resume", uid},
    {"miou.spawn", miou_spawn},
    {"miou.suspend", uid_name},
    {"miou.yield", uid},
    {"trace.message", message},
    {"trace.metric.float", float_metric},
    {"trace.metric.int", int_metric},
    {"trace.span.enter", name_only},
    {"trace.span.exit", name_only},
};
static_assert(std::ranges::is_sorted(layouts, {}, &Layout::event));
static_assert(std::ranges::all_of(layouts, [](const Layout& each) { return each.parts.size() <= UserFields::most; }));

/// Takes fields from the front of a payload.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> payload)
      : rest_(reinterpret_cast<const char*>(payload.data()), payload.size()) {}

  bool at_end() const { return rest_.empty(); }

  std::optional<UserField> take(const Part& part) {
    const auto field = [&](auto value) { return UserField{part.name, value}; };
    switch (part.form) {
      case Form::int64:
        return number<std::int64_t>().transform(field);
      case Form::float64:
        return number<double>().transform(field);
      case Form::big16:
        return bytes(2).transform([&](std::string_view two) {
          return UserField{part.name, std::int64_t{byte_of(two[0]) << 8 | byte_of(two[1])}};
        });
      case Form::choice:
        return bytes(1).and_then([&](std::string_view one) -> std::optional<UserField> {
          const auto found = std::ranges::find(part.choices, byte_of(one[0]), &Choice::byte);
          return found != part.choices.end() ? std::optional(UserField{part.name, found->name}) : std::nullopt;
        });
      case Form::rest:
        return bytes(rest_.size()).transform(field);
      case Form::text8:
        return bytes(1).and_then([&](std::string_view one) { return bytes(byte_of(one[0])); }).transform(field);
      case Form::text64:
        return number<std::uint64_t>().and_then([&](std::uint64_t size) { return bytes(size); }).transform(field);
    }
    return std::nullopt;
  }

 private:
  static std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

  std::optional<std::string_view> bytes(std::uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  /// OCaml writes these in little-endian order, as the hosts that are supported have it.
  template <typename Number>
  std::optional<Number> number() {
    static_assert(std::endian::native == std::endian::little);
    return bytes(sizeof(Number)).transform([](std::string_view from) {
      Number to{};
      std::ranges::copy(from, reinterpret_cast<char*>(&to));
      return to;
    });
  }

  std::string_view rest_;
};

void add_value(TextBuffer& out, std::int64_t value, std::size_t /*longest*/) {
  out.add(value);
}
void add_value(TextBuffer& out, double value, std::size_t /*longest*/) {
  std::array<char, 32> text;
  out.add(std::string_view{text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr});
}
void add_value(TextBuffer& out, std::string_view text, std::size_t longest) {
  std::size_t shown = std::min(text.size(), longest);
  while (shown < text.size() && shown > 0 && (text[shown] & 0xC0) == 0x80) --shown;  // not within a character
  add_quoted(out, text.substr(0, shown));
  if (shown < text.size()) out.add("...");
}

}  // namespace

UserFields user_fields(std::string_view event, std::span<const std::byte> payload) {
  const auto layout = std::ranges::lower_bound(layouts, event, {}, &Layout::event);
  if (layout == std::ranges::end(layouts) || layout->event != event) return {};
  UserFields fields;
  Cursor cursor{payload};
  for (const Part& part : layout->parts) {
    const auto field = cursor.take(part);
    if (!field) return {};
    fields.add(*field);
  }
  return cursor.at_end() ? fields : UserFields{};
}

UserIntegers user_integers(std::span<const std::byte> payload) {
  UserIntegers integers;
  constexpr std::size_t size = sizeof(std::int64_t);
  if (payload.size() != size && payload.size() != 2 * size) return integers;
  if (is_printable({reinterpret_cast<const char*>(payload.data()), payload.size()})) return integers;
  for (std::size_t at = 0; at < payload.size(); at += size) {
    std::int64_t number = 0;
    std::memcpy(&number, payload.data() + at, size);
    integers.add(number);
  }
  return integers;
}

void add_user_integers(TextBuffer& out, const UserIntegers& integers) {
  for (const std::int64_t& number : integers) out.add(&number == integers.begin() ? "" : " ", number);
}

void add_user_fields(TextBuffer& out, const UserFields& fields, std::size_t longest_text) {
  for (const UserField& field : fields) {
    if (&field != fields.begin()) out.add(' ');
    out.add(field.name, '=');
    std::visit([&](auto value) { add_value(out, value, longest_text); }, field.value);
  }
}

}  // namespace rtev
