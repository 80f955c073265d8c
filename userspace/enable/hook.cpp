// SPDX-License-Identifier: MIT
#include "enable/hook.hpp"

namespace rtev::enable {
namespace {

/// What the hook has to be, if the threads library has been initialised since it was replaced.
bool belongs_to_threads(const ProcessMemory& memory, const ReplacedHook& hook) {
  if (hook.thread_hook == 0 || hook.original == hook.thread_hook) return false;
  const auto witness = memory.word(hook.witness);
  return witness && *witness != hook.witness_before;
}

}  // namespace

bool put_back(const ProcessMemory& memory, const ReplacedHook& hook) {
  const auto present = memory.word(hook.address);
  if (!present) return false;
  if (*present != hook.replacement) return true;
  // The request first: whoever is killed in between leaves a hook that is found and put back.
  withdraw_request(memory, hook);
  if (!memory.write_word(hook.address, hook.original)) return false;
  // The library may have set its hook between the read and the write. It changes the witness before that.
  return !belongs_to_threads(memory, hook) || memory.write_word(hook.address, hook.thread_hook);
}

void withdraw_request(const ProcessMemory& memory, const ReplacedHook& hook) {
  // Runtimes never free the state of a domain: the word is still what it was.
  if (hook.request != 0 && hook.original != hook.thread_hook && memory.word(hook.request) == 1)
    memory.write_word(hook.request, 0);
}

}  // namespace rtev::enable
