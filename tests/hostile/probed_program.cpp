// SPDX-License-Identifier: MIT
#include "probed_program.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "attacker.hpp"

namespace rtev::hostile {

ProbedProgram::ProbedProgram(const std::filesystem::path& program)
    : program_(program), file_(::open(program.c_str(), O_RDONLY | O_CLOEXEC)) {
  std::ifstream file(program, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  mapping_ = map();
}

void ProbedProgram::run(const std::filesystem::path& rings) const {
  std::array<int, 2> silence{};
  if (::pipe2(silence.data(), O_CLOEXEC) != 0) fail("pipe");
  if (fork_dependent() != 0) return;  // the other end of the pipe stays open
  ::setenv("OCAML_RUNTIME_EVENTS_START", "1", 1);
  ::setenv("OCAML_RUNTIME_EVENTS_DIR", rings.c_str(), 1);
  ::dup2(silence[0], STDIN_FILENO);
  const int null = ::open("/dev/null", O_WRONLY);
  if (null >= 0) ::dup2(null, STDOUT_FILENO);
  ::execl(program_.c_str(), "program", nullptr);
  ::_exit(127);
}

bool ProbedProgram::is_probed() const {
  return std::memcmp(mapping_, bytes_.data(), bytes_.size()) != 0;
}

const void* ProbedProgram::map() const {
  const void* const mapping = ::mmap(nullptr, bytes_.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, 0);
  if (mapping == MAP_FAILED) fail("cannot map a program");
  return mapping;
}

}  // namespace rtev::hostile
