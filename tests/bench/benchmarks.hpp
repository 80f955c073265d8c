// SPDX-License-Identifier: MIT
// The benchmarks, one file each. Each adds its rows to the report.
#pragma once

#include "bench/result_table.hpp"

namespace rtev::bench {

void ordinary(Report& report, const Effort& effort);   ///< cpu of the tracer at ordinary rates, beside a plain reader
void burst(Report& report, const Effort& effort);      ///< losses in bursts after silence
void decode(Report& report, const Effort& effort);     ///< full rings without a writer: events per second
void live(Report& report, const Effort& effort);       ///< share delivered at full speed, highest rate without loss
void pipeline(Report& report, const Effort& effort);   ///< tracer's CPU time per event: reading, merging, each output
void scheduler(Report& report, const Effort& effort);  ///< tracer's CPU time per switch or wake-up
void idle(Report& report, const Effort& effort);       ///< 500 idle processes
void traced(Report& report, const Effort& effort);     ///< what tracing costs the traced program
void stacks(Report& report, const Effort& effort);     ///< the same while stacks are taken
void enabling(Report& report, const Effort& effort);   ///< what events cost that were switched on in a running program
void ringless(Report& report, const Effort& effort);   ///< an OCaml program without a ring, traced by probes
void bystander(Report& report, const Effort& effort);  ///< a pipe ping-pong on a host without OCaml
void growth(Report& report, const Effort& effort);     ///< cost per event by number of processes, domains and by rate
void latency(Report& report, const Effort& effort);    ///< exec to first event, exit to last event, Ctrl-C to exit
void commands(Report& report, const Effort& effort);   ///< start and end of rtev-bpf: commands that do next to nothing
void recording(Report& report, const Effort& effort);  ///< rtev-bpf record: CPU, bytes, losses
void trace_writing(Report& report, const Effort& effort);  ///< trace events written to memory

}  // namespace rtev::bench
