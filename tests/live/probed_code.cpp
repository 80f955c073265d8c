// SPDX-License-Identifier: MIT
#include "live/probed_code.hpp"

#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"
#include "live/process.hpp"

namespace rtev::test {

ProbedCode::ProbedCode(pid_t pid) : pid_(pid) {
  const Procfs procfs;
  const auto program = procfs.open_exe(pid);
  const auto runtime = program ? inspect_binary(program->get()).value_or(std::nullopt) : std::nullopt;
  if (!runtime || runtime->emitters.empty()) throw std::runtime_error("found no functions that write events");
  const std::uint64_t offset = runtime->emitters.front().file_offset;
  const std::string path = procfs.exe_path(pid);
  for (const Mapping& mapping : procfs.mappings(pid)) {
    if (mapping.path != path || offset < mapping.offset || offset - mapping.offset >= mapping.end - mapping.begin)
      continue;
    address_ = mapping.begin + (offset - mapping.offset);
  }
  if (address_ == 0 || ::pread(program->get(), &original_, 1, static_cast<off_t>(offset)) != 1)
    throw std::runtime_error("the code of the program is not mapped");
}

bool ProbedCode::is_probed() const {
  const auto word = Procfs().read_word(pid_, address_);
  return word && static_cast<std::uint8_t>(*word) != original_;
}

bool ProbedCode::becomes(bool probed) const {
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (is_probed() != probed) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace rtev::test
