// SPDX-License-Identifier: MIT
// The benchmarks, a file each; each adds its rows to the report.
#pragma once

#include "bench/report.hpp"

namespace rtev::bench {

void decode(Report& report, const Effort& effort);  ///< full rings, at rest: events per second against the peers
void live(Report& report,
          const Effort& effort);  ///< flat-out producers: share delivered, up to which rate nothing is lost
void slowdown(Report& report, const Effort& effort);       ///< what our reading costs the producer
void pipeline(Report& report, const Effort& effort);       ///< our CPU per event: read, merge, and each output
void idle(Report& report, const Effort& effort);           ///< 500 processes that do nothing
void overhead(Report& report, const Effort& effort);       ///< a busy OCaml program, traced and not
void ringless(Report& report, const Effort& effort);       ///< an OCaml program that is probed, having no ring
void bystander(Report& report, const Effort& effort);      ///< a pipe ping-pong on a host without OCaml
void growth(Report& report, const Effort& effort);         ///< cost per event over processes, domains and rates
void latency(Report& report, const Effort& effort);        ///< exec to first event, exit to last event, Ctrl-C to exit
void recording(Report& report, const Effort& effort);      ///< rtev-bpf record: CPU, bytes, losses
void trace_writing(Report& report, const Effort& effort);  ///< a trace event into memory, beside plain stores

}  // namespace rtev::bench
