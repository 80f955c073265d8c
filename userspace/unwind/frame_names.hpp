// SPDX-License-Identifier: MIT
// What to call the frames of a stack: functions and places in the source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/inlined_code.hpp"
#include "unwind/object_tables.hpp"

namespace rtev {

/// A function as a stack shows it. Its texts come from the traced program: they can hold any bytes.
struct NamedFrame {
  enum class Kind : std::uint8_t { ocaml, c, unknown };

  Kind kind = Kind::unknown;
  /// The code of the next frame contains that of this function.
  bool is_inlined = false;
  std::string function{};  ///< "Web.Server.handle", "caml_md5_string"; empty if it is not known
  std::string file{};      ///< as the compiler was given it; empty if it is not known
  std::uint32_t line = 0;  ///< 0 if it is not known
  /// Of the instruction, of the first one of the line, or of the function where no line is known.
  std::uint32_t address = 0;
};

/// The functions whose code is at an address of an object, innermost first: at least one. `address` is as UnwoundFrame
/// has it. Lines of calls in OCaml code are those of OCaml's own tables, others those of the debug information.
std::vector<NamedFrame> name_frame(const ObjectTables& tables, std::uint32_t address, bool is_return_address);

}  // namespace rtev
