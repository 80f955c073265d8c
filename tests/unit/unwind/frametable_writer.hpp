// SPDX-License-Identifier: MIT
// Writes OCaml's frametables as its compilers do.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "unit/unwind/object_writer.hpp"

namespace rtev::test {

struct OCamlPlace {
  std::string function, file;
  std::uint32_t line = 0;
  bool wide = false;  ///< in the long form of OCaml 5.2 and newer
};

struct OCamlCall {
  std::uint64_t return_address = 0;
  unsigned frame_bytes = 16;
  std::vector<OCamlPlace> places{};  ///< innermost first
  unsigned live = 1;                 ///< values in the frame
  unsigned allocations = 0;          ///< blocks that are allocated here, if this is no call
};

/// Data that begins with caml_frametable, at ObjectShape::data_address.
class FrametableWriter {
 public:
  static constexpr std::uint64_t address = ObjectShape::data_address;

  explicit FrametableWriter(bool wide_places = true) : wide_places_(wide_places) {}

  void unit(std::vector<OCamlCall> calls) { units_.push_back(std::move(calls)); }
  /// The runtime's own table, of returns to C.
  void runtime(std::uint64_t first, std::uint64_t second) {
    units_.push_back(
        {{.return_address = first, .frame_bytes = 0xffff}, {.return_address = second, .frame_bytes = 0xffff}});
  }
  std::string bytes() const {
    ByteWriter out;
    for (std::size_t i = 0; i <= units_.size(); ++i) out.u64(0);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      detail::put(out.bytes, 8 * i, address + out.size());
      table(out, units_[i]);
    }
    return out.bytes;
  }

 private:
  void table(ByteWriter& out, const std::vector<OCamlCall>& calls) const {
    struct Patch {
      std::size_t at;
      const OCamlCall* call;
    };
    std::vector<Patch> patches;
    out.u64(calls.size());
    for (const OCamlCall& call : calls) {
      const bool returns_to_c = call.frame_bytes == 0xffff;
      const bool has_places = !call.places.empty();
      const unsigned data = call.frame_bytes | (has_places ? 1 : 0) | (call.allocations != 0 ? 2 : 0);
      out.u64(call.return_address).u16(returns_to_c ? 0xffff : data).u16(returns_to_c ? 0 : call.live);
      if (!returns_to_c) {
        for (unsigned i = 0; i < call.live; ++i) out.u16(8 * i);
        if (call.allocations != 0) out.u8(call.allocations).bytes.append(call.allocations, '\1');
        if (has_places) {
          out.align(4);
          patches.push_back({out.size(), &call});
          for (unsigned i = 0; i < std::max(call.allocations, 1u); ++i) out.u32(0);
        }
      }
      out.align(8);
    }
    for (const Patch& patch : patches) {
      detail::put(out.bytes, patch.at, static_cast<std::uint32_t>(out.size() - patch.at));
      places(out, patch.call->places);
    }
    out.align(8);
  }

  void places(ByteWriter& out, const std::vector<OCamlPlace>& places) const {
    const std::size_t begin = out.size();
    for (std::size_t i = 0; i < places.size(); ++i) out.u64(0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const OCamlPlace& place = places[i];
      const std::size_t here = begin + 8 * i;
      const auto name = static_cast<std::uint32_t>(out.size() - here);
      const std::uint32_t more = i + 1 < places.size() ? 1 : 0;
      const std::uint32_t line = !wide_places_ ? place.line << 12
                                 : place.wide  ? 1u << 31 | place.line << 12
                                               : place.line << 19;
      detail::put(out.bytes, here, name | more);
      detail::put(out.bytes, here + 4, line);
      const std::size_t file = out.size();
      out.u32(0);
      if (place.wide) out.u64(0);
      out.text(place.function);
      detail::put(out.bytes, file, static_cast<std::int32_t>(out.size() - file));
      out.text(place.file).align(4);
    }
  }

  bool wide_places_;
  std::vector<std::vector<OCamlCall>> units_;
};

}  // namespace rtev::test
