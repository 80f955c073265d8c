// SPDX-License-Identifier: MIT
// A frame of a stack as text.
#pragma once

#include "base/text_buffer.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// "Web.Server.handle server.ml:42", "memcpy (libc.so.6)", "[kernel] do_sys_poll", "[unknown]". Without control
/// characters.
void add_frame(TextBuffer& out, const StackFrame& frame);

/// The OCaml function that a thread was in, what it called outside of OCaml, and the program's own function that called
/// it, perhaps through others of the standard library:
/// "Stdlib.Digest.string (caml_md5_string), called from Upload.store upload.ml:42". Where there is no OCaml function:
/// the innermost frame.
void add_stack_summary(TextBuffer& out, const StackTable& stacks, StackIndex stack);

/// The program's own function that a thread was in, and what this called of the standard library or of C:
/// "Upload.store upload.ml:42 (Stdlib.Digest.string)".
void add_short_stack_summary(TextBuffer& out, const StackTable& stacks, StackIndex stack);

}  // namespace rtev
