// SPDX-License-Identifier: MIT
#include "recording/decoders.hpp"

#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/chrome/chrome_recording.hpp"
#include "formats/fxt/embedded.hpp"
#include "formats/perfetto/perfetto_fields.hpp"
#include "recording/jsonl_reader.hpp"

namespace rtev {
namespace {

/// Longer lines and packets are none of ours.
constexpr std::size_t most_piece_bytes = std::size_t{64} << 20;

std::unexpected<Error> bad_trace(std::string why) {
  return std::unexpected(Error{.what = "bad trace", .why = std::move(why)});
}

class FxtDecoder final : public Decoder {
 public:
  explicit FxtDecoder(Sink& sink) : replay_(sink) {}
  Result<void> feed(std::string_view bytes) override { return replay_.feed(std::as_bytes(std::span(bytes))); }
  Result<Replay::End> finish() override { return replay_.finish(); }

 private:
  Replay replay_;
};

class JsonlDecoder final : public Decoder {
 public:
  explicit JsonlDecoder(Sink& sink) : reader_(sink) {}
  Result<void> feed(std::string_view bytes) override { return reader_.feed(bytes); }
  Result<Replay::End> finish() override { return reader_.finish(); }

 private:
  JsonlReader reader_;
};

/// Of traces for viewers only the recording is read that they carry along.
class CarriedRecording {
 public:
  CarriedRecording(Sink& sink, std::string_view format) : format_(format), replay_(sink) {}

  Result<void> add(std::string_view chunk) {
    is_there_ = true;
    const auto bytes = inflate_chunk(std::as_bytes(std::span(chunk)));
    if (!bytes) return std::unexpected(bytes.error());
    return replay_.feed(*bytes);
  }
  Result<Replay::End> finish() {
    if (is_there_) return replay_.finish();
    return std::unexpected(Error{.what = "cannot read the stream of",
                                 .why = "this " + std::string(format_) + " does not carry the recording it was made of",
                                 .hint = "only traces that rtev-bpf wrote do; convert the .fxt or .jsonl itself"});
  }

 private:
  std::string_view format_;
  Replay replay_;
  bool is_there_ = false;
};

class ChromeDecoder final : public Decoder {
 public:
  explicit ChromeDecoder(Sink& sink) : recording_(sink, "Chrome trace") {}

  Result<void> feed(std::string_view bytes) override {
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      rest_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (auto taken = line(std::exchange(rest_, {})); !taken) return taken;
    }
    rest_ += bytes;
    if (rest_.size() > most_piece_bytes) return bad_trace("a line has no end");
    return {};
  }
  Result<Replay::End> finish() override { return recording_.finish(); }

 private:
  Result<void> line(std::string_view text) {
    const auto chunk = recording_chunk(text);
    return chunk ? recording_.add(*chunk) : Result<void>();
  }

  CarriedRecording recording_;
  std::string rest_;
};

class PerfettoDecoder final : public Decoder {
 public:
  explicit PerfettoDecoder(Sink& sink) : recording_(sink, "Perfetto trace") {}

  Result<void> feed(std::string_view bytes) override {
    rest_ += bytes;
    std::string_view left = rest_;
    while (true) {
      const auto packet = next_packet(left);
      if (!packet) return std::unexpected(packet.error());
      if (!*packet) break;
      if (auto taken = take(**packet); !taken) return taken;
    }
    rest_.erase(0, rest_.size() - left.size());
    return {};
  }
  Result<Replay::End> finish() override { return recording_.finish(); }

 private:
  /// The next whole packet, taken from the front; nothing if it is not all there.
  static Result<std::optional<std::string_view>> next_packet(std::string_view& left) {
    constexpr char packet_tag = '\n';
    if (left.empty()) return std::nullopt;
    if (left.front() != packet_tag) return bad_trace("something other than a packet");
    std::size_t length = 0, at = 1;
    for (unsigned shift = 0;; shift += 7, ++at) {
      if (at == left.size()) return std::nullopt;
      if (shift > 28) return bad_trace("a packet of no sensible length");
      length |= static_cast<std::size_t>(static_cast<unsigned char>(left[at]) & 0x7f) << shift;
      if ((static_cast<unsigned char>(left[at]) & 0x80) == 0) break;
    }
    if (length > most_piece_bytes) return bad_trace("a packet of no sensible length");
    if (left.size() - at - 1 < length) return std::nullopt;
    const std::string_view packet = left.substr(at + 1, length);
    left.remove_prefix(at + 1 + length);
    return packet;
  }

  Result<void> take(std::string_view packet) {
    try {
      protozero::pbf_reader fields(packet.data(), packet.size());
      while (fields.next(static_cast<std::uint32_t>(perfetto::TracePacket::recording),
                         protozero::pbf_wire_type::length_delimited)) {
        const protozero::data_view chunk = fields.get_view();
        if (auto added = recording_.add({chunk.data(), chunk.size()}); !added) return added;
      }
    } catch (const protozero::exception& error) {
      return bad_trace(std::string("a packet that is none: ") + error.what());
    }
    return {};
  }

  CarriedRecording recording_;
  std::string rest_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(RecordingFormat format, Sink& sink) {
  switch (format) {
    case RecordingFormat::fxt:
      break;
    case RecordingFormat::jsonl:
      return std::make_unique<JsonlDecoder>(sink);
    case RecordingFormat::chrome:
      return std::make_unique<ChromeDecoder>(sink);
    case RecordingFormat::perfetto:
      return std::make_unique<PerfettoDecoder>(sink);
  }
  return std::make_unique<FxtDecoder>(sink);
}

}  // namespace rtev
