// SPDX-License-Identifier: MIT
// Programs that attack the tracer. Each prints "ready" when it is at work, and goes on until stdin has a line or is
// closed. All take a directory of their own, which exists.
#pragma once

#include <filesystem>

namespace rtev::hostile {

using Directory = std::filesystem::path;

// Rings whose content is hostile (rings.cpp).

/// Rewrites words, indices, names and the header of a ring at random, between events that are valid.
int mutating_writer(const Directory& dir);
/// Changes the names of all 8192 user events again and again, and writes these events.
int name_flood(const Directory& dir);
/// Programs of milliseconds, four at a time, that write 8192 user events, each with a name of its own that controls
/// terminals, as the program's name does.
int short_lived_names(const Directory& dir);
/// Programs that change the header of their ring to one of 64 domains while it is read, and end.
int growing_header(const Directory& dir);
/// Eight processes announce rings under write leases: whoever opens one waits, or fails.
int leased_ring(const Directory& dir);
/// Eight processes claim words in each of 4096 domains, and write none.
int sparse_rings(const Directory& dir);
/// The same, with indices around 2^63.
int huge_indices(const Directory& dir);
/// Sixteen processes write events with names of control characters, which take long to print.
int long_names(const Directory& dir);
/// Writes a few words to each of 4096 domains, again and again.
int many_domains(const Directory& dir);
/// Fills rings of 64 words as fast as it can.
int small_rings(const Directory& dir);
/// Writes a ring that lies in no folder (memfd_create(2)), as no program of OCaml has it.
int memfd_ring(const Directory& dir);
/// Cuts a hole of a gigabyte into its ring again and again, while it writes to it. Whoever reads there waits.
int punched_ring(const Directory& dir);
/// Makes a huge page of its ring again and again, while it writes to it. Whoever touches a page meanwhile waits.
int collapsed_ring(const Directory& dir);
/// Sparse rings of nearly 4 TiB each, more together than an address space has.
int huge_rings(const Directory& dir);

// Too much of what is harmless in small numbers (floods.cpp).

/// Announces rings of 64 words.
int ring_flood(const Directory& dir);
/// Forks children that end at once.
int fork_storm(const Directory& dir);
/// Runs the same program in the same process again and again, each time with a ring.
int exec_flood(const Directory& dir);
int exec_flood_step(const Directory& dir);
/// Programs that leave a full page in each of 4096 domains' rings when they exec: BPF saves them.
int save_flood(const Directory& dir);
/// Calls a probed function of the runtime that has BPF save its ring, which no reader opens: 128 domains each time.
int teardown_flood(const Directory& dir);
/// Two threads that wake each other on one CPU.
int switch_flood(const Directory& dir);
/// Programs that end with a ring of a gigabyte, which is removed: whoever closes it last frees its memory.
int large_rings(const Directory& dir);
/// Programs that end one after the other, each with a full ring.
int ending_rings(const Directory& dir);

// Processes and programs that are expensive to look at (programs.cpp).

/// Two processes of 64,000 mappings announce rings in turn.
int many_mappings(const Directory& dir);
/// Runs a program of 65,000 sections, which is a new file each time.
int many_sections(const Directory& dir);
/// Runs the program `dir`/program, which is touched or replaced before each run.
int touched_program(const Directory& dir);
/// Runs ever new copies of the program `dir`/program, all of them different, many at a time.
int many_programs(const Directory& dir);
/// Runs a copy of the program `dir`/program with so much .eh_frame that it takes seconds to read, which is touched
/// before each run: four at a time.
int expensive_tables(const Directory& dir);
/// Runs copies of the program `dir`/program whose tables for stacks take all that a user may have, then that program,
/// which is somebody else's.
int full_tables(const Directory& dir);
/// Runs the program `dir`/program, and maps it 360,000 times once it has probes: to detach them takes the kernel long.
int mapped_program(const Directory& dir);
/// Forks a process with many pages and little CPU time again and again, beside ever new copies of the program
/// `dir`/program: to probe one the kernel waits for the fork.
int long_forks(const Directory& dir);
/// Programs, four at a time, in which a thread runs the next program while the main thread writes. Their events have no
/// names.
int threads_that_exec(const Directory& dir);
int threads_that_exec_step(const Directory& dir);
/// Announces rings in a namespace of 65,000 mounts, which change all the time.
int many_mounts(const Directory& dir);

// Files and memory that never answer (hung.cpp). They lie on a file system of the program's own, in a mount namespace
// of its own. By an unprivileged user: whoever hangs the tracer's workers harms programs of the same user.

/// Announces rings there.
int hung_ring(const Directory& dir);
/// The same, unmounted while its files are in use: no table of mounts has it.
int hung_detached_ring(const Directory& dir);
/// Runs a program that lies there, and has an honest ring.
int hung_program(const Directory& dir);
int hung_detached_program(const Directory& dir);
int hung_program_step(const Directory& dir);
int hung_detached_program_step(const Directory& dir);
/// Its working directory is there; has an honest ring.
int hung_directory(const Directory& dir);
/// Has a process hold its own memory map locked: its ring, its environment and all else in its memory never answer.
int hung_memory(const Directory& dir);
/// The same in a process that has mapped the program `dir`/program, once that has probes.
int hung_mapping(const Directory& dir);

// Names that programs choose for themselves (names.cpp). By an unprivileged user.

/// Runs 40 programs, each a service with a name of its own.
int many_services(const Directory& dir);
int many_services_step(const Directory& dir);
/// Programs one after the other, each with a name of its own, that overwrite their ring before it is read.
int losing_names(const Directory& dir);

// What enabling writes, opens and creates (enable_*.cpp). All but planted_rings() in a program that looks like one of
// OCaml whose events are off (rtev-attack-enabled).

/// Maps a removed ring of an earlier trace at thousands of places, and the files of `dir`/../targets in its stead once
/// enabling opens the first one; and files that only look like removed rings. Says "attacked" when that is done.
int swapped_rings(const Directory& dir);
/// Puts files, folders, links and fifos where programs are about to make their rings. `dir`/plan has a line for each
/// program: its pid, the directory of its ring, and the way: "signal" (when something happens there), "creation" (when
/// the ring is made) or "flicker" (again and again), after "parent-" if the directory itself is to be replaced. Links
/// lead to `dir`/../targets/PID.
int planted_rings(const Directory& dir);
/// Has the write to its hook wait for a file system that does not answer, and runs `dir`/../guarded then, which is a
/// set-user-ID program. Says "changed" if words of that one change.
int forged_entry(const Directory& dir);
/// The same with a file system that fusermount3(1) mounts for an unprivileged user.
int forged_entry_by_helper(const Directory& dir);
int forged_entry_step(const Directory& dir);
/// The same without a file system: says "replaced" while its hook is replaced, and goes on when stdin has a byte.
int killed_entry(const Directory& dir);
/// What `dir`/../guarded does.
int guarded_words(const Directory& dir);
/// Says "touched" once something is written that enabling writes.
int watched_words(const Directory& dir);
/// The same, in a process that is not dumpable.
int hidden_words(const Directory& dir);
/// The same with a real user and another one that its accesses count for. To be started by root.
int two_users_words(const Directory& dir);
/// The same of an unprivileged user, with CAP_DAC_OVERRIDE. To be started by root.
int ambient_words(const Directory& dir);

// What enabling waits for, and what all users share in it (enable_waits.cpp). To be started by root if not said
// otherwise; they become programs of an unprivileged user.

/// Locks what it can of the journal of hooks. To be started by the user.
int locked_journal(const Directory& dir);
/// `dir` is in the file system of /run. Locks a directory there, and tries to lock one of root's by renaming a file
/// from the one to the other.
int locked_state(const Directory& dir);
/// Dies by SIGSEGV when its hook is replaced. To be started by the user.
int crashing_words(const Directory& dir);
/// Keeps the directory `dir`/rings locked.
int locked_directory(const Directory& dir);
/// Keeps the directory locked, for 20 s at the most, that holds the one whose path is in `dir`/plan.
int locked_above(const Directory& dir);
/// The same of the directory in /proc of the next worker of `rtev-bpf enable`; says "locked PID" then.
int locked_worker(const Directory& dir);
/// Has its events started, and says "started". Maps a file that does not answer over their flags when stdin has a byte,
/// and says "silent".
int silent_flags(const Directory& dir);
/// When stdin has a byte, and then its hook is replaced, it says "asked" and locks the map of its memory.
int locked_when_asked(const Directory& dir);

/// Ends at once.
int nothing(const Directory& dir);

}  // namespace rtev::hostile
