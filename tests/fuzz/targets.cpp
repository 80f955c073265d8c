// SPDX-License-Identifier: MIT
#include <array>

#include "fuzz/fuzzing.hpp"

namespace rtev::fuzz {

std::span<const Target> all_targets() {
  static constexpr std::array all{
      Target{"command_line", command_line},
      Target{"elf", elf},
      Target{"filter", filter},
      Target{"fxt", fxt},
      Target{"object_tables", object_tables},
      Target{"procfs", procfs},
      Target{"replay", replay},
      Target{"ring", ring},
      Target{"ring_changes", ring_changes},
      Target{"ring_header", ring_header},
      Target{"ring_race", ring_race},
      Target{"ring_record", ring_record},
      Target{"saved_rings", saved_rings},
      Target{"sinks", sinks},
      Target{"unwind_tables", unwind_tables},
  };
  return all;
}

}  // namespace rtev::fuzz
