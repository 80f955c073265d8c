// SPDX-License-Identifier: MIT
#include "unwind/frametable_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "unwind/byte_cursor.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::size_t max_tables = 1u << 16;
constexpr std::size_t max_descriptors = 1u << 20;
constexpr std::size_t max_places = 2u << 20;
constexpr unsigned max_inlined = 64;
constexpr std::size_t max_name = 1024;
constexpr std::uint32_t max_line = (1u << 20) - 1;
/// So many places tell how all are laid out.
constexpr std::size_t sample_size = 20'000;

/// A map of addresses to numbers for one table after the other. Of addresses made to collide it forgets some.
class AddressNumbers {
 public:
  struct Slot {
    std::uint64_t address = 0;
    std::uint32_t number = 0;
  };
  /// Forgets all, and makes room for as many.
  void clear(std::size_t expected) { slots_.assign(std::bit_ceil(std::max<std::size_t>(2 * expected, 64)), {}); }
  /// The slot of an address, or one to put it in.
  Slot& slot(std::uint64_t address) {
    std::size_t index = (address * 0x9e3779b97f4a7c15u) >> 20;
    for (unsigned probe = 0; probe < 32; ++probe, ++index) {
      Slot& slot = slots_[index & (slots_.size() - 1)];
      if (slot.address == address || slot.address == 0) return slot;
    }
    return slots_[index & (slots_.size() - 1)] = {};
  }

 private:
  std::vector<Slot> slots_;
};

struct Descriptor {
  std::uint32_t return_address = 0;
  std::uint16_t frame_data = 0;
  std::uint32_t place = 0;  ///< as in return_places
  std::uint64_t debug = 0;  ///< address of its places, 0 = none
};

/// One level of a place, as the compiler writes it.
struct DebugEntry {
  std::uint32_t first = 0, second = 0;

  bool has_more() const { return (first & 1) != 0; }
  std::uint64_t name(std::uint64_t here) const { return here + (first & 0x3fffffc); }
  /// A line, or a column, was too great for the short form. Only OCaml 5.2 and newer have two forms.
  bool is_wide() const { return (second >> 31) != 0; }
};

class Reader {
 public:
  Reader(const FrametableSource& source, StringPool& strings, WorkBudget& budget)
      : source_(source), strings_(strings), budget_(budget) {}

