// SPDX-License-Identifier: MIT
#include "bench/machine.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <array>
#include <ctime>
#include <fstream>
#include <string_view>
#include <thread>

#include "rtev/version.hpp"

namespace rtev::bench {
namespace {

/// The value of the first line "key : value" of a file in /proc; empty if there is none.
std::string value_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::string first_of(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Not by fmt/chrono.h, which needs more of {fmt} than a static build has.
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts)};
}

constexpr std::string_view compiler =
#if defined(__clang__)
    "clang " __clang_version__;
#else
    "gcc " __VERSION__;
#endif

}  // namespace

Machine this_machine() {
  utsname system{};
  ::uname(&system);
  return {
      {"date", utc_now()},
      {"rtev-bpf", fmt::format("{}, {} build", RTEV_VERSION, RTEV_BUILD_TYPE)},
      {"compiler", std::string(compiler)},
      {"cpu", value_of("/proc/cpuinfo", "model name")},
      {"cores", std::to_string(std::thread::hardware_concurrency())},
      {"memory", value_of("/proc/meminfo", "MemTotal")},
      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
      {"load before", first_of("/proc/loadavg")},
      {"ocaml", *RTEV_OCAML_VERSION != '\0' ? RTEV_OCAML_VERSION : "none: peers are missing"},
  };
}

}  // namespace rtev::bench
