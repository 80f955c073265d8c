// SPDX-License-Identifier: MIT
#include "rtev/ring_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/enum_names.hpp"
#include "ring/writer_state.hpp"

namespace rtev {
namespace {

/// The value of `letter=` in a list such as "v=0x400,e=20"; the last one counts, as for OCaml.
std::uint64_t parameter(std::string_view list, char letter, std::uint64_t fallback) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (entry.size() < 3 || entry[0] != letter || entry[1] != '=') continue;
    std::string_view digits = entry.substr(2);
    const int base = digits.starts_with("0x") ? 16 : 10;
    if (base == 16) digits.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    const std::string_view unit(rest, digits.data() + digits.size());
    const unsigned shift = unit == "k" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    if (error == std::errc::invalid_argument || (shift == 0 && !unit.empty())) continue;
    if (error == std::errc::result_out_of_range) number = UINT64_MAX;
    fallback = number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
  }
  return fallback;
}

}  // namespace

std::string_view to_string(WriteStatus status) {
  static constexpr std::string_view names[] = {"written", "runtime events are off", "the event is too large",
                                               "the event was registered with another type", "no such event"};
  return name_at(names, status);
}

WriteStatus DomainWriter::runtime(unsigned type, std::uint64_t id, std::span<const std::uint64_t> payload) {
  if (!state_->is_open(index_)) return WriteStatus::off;
  if (id > message::max_id) return WriteStatus::bad_id;
  return append(message::first_word(2 + payload.size(), false, type, id), payload);
}

WriteStatus DomainWriter::user(UserEvent event, UserType type, unsigned message_type,
                               std::span<const std::uint64_t> payload) {
  if (!state_->is_open(index_)) return WriteStatus::off;
  if (event.type != type) return WriteStatus::wrong_type;
  if (!state_->is_registered(event.id)) return WriteStatus::bad_id;
  return append(message::first_word(2 + payload.size(), true, message_type, event.id), payload);
}

WriteStatus DomainWriter::append(std::uint64_t first_word, std::span<const std::uint64_t> payload) {
  return state_->producer(index_).append(first_word, state_->now(), payload) ? WriteStatus::written
                                                                             : WriteStatus::too_large;
}

WriteStatus DomainWriter::begin(Phase phase) {
  return runtime(message::begin, static_cast<std::uint64_t>(phase), {});
}

WriteStatus DomainWriter::end(Phase phase) {
  return runtime(message::end, static_cast<std::uint64_t>(phase), {});
}

WriteStatus DomainWriter::counter(Counter counter, std::uint64_t value) {
  return runtime(message::counter, static_cast<std::uint64_t>(counter), {&value, 1});
}

WriteStatus DomainWriter::lifecycle(Lifecycle what, std::int64_t value) {
  if (what <= Lifecycle::ring_resume) return WriteStatus::bad_id;
  const auto word = static_cast<std::uint64_t>(value);
  return runtime(message::lifecycle, static_cast<std::uint16_t>(what), {&word, 1});
}

WriteStatus DomainWriter::alloc(std::span<const std::uint64_t, alloc_bucket_count> buckets) {
  return runtime(message::alloc, 0, buckets);
}

WriteStatus DomainWriter::begin(UserEvent event) {
  return user(event, UserType::span, message::span_begin, {});
}

WriteStatus DomainWriter::end(UserEvent event) {
  return user(event, UserType::span, message::span_end, {});
}

WriteStatus DomainWriter::write(UserEvent event) {
  return user(event, UserType::unit, message::unit, {});
}

WriteStatus DomainWriter::write(UserEvent event, std::int32_t value) {
  const auto word = static_cast<std::uint64_t>(std::int64_t{value});
  return user(event, UserType::integer, message::integer, {&word, 1});
}