  FrameTables read() {
    std::vector<std::span<Descriptor>> runs;
    std::vector<std::size_t> ends;
    for (const std::uint64_t table : tables()) {
      read_table(table);
      ends.push_back(descriptors_.size());
    }
    wide_ = source_.has_wide_places || detect_wide_places();
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const auto run = std::span{descriptors_}.subspan(begin, end - begin);
      begin = end;
      if (run.empty()) continue;
      // Only the places of one table share addresses.
      place_numbers_.clear(run.size());
      name_numbers_.clear(run.size());
      for (Descriptor& each : run) add_places(each);
      if (!budget_.has_left_now()) return {};
      sort(run);
      runs.push_back(run);
    }
    std::ranges::stable_sort(runs, {}, [](std::span<Descriptor> run) { return run.front().return_address; });
    return gather(runs);
  }

 private:
  /// The compiler writes descriptors in the order of addresses, from the last one to the first.
  static void sort(std::span<Descriptor> run) {
    if (run.front().return_address > run.back().return_address) std::ranges::reverse(run);
    if (!std::ranges::is_sorted(run, {}, &Descriptor::return_address))
      std::ranges::stable_sort(run, {}, &Descriptor::return_address);
  }

  /// Units rarely lie among each other.
  FrameTables gather(const std::vector<std::span<Descriptor>>& runs) {
    std::vector<Descriptor> mixed;
    std::vector<std::span<Descriptor>> sorted = runs;
    const bool is_mixed = std::ranges::adjacent_find(runs, [](std::span<Descriptor> one, std::span<Descriptor> next) {
                            return one.back().return_address >= next.front().return_address;
                          }) != runs.end();
    if (is_mixed) {
      mixed = descriptors_;
      std::ranges::stable_sort(mixed, {}, &Descriptor::return_address);
      sorted = {mixed};
    }
    tables_.returns.reserve(descriptors_.size());
    tables_.frame_data.reserve(descriptors_.size());
    tables_.return_places.reserve(descriptors_.size());
    for (const std::span<Descriptor> run : sorted) {
      for (const Descriptor& each : run) {
        if (!tables_.returns.empty() && tables_.returns.back() == each.return_address) continue;
        tables_.returns.push_back(each.return_address);
        tables_.frame_data.push_back(each.frame_data);
        tables_.return_places.push_back(each.place);
      }
    }
    return std::move(tables_);
  }

  bool is_code(std::uint64_t address) const {
    return std::ranges::any_of(source_.code, [&](const AddressRange& range) { return range.contains(address); });
  }

  std::vector<std::uint64_t> tables() const {
    std::vector<std::uint64_t> found(source_.units.begin(), source_.units.end());
    std::uint64_t list = source_.list != 0 ? source_.list : find_list();
    for (; list != 0 && found.size() < max_tables; list += 8) {
      const auto table = source_.data.load<std::uint64_t>(list);
      if (!table || *table == 0) break;
      found.push_back(*table);
    }
    return found;
  }

  bool is_plausible_table(std::uint64_t address) const {
    if (address % 8 != 0) return false;
    const auto count = source_.data.load<std::uint64_t>(address);
    if (!count || *count > max_descriptors) return false;
    if (*count == 0) return true;
    const auto first = source_.data.load<std::uint64_t>(address + 8);
    return first && is_code(*first);
  }

  /// The table of the runtime itself has two descriptors, both of returns to C. Nothing else looks like that.
  std::optional<std::uint64_t> find_system_table(const DataImage::Block& block) const {
    constexpr std::size_t size = 36;
    for (std::size_t at = -block.address % 8; at + size <= block.bytes.size(); at += 8) {
      const std::byte* const bytes = block.bytes.data() + at;
      const auto word = [&](std::size_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes + offset, sizeof value);
        return value;
      };
      if (word(0) != 2 || word(16) != return_to_c) continue;
      std::uint32_t last = 0;
      std::memcpy(&last, bytes + 32, sizeof last);
      if (last == return_to_c && is_code(word(8)) && is_code(word(24))) return block.address + at;
    }
    return std::nullopt;
  }

  /// The list of all tables: the runtime's own stands in it, where depends on the version.
  std::uint64_t find_list() const {
    for (const DataImage::Block& block : source_.data.blocks()) {
      const auto system = find_system_table(block);
      if (!system) continue;
      for (const DataImage::Block& other : source_.data.blocks()) {
        for (std::size_t at = -other.address % 8; at + 8 <= other.bytes.size(); at += 8) {
          std::uint64_t word = 0;
          std::memcpy(&word, other.bytes.data() + at, sizeof word);
          if (word != *system) continue;
          std::uint64_t begin = other.address + at;
          for (std::size_t steps = 0; steps < max_tables && begin >= other.address + 8; ++steps, begin -= 8) {
            const auto before = source_.data.load<std::uint64_t>(begin - 8);
            if (!before || !is_plausible_table(*before)) break;
          }
          return begin;
        }
      }
      return 0;
    }
    return 0;
  }

  void read_table(std::uint64_t address) {
    if (address % 8 != 0) return;
    const auto bytes = source_.data.from(address);
    ByteCursor cursor(bytes);
    const auto count = cursor.take<std::uint64_t>();
    const auto align = [&](std::size_t to) { cursor.take_bytes(-cursor.position() % to); };
    for (std::uint64_t i = 0; i < count && descriptors_.size() < max_descriptors && budget_.has_left(); ++i) {
      align(8);
      const auto return_address = cursor.take<std::uint64_t>();
      const auto data = cursor.take<std::uint16_t>();
      const auto live = cursor.take<std::uint16_t>();
      if (!cursor.ok() || !is_code(return_address) || return_address - source_.link_base >= UINT32_MAX) return;
      Descriptor descriptor{.return_address = static_cast<std::uint32_t>(return_address - source_.link_base),
                            .frame_data = data};
      if (data != return_to_c) {
        cursor.take_bytes(2 * std::uint64_t{live});
        unsigned offsets = 1;
        if ((data & 2) != 0) {
          offsets = cursor.take<std::uint8_t>();
          cursor.take_bytes(offsets);
        }
        if ((data & 1) != 0) {
          align(4);
          for (unsigned each = 0; each < ((data & 2) != 0 ? offsets : 1); ++each) {
            const std::uint64_t here = address + cursor.position();
            const auto offset = cursor.take<std::uint32_t>();
            if (offset != 0 && descriptor.debug == 0) descriptor.debug = here + offset;
          }
        }
      }
      if (!cursor.ok()) return;
      descriptors_.push_back(descriptor);
    }
  }

  std::optional<DebugEntry> entry_at(std::uint64_t address) const { return source_.data.load<DebugEntry>(address); }

  /// The name of the function follows the offset of the file's name, and what else the form has.
  PlaceName name_of(std::uint64_t address, bool is_wide) {
    const auto file_offset = source_.data.load<std::int32_t>(address);
    if (!file_offset) return {};
    const std::uint64_t file = address + static_cast<std::uint64_t>(std::int64_t{*file_offset});
    return {.function = strings_.add(source_.data.text(address + (is_wide ? 12 : 4), max_name)),
            .file = strings_.add(source_.data.text(file, max_name))};
  }

  /// OCaml 5.0 and 5.1 wrote lines another way. Read in the new way, most of them are line 0.
  bool detect_wide_places() const {
    std::size_t seen = 0, zeros = 0;
    for (const Descriptor& each : descriptors_) {
      if (each.debug == 0) continue;
      const auto entry = entry_at(each.debug);
      if (!entry) continue;
      if (entry->is_wide() && is_source_name(entry->name(each.debug) + 12)) return true;
      ++seen;
      zeros += entry->second >> 19 == 0;
      if (seen == sample_size) break;
    }
    return zeros * 8 < seen;
  }
  bool is_source_name(std::uint64_t address) const {
    const std::string_view text = source_.data.text(address, max_name);
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20; });
  }

  void add_places(Descriptor& descriptor) {
    if (descriptor.debug == 0) return;
    auto& known = place_numbers_.slot(descriptor.debug);
    if (known.address == 0) known = {descriptor.debug, add_place(descriptor.debug)};
    descriptor.place = known.number;
  }

  /// Adds a place and those where it was inlined; the index of the first + 1, or 0.
  std::uint32_t add_place(std::uint64_t address) {
    const std::size_t first = tables_.places.size();
    for (unsigned level = 0; level < max_inlined && tables_.places.size() < max_places; ++level, address += 8) {
      if (!budget_.has_left()) break;
      const auto entry = entry_at(address);
      if (!entry) break;
      const bool is_wide = wide_ && entry->is_wide();
      const std::uint64_t name = entry->name(address);
      auto& known = name_numbers_.slot(name);
      if (known.address == 0) {
        known = {name, static_cast<std::uint32_t>(tables_.place_names.size())};
        tables_.place_names.push_back(name_of(name, is_wide));
      }
      const std::uint32_t line = is_wide ? (entry->second >> 12) & 0x7ffff
                                 : wide_ ? entry->second >> 19
                                         : entry->second >> 12;
      tables_.places.push_back({.name = known.number, .line = std::min(line, max_line) | more_places});
      if (!entry->has_more()) break;
    }
    if (tables_.places.size() == first) return 0;
    tables_.places.back().line &= ~more_places;
    return static_cast<std::uint32_t>(first + 1);
  }

  const FrametableSource& source_;
  StringPool& strings_;
  WorkBudget& budget_;
  bool wide_ = true;
  std::vector<Descriptor> descriptors_;
  AddressNumbers place_numbers_, name_numbers_;
  FrameTables tables_;
};

}  // namespace

FrameTables read_frametables(const FrametableSource& source, StringPool& strings, WorkBudget& budget) {
  return Reader(source, strings, budget).read();
}

}  // namespace rtev
