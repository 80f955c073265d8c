// SPDX-License-Identifier: MIT
// FxtWriter's buffer, its failures and its providers.
#include <string>
#include <utility>

#include "fxt/record_encoder.hpp"
#include "fxt/writer_state.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t metadata_header(fxt::MetadataType type, std::size_t words, std::uint32_t provider) {
  return fxt::record_header(fxt::RecordType::metadata, words) | static_cast<std::uint64_t>(type) << 16 |
         std::uint64_t{provider} << 20;
}

std::optional<Error> wrong_options(const FxtWriter::Options& options) {
  const auto error = [](std::string why) {
    return Error{.what = "cannot write a trace", .why = "the options are wrong: " + std::move(why)};
  };
  if (options.fixed_strings + options.temporary_strings > fxt::max_string_slot)
    return error("more than 32767 fixed and temporary strings");
  if (options.provider_name.size() > fxt::max_provider_name_bytes)
    return error("a provider's name of more than 255 bytes");
  if (options.ticks_per_second == 0) return error("no ticks in a second");
  return {};
}

}  // namespace

FxtWriter::FxtWriter(FxtDestination& destination, const Options& options)
    : destination_(destination), state_(std::make_unique<fxt::WriterState>(options)) {
  // There are always tables, so that nothing else has to ask.
  state_->current = state_->providers.try_emplace(options.provider_id, options).first;
  if (auto wrong = wrong_options(options)) {
    fail(std::move(*wrong));
    return;
  }
  if (!reserve(1)) return;
  *next_++ = fxt::magic;
  introduce_provider(options.provider_id, options.provider_name, options.ticks_per_second);
}

FxtWriter::~FxtWriter() {
  flush();
}

fxt::Status FxtWriter::flush() {
  if (!hand_over()) return fxt::Status::failed;
  if (auto flushed = destination_.flush(); !flushed) {
    fail(std::move(flushed.error()));
    return fxt::Status::failed;
  }
  return fxt::Status::written;
}

bool FxtWriter::refill(std::size_t words) {
  if (!hand_over()) return false;
  auto buffer = destination_.buffer(words);
  if (!buffer) {
    fail(std::move(buffer.error()));
    return false;
  }
  if (buffer->size() < words) {
    fail({.what = "cannot write a trace",
          .why = "its destination has buffers of " + std::to_string(buffer->size()) + " words for a record of " +
                 std::to_string(words)});
    return false;
  }
  begin_ = next_ = buffer->data();
  end_ = begin_ + buffer->size();
  return true;
}

bool FxtWriter::hand_over() {
  if (failed_) return false;
  const std::span<const std::uint64_t> records(begin_, next_);
  begin_ = next_ = end_ = nullptr;
  if (records.empty()) return true;
  auto accepted = destination_.accept(records);
  if (!accepted) fail(std::move(accepted.error()));
  return !failed_;
}

void FxtWriter::fail(Error error) {
  begin_ = next_ = end_ = nullptr;
  failed_ = true;
  error_ = std::move(error);
}

fxt::Status FxtWriter::add_provider(std::uint32_t id, std::string_view name, std::uint64_t ticks_per_second) {
  const auto refuse_it = [&](std::string_view why) {
    return refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot add provider", .subject = std::to_string(id), .why = std::string(why)};
    });
  };
  if (failed_) return fxt::Status::failed;
  if (name.size() > fxt::max_provider_name_bytes) return refuse_it("its name has more than 255 bytes");
  if (ticks_per_second == 0) return refuse_it("no ticks in a second");
  // Viewers would begin its tables anew.
  const auto [provider, is_new] = state_->providers.try_emplace(id, state_->options);
  if (!is_new) return refuse_it("the id is taken");
  state_->current = provider;
  return introduce_provider(id, name, ticks_per_second);
}

fxt::Status FxtWriter::introduce_provider(std::uint32_t id, std::string_view name, std::uint64_t ticks_per_second) {
  const std::size_t info_words = 1 + fxt::stream_words(name.size());
  constexpr std::size_t initialization_words = 2;
  if (!reserve(info_words)) return fxt::Status::failed;
  *next_++ = metadata_header(fxt::MetadataType::provider_info, info_words, id) | std::uint64_t{name.size()} << 52;
  next_ = fxt::encode::put_stream(next_, name.data(), name.size());
  if (!reserve(initialization_words)) return fxt::Status::failed;
  *next_++ = fxt::record_header(fxt::RecordType::initialization, initialization_words);
  *next_++ = ticks_per_second;
  return fxt::Status::written;
}

fxt::Status FxtWriter::select_provider(std::uint32_t id) {
  const auto provider = state_->providers.find(id);
  if (provider == state_->providers.end()) {
    return refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot select provider", .subject = std::to_string(id), .why = "it was not added"};
    });
  }
  if (!reserve(1)) return fxt::Status::failed;
  *next_++ = metadata_header(fxt::MetadataType::provider_section, 1, id);
  state_->current = provider;
  return fxt::Status::written;
}

fxt::Status FxtWriter::buffer_full() {
  if (!reserve(1)) return fxt::Status::failed;
  *next_++ = metadata_header(fxt::MetadataType::provider_event, 1, state_->current->first) |
             static_cast<std::uint64_t>(fxt::ProviderEvent::buffer_full) << 52;
  return fxt::Status::written;
}

}  // namespace rtev
