// SPDX-License-Identifier: MIT
// What happened to a process, in words.
#pragma once

#include "base/text_buffer.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// "exec  OCaml 5.3  /srv/server", "exited with code 2". What the process chose is escaped.
void add_process_event(TextBuffer& out, ProcessAction action, const ProcessRecord& record, const ProcessInfo& info);

}  // namespace rtev
