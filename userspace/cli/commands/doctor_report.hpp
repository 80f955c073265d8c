// SPDX-License-Identifier: MIT
// What `rtev-bpf doctor` prints.
#pragma once

#include <string>
#include <string_view>

#include "kernel/features.hpp"

namespace rtev::cli {

/// For people. `setcap`: kernel::setcap_command(); any bytes. `confinement`: what describe_confinement() says.
std::string doctor_text(const kernel::HostFeatures& host, std::string_view setcap, std::string_view confinement);
/// One JSON object in one line. docs/json.md documents it.
std::string doctor_json(const kernel::HostFeatures& host);

}  // namespace rtev::cli
