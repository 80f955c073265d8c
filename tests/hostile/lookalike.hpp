// SPDX-License-Identifier: MIT
// A program that `rtev-bpf enable` takes for one of OCaml, and that does what its owner likes.
#pragma once

#include <filesystem>

#include "enabled/runtime.h"

namespace rtev::hostile {

/// The memory of a runtime, and what it does with requests. Only in rtev-attack-enabled and its like.
class Lookalike {
 public:
  Lookalike();

  /// Sleeps for some microseconds at a time until the hook is replaced. False if stdin ended, or has a line.
  bool await_request() const;
  /// False if a word that enabling writes has been written.
  bool is_untouched() const;
  bool is_asked() const { return *words_.hook != words_.default_hook; }
  /// What caml_runtime_events_start() does: makes PID.events in this directory, maps it, and sets the flag. False if it
  /// cannot: the runtime would abort the program.
  bool start_events(const std::filesystem::path& rings) const;

  const lookalike& words() const { return words_; }

 private:
  lookalike words_;
};

}  // namespace rtev::hostile
