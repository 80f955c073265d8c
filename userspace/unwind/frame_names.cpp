// SPDX-License-Identifier: MIT
#include "unwind/frame_names.hpp"

#include <optional>
#include <utility>

#include "base/program_names.hpp"
#include "unwind/ocaml_names.hpp"

namespace rtev {
namespace {

/// Calls of a function that are looked at for its name. 68 % of functions have one with a name.
constexpr int max_calls = 64;

NamedFrame named_place(const SourcePlace& place, bool is_inlined, std::uint32_t address) {
  return {.kind = NamedFrame::Kind::ocaml,
          .is_inlined = is_inlined,
          .function = readable_definition(place.function),
          .file = std::string(place.file),
          .line = place.line,
          .address = address};
}

/// OCaml code around an address by what the calls in it say of the function that contains them.
std::optional<NamedFrame> function_by_calls(const ObjectTables& tables, std::uint32_t address) {
  const object_tables_format::CodeExtent function = tables.function_at(address);
  std::optional<NamedFrame> found;
  std::uint32_t from = function.begin;
  for (int i = 0; i < max_calls && from < function.end; ++i) {
    const auto call = tables.call_from(from);
    // A call can be the last instruction: then it returns to what follows the function.
    if (!call || call->return_address > function.end || call->returns_to_c()) break;
    if (call->return_address > function.begin) {
      if (!found) found = NamedFrame{.kind = NamedFrame::Kind::ocaml};
      std::optional<SourcePlace> outermost;
      tables.for_each_place(*call, [&](const SourcePlace& place, bool) { outermost = place; });
      if (outermost && !outermost->function.empty()) {
        found->function = readable_definition(outermost->function);
        found->file = outermost->file;
        return found;
      }
    }
    from = call->return_address + 1;
  }
  return found;
}

NamedFrame function_around(const ObjectTables& tables, std::uint32_t address) {
  NamedFrame frame;
  if (tables.has_ocaml_code())
    if (auto function = function_by_calls(tables, address)) frame = std::move(*function);
  frame.address = address;
  if (const auto symbol = tables.symbol_at(address); symbol && !symbol->name.empty()) {
    const bool is_ocaml = frame.kind == NamedFrame::Kind::ocaml || is_ocaml_symbol(symbol->name);
    frame.kind = is_ocaml ? NamedFrame::Kind::ocaml : NamedFrame::Kind::c;
    if (frame.function.empty()) frame.function = readable_symbol(symbol->name);
    frame.address = symbol->begin;
  } else if (const auto function = tables.function_at(address); function.begin != 0) {
    frame.address = function.begin;
  }
  return frame;
}

/// The file of an OCaml function: as calls in it say, or that of its first instruction, which is never of inlined code.
std::string own_file(const NamedFrame& frame, const ObjectTables& tables, std::uint32_t address) {
  if (!frame.file.empty() || frame.kind != NamedFrame::Kind::ocaml) return frame.file;
  std::uint32_t begin = tables.function_at(address).begin;
  if (begin == 0)
    if (const auto symbol = tables.symbol_at(address)) begin = symbol->begin;
  const auto line = begin != 0 ? tables.line_at(begin) : std::nullopt;
  return line ? std::string(line->file) : std::string();
}

/// By the debug information. Returns the frame of inlined code of another file: of that the line is known, but not the
/// name of the function, nor the line from which it is called.
std::optional<NamedFrame> add_line(NamedFrame& frame, const ObjectTables& tables, std::uint32_t address) {
  const auto line = tables.line_at(address);
  if (!line) return std::nullopt;
  frame.file = own_file(frame, tables, address);
  if (!frame.file.empty() && file_name_of(frame.file) != file_name_of(line->file))
    return NamedFrame{.kind = NamedFrame::Kind::ocaml,
                      .is_inlined = true,
                      .function = std::string(inlined_code),
                      .file = std::string(line->file),
                      .line = line->number,
                      .address = line->begin};
  if (frame.file.empty()) frame.file = line->file;
  frame.line = line->number;
  frame.address = line->begin;
  return std::nullopt;
}

}  // namespace

std::vector<NamedFrame> name_frame(const ObjectTables& tables, std::uint32_t address, bool is_return_address) {
  std::vector<NamedFrame> frames;
  if (is_return_address) {
    const auto call = tables.call_at(address);
    if (call && !call->returns_to_c())
      tables.for_each_place(*call, [&](const SourcePlace& place, bool is_inlined) {
        frames.push_back(named_place(place, is_inlined, address));
      });
    // The symbol names what the compiler did not.
    if (!frames.empty() && !frames.back().function.empty()) return frames;
  }

  const std::uint32_t inside = is_return_address && address != 0 ? address - 1 : address;
  NamedFrame frame = function_around(tables, inside);
  if (frames.empty()) {
    if (auto inlined = add_line(frame, tables, inside)) frames.push_back(std::move(*inlined));
    frames.push_back(std::move(frame));
  } else {
    frames.back().function = std::move(frame.function);
  }
  return frames;
}

}  // namespace rtev
