// SPDX-License-Identifier: MIT
#include "live/guest.hpp"

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/parse.hpp"
#include "live/harness.hpp"
#include "live/initramfs.hpp"

namespace rtev::test {
namespace {

constexpr const char* emulator = "/usr/bin/qemu-system-x86_64";
constexpr const char* mount_helper = "/usr/bin/fusermount3";
constexpr const char* seconds_to_run = "280";  // an idle machine needs about ten
constexpr int max_boots = 8;                   // up to one boot in three fails, early

/// Those that guests load; none if the kernel has all that they need built in.
fs::path modules_of(const fs::path& kernel) {
  return kernel.parent_path() / "modules";
}

/// The rest of the last line that begins with this prefix.
std::optional<int> number_after(std::string_view output, std::string_view word) {
  const auto at = output.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  return parse_leading_number<int>(output.substr(at + word.size()));
}

/// QEMU 7.2 sometimes corrupts flags or the stack when the kernel modifies its own code (jump labels, static calls), as
/// Linux does while it boots and attaches probes. The guest kernel then crashes in correct code.
bool has_crashed(std::string_view output) {
  return !output.contains("guest: begins") || output.contains("Kernel panic");
}

GuestRun boot(const fs::path& kernel, const fs::path& initramfs) {
  // Guest time counts instructions, so a loaded machine or slow emulation does not cause timeouts in the guest.
  Process machine({.argv = {"timeout", "--kill-after=5", seconds_to_run, emulator, "-accel", "tcg", "-cpu", "qemu64",
                            "-smp", "1", "-m", "2048", "-icount", "shift=1,sleep=off", "-nodefaults", "-nographic",
                            "-no-reboot", "-serial", "stdio", "-kernel", kernel, "-initrd", initramfs, "-append",
                            // The kernel passes what it does not know to the first process's environment.
                            "console=ttyS0 quiet oops=panic panic=-1 preempt=full RTEV_ATTACK_TRIES=4"}});
  machine.close_stdin();
  GuestRun guest{.output = machine.wait(std::chrono::minutes(5)).out, .status = {}, .left_behind = {}};
  guest.status = number_after(guest.output, "guest: status ");
  guest.left_behind = number_after(guest.output, "guest: left behind ");
  return guest;
}

}  // namespace

fs::path kernel_image(const std::string& version) {
  const char* other = std::getenv("RTEV_KERNELS");
  return fs::path(other != nullptr ? other : RTEV_KERNELS) / version / "vmlinuz";
}

std::string guest_obstacle(const std::string& version) {
#if !defined(__x86_64__)
  return "guests are of x86-64, and this machine is not";
#endif
  if (!fs::exists(emulator)) return std::string("there is no ") + emulator;
  for (const fs::path& needed : {kernel_image(version), modules_of(kernel_image(version))})
    if (!fs::exists(needed)) return "there is no " + needed.string() + ": scripts/test-kernels gets it";
  return {};
}

GuestRun run_in_guest(const fs::path& kernel, const fs::path& initramfs) {
  GuestRun guest;
  for (int boots = 1; boots <= max_boots; ++boots) {
    guest = boot(kernel, initramfs);
    guest.boots = boots;
    if (!has_crashed(guest.output)) break;
  }
  return guest;
}

void pack_live_tests(const fs::path& archive, const fs::path& kernel, const std::vector<std::string>& arguments) {
  Initramfs files(archive);
  const fs::path tests = fs::read_symlink("/proc/self/exe"), programs = fs::path(ocaml_program("hello")).parent_path();
  files.add_program("/init", RTEV_GUEST_INIT);
  std::string command = tests.string() + "\n";
  for (const std::string& argument : arguments) command += argument + "\n";
  files.add_text("/command", command);
  // Everything has the same path as here. Programs that also exist as static binaries are copied as those.
  files.add_program(tests, tests);
  files.add_program(tool(), tool());
  for (const char* attacker : {"rtev-attack", "rtev-attack-enabled"})
    files.add_program(fs::path(RTEV_ATTACK_FOLDER) / attacker, fs::path(RTEV_ATTACK_FOLDER) / attacker);
  for (const fs::directory_entry& program : fs::directory_iterator(programs / "static"))
    files.add_program(programs / program.path().filename(), program.path());
  for (const fs::directory_entry& program : fs::directory_iterator(programs))
    if (program.is_regular_file()) files.add_program(program.path(), program.path());
  for (const char* program : {"/bin/sh", "/bin/true", "/bin/false", "/bin/sleep"}) files.add_program(program, program);
  // A file system that a set-user-ID program mounts.
  for (const fs::directory_entry& module : fs::directory_iterator(modules_of(kernel)))
    files.add_program("/modules" / module.path().filename(), module.path());
  if (fs::exists(mount_helper)) files.add_program(mount_helper, mount_helper);
  // The helper asks for the user's name, and counts his mounts.
  files.add_text("/etc/passwd", "nobody:x:65534:65534::/:/bin/false\n");
  files.add_link("/etc/mtab", "/proc/mounts");
  files.finish();
}

}  // namespace rtev::test
