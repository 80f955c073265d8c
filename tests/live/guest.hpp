// SPDX-License-Identifier: MIT
// Boots a kernel of another version under QEMU, to run one command of this machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rtev::test {

struct GuestRun {
  std::string output;              ///< everything the guest wrote to its console
  std::optional<int> status;       ///< exit status of the command; empty if the guest did not run it to its end
  std::optional<int> left_behind;  ///< number of BPF objects left after the command, beyond those before it
  int boots = 0;
};

/// Path of the kernel image, e.g. for "6.1". The file may not exist.
std::filesystem::path kernel_image(const std::string& version);

/// Why guests cannot run here; empty if they can.
std::string guest_obstacle(const std::string& version);

/// Boots, runs the command to its end and shuts down. If the emulator crashes the guest, boots again, up to a limit.
GuestRun run_in_guest(const std::filesystem::path& kernel, const std::filesystem::path& initramfs);

/// Writes an initramfs for this kernel, with a command, the live tests and everything they need.
void pack_live_tests(const std::filesystem::path& archive, const std::filesystem::path& kernel,
                     const std::vector<std::string>& arguments);

}  // namespace rtev::test
