// SPDX-License-Identifier: MIT
#include "rtev/ring_writer.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "ring/writer_state.hpp"

namespace rtev {

std::string_view to_string(WriteStatus status) {
  switch (status) {
    case WriteStatus::written:
      return "written";
    case WriteStatus::off:
      return "runtime events are off";
    case WriteStatus::too_large:
      return "the event is too large";
    case WriteStatus::wrong_type:
      return "the event was registered with another type";
    case WriteStatus::bad_id:
      return "no such event";
  }
  return "unknown";
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

WriteStatus DomainWriter::lifecycle(Lifecycle what, std::int64_t datum) {
  if (what <= Lifecycle::ring_resume) return WriteStatus::bad_id;
  const auto word = static_cast<std::uint64_t>(datum);
  return runtime(message::lifecycle, what, {&word, 1});
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
  // As in an OCaml string, the last byte says how many of the last word's bytes are unused, itself not counted.
  std::array<std::uint64_t, max_custom_bytes / 8 + 1> words;
  const std::size_t size = bytes.size() / 8 + 1;
  words[size - 1] = 0;
  auto* const raw = reinterpret_cast<std::byte*>(words.data());
  if (!bytes.empty()) std::memcpy(raw, bytes.data(), bytes.size());
  raw[size * 8 - 1] = static_cast<std::byte>(size * 8 - 1 - bytes.size());
  return user(event, UserType::custom, message::custom, std::span(words).first(size));
}

Result<RingWriter> RingWriter::create(const Options& options) {
  const auto refuse = [](std::string why, std::string hint) {
    return std::unexpected(Error{.what = "cannot make runtime events", .why = std::move(why), .hint = std::move(hint)});
  };
  if (options.domains < 1 || options.domains > max_rings)
    return refuse(std::to_string(options.domains) + " domains", "between 1 and 4096");
  if (options.log2_words < 6 || options.log2_words > 24)
    return refuse("rings of 2^" + std::to_string(options.log2_words) + " words",
                  "between 6 and 24; OCAMLRUNPARAM may ask for it by e=");
  // The file is to be found again when the program has gone to another directory.
  std::error_code error;
  const auto directory = options.directory.empty() ? std::filesystem::current_path(error)
                                                   : std::filesystem::absolute(options.directory, error);
  if (error) return errno_error(error.value(), "cannot make runtime events", options.directory);

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
