// SPDX-License-Identifier: MIT
// Connects the targets to libFuzzer. One program holds all; links named rtev-fuzz-TARGET say which one runs.
#include "fuzz/fuzzing.hpp"

namespace {

const rtev::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  constexpr std::string_view prefix = "rtev-fuzz-";
  std::string_view name = (*argv)[0];
  name.remove_prefix(name.rfind('/') + 1);  // no '/': npos + 1 is 0
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const auto targets = rtev::fuzz::all_targets();
  const auto found = std::ranges::find(targets, name, &rtev::fuzz::Target::name);
  if (found == targets.end()) {
    std::fprintf(stderr, "error: there is no fuzz target '%.*s'\nhint: run it as rtev-fuzz-TARGET\n",
                 static_cast<int>(name.size()), name.data());
    std::exit(2);
  }
  chosen = &*found;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
