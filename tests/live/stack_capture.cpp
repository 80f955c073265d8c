// SPDX-License-Identifier: MIT
#include "live/stack_capture.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/unique_fd.hpp"
#include "inspect/binary.hpp"
#include "unwind/object_tables_builder.hpp"
#include "unwind/vdso.hpp"

namespace rtev::test {
namespace {

constexpr std::uint64_t max_stack = 512u << 10;
constexpr std::size_t max_fibers = 64;
// What the runtime's structures have where, in words.
constexpr std::uint64_t current_stack = 5, stack_handler = 2, handler_parent = 3;

struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool executable = false;
  std::string path;
};

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char rights[5] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.begin, &mapping.end,
                    rights, &mapping.offset, &path) < 4)
      continue;
    mapping.executable = rights[2] == 'x';
    mapping.path = line.substr(static_cast<std::size_t>(path));
    mappings.push_back(mapping);
  }
  return mappings;
}

std::shared_ptr<const ObjectTables> tables_of(const std::string& path) {
  auto tables = [&]() -> Result<ObjectTables> {
    if (path == vdso_path) return vdso_tables();
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd) return errno_error(errno, "cannot open", path);
    auto bytes = build_object_tables(fd.get());
    if (!bytes) return std::unexpected(bytes.error());
    return ObjectTables::from_bytes(std::move(*bytes));
  }();
  return tables ? std::make_shared<const ObjectTables>(std::move(*tables)) : nullptr;
}

}  // namespace

StackCapture::StackCapture(pid_t pid) : pid_(pid) {
  std::map<std::string, std::shared_ptr<const ObjectTables>> known;
  std::vector<CodeMapping> code;
  for (const Mapping& mapping : mappings_of(pid)) {
    if (!mapping.executable || mapping.path.empty() || mapping.path == "[vsyscall]") continue;
    if (!known.contains(mapping.path)) known[mapping.path] = tables_of(mapping.path);
    code.push_back({mapping.begin, mapping.end, mapping.offset, known[mapping.path], mapping.path});
  }
  space_ = AddressSpace(std::move(code));
  const UniqueFd program{::open(("/proc/" + std::to_string(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC)};
  const auto binary = inspect_binary(program.get());
  if (!binary || !*binary || (*binary)->caml_state_tls == 0) throw std::runtime_error("not an OCaml program");
  caml_state_tls_ = (*binary)->caml_state_tls;
}

StackCapture::~StackCapture() {
  for (const pid_t thread : seized_) {
    int status = 0;
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 && ::waitpid(thread, &status, __WALL) == thread)
      ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  }
}

std::vector<pid_t> StackCapture::threads() const {
  std::vector<pid_t> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task"))
    threads.push_back(std::stoi(entry.path().filename()));
  return threads;
}

namespace {

struct Registers {
  std::vector<std::uint64_t> values;  ///< by their numbers in DWARF
  std::uint64_t stack_pointer = 0, thread_pointer = 0;
};

template <typename Set>
Set register_set(pid_t thread, std::uintptr_t number) {
  Set set{};
  iovec room{.iov_base = &set, .iov_len = sizeof set};
  if (::ptrace(PTRACE_GETREGSET, thread, number, &room) != 0) throw std::runtime_error("PTRACE_GETREGSET");
  return set;
}

Registers registers_of(pid_t thread) {
  const auto user = register_set<user_regs_struct>(thread, NT_PRSTATUS);
#if defined(__x86_64__)
  return {.values = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp, user.r8, user.r9,
                     user.r10, user.r11, user.r12, user.r13, user.r14, user.r15, user.rip},
          .stack_pointer = user.rsp,
          .thread_pointer = user.fs_base};
#else
  Registers registers{.values = {std::begin(user.regs), std::end(user.regs)},
                      .stack_pointer = user.sp,
                      .thread_pointer = register_set<std::uint64_t>(thread, NT_ARM_TLS)};
  registers.values.push_back(user.sp);
  registers.values.push_back(user.pc);
  return registers;
#endif
}

}  // namespace

