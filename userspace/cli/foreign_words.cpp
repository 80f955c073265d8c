// SPDX-License-Identifier: MIT
#include "cli/foreign_words.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace rtev::cli {
namespace {

/// The first row counts that has the word, and whose option the command has. "{}" stands for how the command line
/// begins.
struct Row {
  std::array<std::string_view, 6> words;
  std::string_view option;  ///< empty: any command
  std::string_view hint;
};

constexpr Row rows[] = {
    // What is written
    {{"--json", "-j", "--jsonl"}, "--format", "{} -f json"},
    {{"--csv"}, "--events", "{} -f csv"},
    {{"--csv", "csv"}, "", "rtev-bpf record -o FILE.csv"},
    {{"--flamegraph", "--flame", "--flame-graph", "flamegraph", "--svg", "svg"},
     "",
     "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
    {{"--speedscope", "speedscope", "--pprof", "pprof"},
     "",
     "rtev-bpf profile -o FILE.speedscope.json, or FILE.pb.gz for pprof"},
    {{"--perfetto", "perfetto", "--pftrace", "--fuchsia", "fuchsia"},
     "",
     "rtev-bpf record -o FILE.fxt, or FILE.pftrace: ui.perfetto.dev opens both"},
    {{"--chrome", "--catapult", "catapult"}, "", "rtev-bpf record -o FILE.json -f chrome"},
    {{"--html", "html"}, "", "rtev-bpf report -o FILE.html"},
    {{"--prometheus", "prometheus", "metrics", "--otlp", "serve", "daemon"}, "", "rtev-bpf agent"},
    // Which processes, for how long
    {{"-a", "--all-cpus", "--all-processes", "--system-wide"},
     "--sched",
     "{} traces all OCaml processes without an option"},
    {{"--attach"}, "--pid", "{} -p PID"},
    {{"--comm", "--exe", "--process", "--program"}, "--name", "{} -n NAME"},
    {{"--timeout", "--time", "--seconds", "--for", "-t"}, "--duration", "{} -d TIME, e.g. -d 5s"},
    {{"--dir"}, "", "OCAML_RUNTIME_EVENTS_DIR=DIR in the environment says where programs make their rings"},
    {{"--log-wsize"}, "", "OCAMLRUNPARAM=e=N in the environment says how large rings are"},
    {{"--freq"}, "--stack-rate", "{} --stack-rate N takes N stacks a second; rings are read as they fill"},
    {{"-F", "--frequency"}, "--stack-rate", "{} --stack-rate N"},
    {{"-g", "--call-graph", "--stack", "--callgraph"}, "--stacks", "{} --stacks"},
    {{"-g", "--call-graph", "--stack", "--callgraph", "--stacks"}, "--stack-rate", "{} takes stacks without an option"},
    // What is shown
    {{"--top"}, "", "rtev-bpf pauses --top N, rtev-bpf stalls --top N; --full shows all rows of other reports"},
    {{"--interval", "-I"}, "", "rtev-bpf top -b --interval TIME, or rtev-bpf latency --interval TIME"},
    {{"--tui", "--live", "--watch", "watch", "monitor", "htop"}, "", "rtev-bpf top"},
    {{"-V"}, "", "rtev-bpf --version"},
    // Subcommands
    {{"trace", "strace"}, "", "rtev-bpf record -o FILE -- CMD, or rtev-bpf -- CMD to see its events now"},
    {{"run", "exec", "launch", "start"}, "", "rtev-bpf -- CMD"},
    {{"attach"}, "", "rtev-bpf -p PID"},
    {{"gc-stats", "gc", "gcstat"}, "", "rtev-bpf stats, or rtev-bpf latency --olly as olly prints it"},
    {{"script", "print"}, "", "rtev-bpf dump FILE"},
    {{"annotate"}, "", "rtev-bpf profile --by line"},
    {{"export"}, "", "rtev-bpf convert FILE -o OTHER"},
    {{"view", "show", "open"}, "", "rtev-bpf dump FILE, or rtev-bpf report -i FILE -o FILE.html"},
    {{"compare"}, "", "rtev-bpf diff A.fxt B.fxt"},
    {{"mem", "memory", "heap", "memtrace", "alloc"}, "", "rtev-bpf allocs: who allocates; rtev-bpf stats: heaps"},
    {{"offcpu", "off-cpu", "offcputime", "wait"}, "", "rtev-bpf profile --off-cpu"},
    {{"lock", "locks", "block", "blocked"}, "", "rtev-bpf stalls, or rtev-bpf profile --off-cpu"},
    {{"list", "ls", "pgrep"}, "", "rtev-bpf ps"},
    {{"check", "test"}, "", "rtev-bpf doctor"},
};

}  // namespace

std::optional<std::string> hint_for_foreign_word(std::string_view word, std::string_view command,
                                                 const std::function<bool(const std::string&)>& has_option) {
  word = word.substr(0, word.find('='));
  if (word.empty()) return std::nullopt;
  const auto row = std::ranges::find_if(rows, [&](const Row& each) {
    return std::ranges::find(each.words, word) != each.words.end() &&
           (each.option.empty() || has_option(std::string(each.option)));
  });
  if (row == std::end(rows)) return std::nullopt;
  std::string hint(row->hint);
  if (const std::size_t at = hint.find("{}"); at != std::string::npos) hint.replace(at, 2, command);
  return hint;
}

}  // namespace rtev::cli
