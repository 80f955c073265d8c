// SPDX-License-Identifier: MIT
// The code that the kernel maps into every process.
#pragma once

#include "unwind/object_tables.hpp"

namespace rtev {

/// How the mapping is named in /proc/PID/maps.
inline constexpr std::string_view vdso_path = "[vdso]";

/// Tables of the vDSO, which is no file, as this process has it: that of all processes of the same kind of machine.
Result<ObjectTables> vdso_tables();

}  // namespace rtev