std::unique_ptr<CapturedStack> StackCapture::capture(pid_t thread) {
  if (std::ranges::find(seized_, thread) == seized_.end()) {
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) throw std::runtime_error("PTRACE_SEIZE");
    seized_.push_back(thread);
  }
  int status = 0;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 || ::waitpid(thread, &status, __WALL) != thread)
    throw std::runtime_error("PTRACE_INTERRUPT");

  auto captured = std::make_unique<CapturedStack>();
  const Registers user = registers_of(thread);
  std::ranges::copy(user.values, captured->stack.registers.begin());

  const std::uint64_t state = word(user.thread_pointer + static_cast<std::uint64_t>(caml_state_tls_)).value_or(0);
  if (state != 0) copy_fibers(*captured, word(state + 8 * current_stack).value_or(0));
  // In OCaml code the C stack is where the domain's state says.
  const std::uint64_t c_stack = state != 0 ? word(state + 64).value_or(0) : 0;
  for (const std::uint64_t from : {user.stack_pointer, c_stack}) {
    const bool is_there = std::ranges::any_of(captured->copies, [&](const MemoryCopy& copy) {
      return from >= copy.address && from - copy.address < copy.bytes.size();
    });
    if (from == 0 || is_there) continue;
    for (const Mapping& mapping : mappings_of(pid_))
      if (from >= mapping.begin && from < mapping.end) copy(*captured, from, std::min(mapping.end, from + max_stack));
  }
  // Without the domain's lock: where the runtime's code in assembly called C it left a link to the OCaml stack.
  if (state == 0 && !captured->copies.empty()) {
    const MemoryCopy stack = captured->copies.back();
    for (std::uint64_t at = user.stack_pointer; at < stack.address + stack.bytes.size(); at += 8) {
      captured->stack.copies = captured->copies;
      const auto code = captured->stack.read_word(at), info = captured->stack.read_word(at + 8);
      if (!code || !info || !is_runtime_code(*code)) continue;
      const auto handler = word(*info + 8 * stack_handler);
      if (!handler || *handler <= *info || *handler - *info > (1u << 30)) continue;
      copy_fibers(*captured, *info);
      break;
    }
  }
  captured->stack.copies = captured->copies;
  ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
  return captured;
}

void StackCapture::copy_fibers(CapturedStack& into, std::uint64_t stack_info) const {
  for (std::size_t fiber = 0; stack_info != 0 && fiber < max_fibers; ++fiber) {
    const auto handler = word(stack_info + 8 * stack_handler);
    if (!handler || *handler <= stack_info) return;
    copy(into, std::max(stack_info, *handler - std::min(*handler, max_stack)), *handler + 32);
    if (*handler - stack_info > max_stack) copy(into, stack_info, stack_info + 64);
    stack_info = word(*handler + 8 * handler_parent).value_or(0);
  }
}

void StackCapture::copy(CapturedStack& into, std::uint64_t begin, std::uint64_t end) const {
  std::vector<std::byte> bytes(end - begin);
  const iovec local{bytes.data(), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(begin), bytes.size()};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  if (got <= 0) return;
  bytes.resize(static_cast<std::size_t>(got));
  into.memory.push_back(std::move(bytes));
  into.copies.push_back({begin, into.memory.back()});
}

std::optional<std::uint64_t> StackCapture::word(std::uint64_t address) const {
  std::uint64_t value = 0;
  const iovec local{&value, sizeof value};
  const iovec remote{reinterpret_cast<void*>(address), sizeof value};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == sizeof value ? std::optional(value) : std::nullopt;
}

bool StackCapture::is_runtime_code(std::uint64_t address) const {
  const std::size_t index = space_.find(address);
  if (index == AddressSpace::npos) return false;
  const auto& mapping = space_.mapping(index);
  const auto place = mapping.object_address(address);
  if (!place) return false;
  const auto system = mapping.tables->system_code();
  return *place >= system.begin && *place < system.end;
}

}  // namespace rtev::test
