// SPDX-License-Identifier: MIT
// Composing events for FxtWriter's fast path, and what it says when they are not written as composed.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxt/record_encoder.hpp"
#include "fxt/writer_state.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev {
namespace {

std::string text_of(fxt::Signature signature) {
  static constexpr std::array<std::string_view, 5> extras{"", "counter id", "end time", "async id", "flow id"};
  std::string text(extras[signature >> 60]);
  for (fxt::Signature arguments = signature & ~(fxt::Signature{15} << 60); arguments != 0; arguments >>= 4) {
    if (!text.empty()) text += ", ";
    text += to_string(static_cast<fxt::ArgumentType>((arguments & 15) - 1));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

fxt::ComposedEvent FxtWriter::compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category,
                                      fxt::StringRef name, std::span<const fxt::Parameter> parameters) {
  const auto refuse_it = [&](fxt::Status status, std::string_view why) {
    refuse(status,
           [&] { return Error{.what = "cannot compose event", .subject = name_of(name), .why = std::string(why)}; });
    return fxt::ComposedEvent();
  };
  if (type > fxt::EventType::flow_end) return refuse_it(fxt::Status::wrong_arguments, "its type is none of the format");
  if (thread.is_inline() || category.is_inline() || name.is_inline())
    return refuse_it(fxt::Status::wrong_arguments, "its thread, category and name must be references to slots");
  if (parameters.size() > fxt::max_arguments)
    return refuse_it(fxt::Status::over_limit, "it has more than 15 parameters");

  const bool has_extra = fxt::has_extra_word(type);
  std::size_t words = std::size_t{2} + has_extra;
  fxt::Signature signature = fxt::signature_part(fxt::extra_kind(type));
  std::vector<std::uint64_t> headers;
  for (const fxt::Parameter& parameter : parameters) {
    if (parameter.type > fxt::ArgumentType::blob || parameter.name.is_inline())
      return refuse_it(fxt::Status::wrong_arguments, "a parameter has no type of the format or an inline name");
    const std::size_t argument_words = fxt::encode::fixed_words(parameter.type);
    signature |= fxt::signature_part(parameter.type, headers.size());
    headers.push_back(fxt::argument_header(parameter.type, argument_words, parameter.name.bits));
    words += argument_words;
  }
  return {fxt::event_header(type, words, parameters.size(), thread, category.bits, name.bits), signature,
          headers.empty() ? nullptr : state_->keep(std::move(headers))};
}

fxt::Status FxtWriter::refuse_arguments(const fxt::ComposedEvent& event, fxt::Signature given) {
  return refuse_event(fxt::Status::wrong_arguments, event, [&]() -> std::string {
    if (!event.valid()) return "it could not be composed, or took an inline reference";
    return "it takes " + text_of(event.signature_) + ", but is given " + text_of(given);
  });
}

fxt::Status FxtWriter::refuse_dangling(const fxt::ComposedEvent& event) {
  return refuse_event(fxt::Status::wrong_arguments, event,
                      [] { return "a reference says inline text, but there is none"; });
}

fxt::Status FxtWriter::refuse_size(const fxt::ComposedEvent& event) {
  return refuse_event(fxt::Status::over_limit, event,
                      [] { return "a text has more than 32000 bytes, or the record more than 4095 words"; });
}

template <typename Why>
fxt::Status FxtWriter::refuse_event(fxt::Status status, const fxt::ComposedEvent& event, Why why) {
  return refuse(status,
                [&] { return Error{.what = "cannot write event", .subject = name_of(event.name()), .why = why()}; });
}

std::string FxtWriter::name_of(fxt::StringRef ref) const {
  return std::string(state_->tables().strings.text_of(ref.bits));
}

}  // namespace rtev
