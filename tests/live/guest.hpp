// SPDX-License-Identifier: MIT
// A kernel of another version under QEMU, which runs one command of this machine's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rtev::test {

struct GuestRun {
  std::string output;              ///< all that the guest wrote to its console
  std::optional<int> status;       ///< of the command; empty if the guest did not come that far
  std::optional<int> left_behind;  ///< BPF objects that were there when the command had ended, and not before
  int boots = 0;
};

/// The kernel's image, e.g. of "6.1"; it need not be there.
std::filesystem::path kernel_image(const std::string& version);

/// Why guests cannot run here; empty if they can.
std::string guest_obstacle(const std::string& version);

/// Boots, runs the command to its end, and ends. A guest that its emulator crashes is booted again, a few times.
GuestRun run_in_guest(const std::filesystem::path& kernel, const std::filesystem::path& initramfs);

/// Writes an initramfs with a command, the live tests and all that these run.
void pack_live_tests(const std::filesystem::path& archive, const std::vector<std::string>& arguments);

}  // namespace rtev::test
