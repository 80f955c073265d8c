// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_packets.hpp"

#include "base/escape.hpp"

namespace rtev::perfetto {
namespace {

void add_name(TextBuffer& interned_data, InternedData table, std::uint64_t id, std::string_view name) {
  Message<InternedData> data{interned_data};
  Message<InternedName> entry{data, table};
  entry.add_number(InternedName::iid, id);
  add_text(entry, InternedName::name, name);
}

}  // namespace

std::string_view shown(std::string_view text, std::string& scratch) {
  if (is_printable(text)) return text;
  scratch = escaped(text);
  return scratch;
}

void PacketWriter::flush(std::uint64_t now_ns) {
  if (packets_.size() == 0 || now_ns - flushed_ns_ < flush_interval_ns_) return;
  flushed_ns_ = now_ns;
  hand_out();
}

void PacketWriter::hand_out() {
  if (packets_.size() == 0) return;
  output_.write(packets_.text());  // an error stays in Output::error(), which the session checks
  packets_.clear();
}

void Names::begin_packet() {
  if (ids_.size() >= max_names || bytes_ >= max_bytes) clear_ = true;
  if (clear_) start_over();
}

void Names::start_over() {
  recent_ = {};
  ids_.clear();
  bytes_ = 0;
  fresh_.clear();
  for (std::size_t i = 0; i < category_names.size(); ++i)
    add_name(fresh_, InternedData::event_categories, i + 1, category_names[i]);
  for (std::size_t i = 0; i < detail_names.size(); ++i)
    add_name(fresh_, InternedData::debug_annotation_names, i + 1, detail_names[i]);
}

std::uint64_t Names::id_of_event(std::string_view name) {
  // Most events have one of few names. To hash an address costs less than to hash a text.
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name.data()));
  auto& recent = recent_[address * 0x9E37'79B9'7F4A'7C15 >> (64 - recent_bits)];
  if (recent.second == 0 || recent.first != name) {
    const auto [known, is_new] = ids_.try_emplace(std::string(name), ids_.size() + 1);
    recent = *known;
    if (is_new) {
      bytes_ += name.size();
      add_name(fresh_, InternedData::event_names, recent.second, name);
    }
  }
  return recent.second;
}

void Names::end_packet(Packet& packet) {
  packet.add_number(TracePacket::sequence_flags, clear_ ? state_cleared | needs_state : needs_state);
  if (first_) packet.add_number(TracePacket::first_packet_on_sequence, true);
  if (fresh_.size() > 0) packet.add_bytes(TracePacket::interned_data, fresh_.text());
  fresh_.clear();
  first_ = clear_ = false;
}

}  // namespace rtev::perfetto
