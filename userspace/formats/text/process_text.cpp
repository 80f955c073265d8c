// SPDX-License-Identifier: MIT
#include "formats/text/process_text.hpp"

#include <sys/wait.h>

#include <cstring>

#include "base/enum_names.hpp"
#include "base/escape.hpp"

namespace rtev {
namespace {

std::string_view explain(Unreadable why) {
  switch (why) {
    case Unreadable::file_system:
      return "the file system of its ring may not answer";
    case Unreadable::no_answer:
      return "its file system does not answer";
    case Unreadable::memory:
      return "rings take too much memory (--memory-limit) or too many file descriptors";
    case Unreadable::other_user:
      return "its ring file belongs to another user";
    case Unreadable::too_large:
      return "OCaml's runtime cannot make rings that large (OCAMLRUNPARAM: e, d)";
  }
  return "unknown";
}

std::string_view explain(EnableResult result) {
  static constexpr std::string_view texts[]{
      "events on",
      "events resumed",
      "nothing to do",
      "not done: it ended",
      "not done: it runs no OCaml 5 program",
      "not done: its version of OCaml is not one that was tested",
      "not done: its program lacks symbols of the runtime",
      "not done: its memory may not be written",
      "not done: its memory does not hold what it should",
      "not done: it cannot make its ring in its directory",
      "not done: there is too little space for its ring",
      "not done: its limits are too small for its ring",
      "not done: its control group has too little memory left for its ring",
      "not done: a filter of system calls might stop it (--allow-confined)",
      "not done: a security profile might stop it (--allow-confined)",
      "not done: a debugger is attached",
      "not done: it or another process of its program came to harm",
      "not done: it did not run in time",
      "not done: its memory, or the kernel, did not answer in time",
      "not done: it paused its events itself",
      "switched off again by another run of rtev-bpf",
      "not done: its rights are not those of one user",
      "not done: OCaml's runtime cannot make rings of its size (OCAMLRUNPARAM: e, d)"};
  return name_at(texts, result);
}

void add_image(TextBuffer& out, const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) {
    out.add("  ");
    add_escaped(out, info.runtime);
  } else if (!info.version.empty()) {
    out.add("  OCaml ");
    add_escaped(out, info.version);
  } else if (info.family_source != FamilySource::assumed) {
    out.add("  OCaml ", to_string(info.family), " (", to_string(info.family_source), ')');
  }
  out.add("  ");
  add_escaped(out, info.exe);
  if (info.ns_pid != 0 && info.ns_pid != info.pid) out.add("  (pid ", info.ns_pid, " in its namespace)");
}

void add_exit_text(TextBuffer& out, std::int64_t status) {
  const int wait_status = static_cast<int>(status);
  if (status == exit_by_exec) {
    out.add("ended by exec of another program");
  } else if (status < 0) {
    out.add("ended");
  } else if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    out.add("killed by signal ", signal);
    if (const char* name = ::sigabbrev_np(signal)) out.add(" (", name, ')');
  } else {
    out.add("exited with code ", WEXITSTATUS(wait_status));
  }
}

}  // namespace

void add_process_event(TextBuffer& out, ProcessAction action, const ProcessRecord& record, const ProcessInfo& info) {
  switch (action) {
    case ProcessAction::found:
      out.add("found");
      add_image(out, info);
      break;
    case ProcessAction::exec:
      out.add("exec");
      add_image(out, info);
      break;
    case ProcessAction::fork:
      out.add("forked by ", record.peer);
      add_image(out, info);
      break;
    case ProcessAction::ring:
      out.add("ring opened  ");
      // Known only now.
      if (info.family_source == FamilySource::ring && !info.version.empty()) {
        out.add("OCaml ");
        add_escaped(out, info.version);
        out.add("  ");
      }
      add_escaped(out, info.ring_path);
      if (info.runtime == ocaml_runtime) break;
      out.add("  of ");
      add_escaped(out, info.runtime);
      break;
    case ProcessAction::pause:
      out.add("events paused");
      break;
    case ProcessAction::resume:
      out.add("events resumed");
      break;
    case ProcessAction::stop:
      out.add("ring removed");
      break;
    case ProcessAction::probe:
      out.add("no ring: traced by probes");
      break;
    case ProcessAction::unreadable:
      out.add("unreadable: ", explain(static_cast<Unreadable>(record.detail)), "  ");
      add_escaped(out, info.ring_path);
      break;
    case ProcessAction::enable:
      out.add("enable: ", explain(static_cast<EnableResult>(record.detail)));
      break;
    case ProcessAction::exit:
      add_exit_text(out, record.detail);
      break;
  }
}

}  // namespace rtev