WriteStatus DomainWriter::write(UserEvent event, std::span<const std::byte> bytes) {
  if (bytes.size() > max_custom_bytes) return WriteStatus::too_large;
  // As in an OCaml string, the last byte is the number of unused bytes before it in the last word.
  std::array<std::uint64_t, max_custom_bytes / 8 + 1> words;
  const std::size_t size = bytes.size() / 8 + 1;
  words[size - 1] = 0;
  auto* const raw = reinterpret_cast<std::byte*>(words.data());
  if (!bytes.empty()) std::memcpy(raw, bytes.data(), bytes.size());
  raw[size * 8 - 1] = static_cast<std::byte>(size * 8 - 1 - bytes.size());
  return user(event, UserType::custom, message::custom, std::span(words).first(size));
}

RingWriter::Options RingWriter::Options::from_environment() {
  Options options;
  options.start = ::secure_getenv("OCAML_RUNTIME_EVENTS_START") != nullptr;
  options.preserve = ::secure_getenv("OCAML_RUNTIME_EVENTS_PRESERVE") != nullptr;
  if (const char* const directory = ::secure_getenv("OCAML_RUNTIME_EVENTS_DIR")) options.directory = directory;
  const char* list = ::secure_getenv("OCAMLRUNPARAM");
  if (list == nullptr) list = ::secure_getenv("CAMLRUNPARAM");
  if (list == nullptr) return options;
  // A value that does not fit is out of range, and create() reports it. The program sets the number of domains (d=).
  options.log2_words =
      static_cast<unsigned>(std::min<std::uint64_t>(parameter(list, 'e', options.log2_words), UINT32_MAX));
  return options;
}

Result<RingWriter> RingWriter::create(const Options& options) {
  const auto refuse = [](std::string why, std::string hint) {
    return std::unexpected(
        Error{.what = "cannot start runtime events", .why = std::move(why), .hint = std::move(hint)});
  };
  if (options.domains < 1 || options.domains > max_domains)
    return refuse(std::to_string(options.domains) + " domains", "use 1 to 4096");
  if (options.log2_words < 6 || options.log2_words > 24)
    return refuse("rings of 2^" + std::to_string(options.log2_words) + " words",
                  "use 6 to 24; OCAMLRUNPARAM may set it by e=");
  // Absolute, because the program may change its working directory.
  std::error_code error;
  const auto directory = options.directory.empty() ? std::filesystem::current_path(error)
                                                   : std::filesystem::absolute(options.directory, error);
  if (error) return errno_error(error.value(), "cannot start runtime events", options.directory);

  RingWriter writer(std::make_unique<WriterState>(options, directory));
  if (options.start) {
    if (auto started = writer.start(); !started) return std::unexpected(std::move(started.error()));
  }
  return writer;
}

RingWriter::RingWriter(std::unique_ptr<WriterState> state) : state_(std::move(state)) {}
RingWriter::RingWriter(RingWriter&&) noexcept = default;
RingWriter& RingWriter::operator=(RingWriter&&) noexcept = default;
RingWriter::~RingWriter() = default;

Result<void> RingWriter::start(std::uint32_t domain) {
  return state_->start(checked(domain));
}

void RingWriter::pause(std::uint32_t domain) {
  state_->pause(checked(domain));
}

void RingWriter::resume(std::uint32_t domain) {
  state_->resume(checked(domain));
}

void RingWriter::stop(std::uint32_t domain) {
  state_->stop(checked(domain));
}

Result<UserEvent> RingWriter::register_event(std::string_view name, UserType type) {
  return state_->register_event(name, type);
}

DomainWriter RingWriter::domain(std::uint32_t index) {
  return {*state_, checked(index)};
}

std::uint32_t RingWriter::domains() const {
  return state_->domains();
}

std::string RingWriter::path() const {
  return state_->path();
}

std::uint64_t RingWriter::words_written(std::uint32_t domain) const {
  return state_->producer(checked(domain)).tail();
}

std::uint32_t RingWriter::checked(std::uint32_t domain) const {
  if (domain >= domains()) throw std::out_of_range("no domain " + std::to_string(domain) + " in the ring writer");
  return domain;
}

}  // namespace rtev
