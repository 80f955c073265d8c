// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_packets.hpp"

#include "base/escape.hpp"

namespace rtev::perfetto {
namespace {

void add_name(std::string& interned_data, InternedData table, std::uint64_t id, std::string_view name) {
  Message<InternedData> data{interned_data};
  Message<InternedName> entry{data, table};
  entry.add_uint64(InternedName::iid, id);
  add_text(entry, InternedName::name, name);
}

}  // namespace

std::string_view shown(std::string_view text, std::string& scratch) {
  if (is_printable(text)) return text;
  scratch = escaped(text);
  return scratch;
}

void PacketStream::flush(std::uint64_t now_ns) {
  if (packets_.empty() || now_ns - flushed_ns_ < flush_interval_ns_) return;
  flushed_ns_ = now_ns;
  hand_out();
}

void PacketStream::hand_out() {
  if (packets_.empty()) return;
  output_.write(packets_);  // an error stays in Output::error(), which the session checks
  packets_.clear();
}

void Names::begin_packet() {
  if (ids_.size() >= max_names || bytes_ >= max_bytes) clear_ = true;
  if (clear_) start_over();
}

void Names::start_over() {
  ids_.clear();
  bytes_ = 0;
  fresh_.clear();
  for (std::size_t i = 0; i < category_names.size(); ++i)
    add_name(fresh_, InternedData::event_categories, i + 1, category_names[i]);
  for (std::size_t i = 0; i < detail_names.size(); ++i)
    add_name(fresh_, InternedData::debug_annotation_names, i + 1, detail_names[i]);
}

std::uint64_t Names::id_of_event(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
  const std::uint64_t id = ids_.size() + 1;
  ids_.emplace(name, id);
  bytes_ += name.size();
  add_name(fresh_, InternedData::event_names, id, name);
  return id;
}

void Names::end_packet(Packet& packet) {
  packet.add_uint32(TracePacket::sequence_flags, clear_ ? state_cleared | needs_state : needs_state);
  if (first_) packet.add_bool(TracePacket::first_packet_on_sequence, true);
  if (!fresh_.empty()) packet.add_bytes(TracePacket::interned_data, fresh_);
  fresh_.clear();
  first_ = clear_ = false;
}

}  // namespace rtev::perfetto
