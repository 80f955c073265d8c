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
  std::array<std::string_view, 8> words;
  std::string_view option;  ///< empty: any command
  std::string_view hint;
};

constexpr std::string_view memory_hint = "rtev-bpf allocs: who allocates; rtev-bpf stats: heaps";

constexpr Row rows[] = {
    // What is read and written
    {{"-i", "--input", "--in"}, "INPUT", "{} FILE"},
    {{"-i", "--input"}, "A", "{} A.fxt B.fxt"},
    {{"-i", "--input"}, "", "rtev-bpf dump FILE shows its events, rtev-bpf summary -i FILE sums them up"},
    {{"--log-file", "--out", "--output-file", "-w"}, "--output", "{} -o FILE"},
    {{"--json", "-j", "--jsonl"}, "--format", "{} -f json"},
    {{"--csv"}, "--events", "{} -f csv"},
    {{"--csv", "csv"}, "", "rtev-bpf record -o FILE.csv has the events; reports are text or JSON (-f json)"},
    {{"--table", "--text", "--stdio"}, "--format", "{} -f text"},
    {{"--flamegraph", "--flame", "--flame-graph", "flamegraph", "flame", "--svg", "svg"},
     "",
     "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
    {{"--folded", "folded", "--collapsed", "collapsed", "--collapse", "collapse", "stackcollapse"},
     "",
     "rtev-bpf profile -o FILE.folded"},
    {{"--speedscope", "speedscope", "--pprof", "pprof"},
     "",
     "rtev-bpf profile -o FILE.speedscope.json, or FILE.pb.gz for pprof"},
    {{"--perfetto", "perfetto", "--pftrace", "--fuchsia", "fuchsia"},
     "",
     "rtev-bpf record -o FILE.fxt, or FILE.pftrace: ui.perfetto.dev opens both"},
    {{"--chrome", "--catapult", "catapult"}, "", "rtev-bpf record -o FILE.json -f chrome"},
    {{"--html", "html"}, "", "rtev-bpf report -o FILE.html"},
    {{"--prometheus", "prometheus", "metrics", "--otlp", "serve", "daemon"}, "", "rtev-bpf agent"},
    {{"--no-color", "--nocolor", "--no-colour", "--mono", "-M"}, "--color", "{} --color never"},
    {{"--no-color", "--nocolor", "--no-colour", "--mono", "-M"}, "", "NO_COLOR=1 in the environment"},
    // Which processes and events, for how long
    {{"-a", "--all-cpus", "--all-processes", "--system-wide"},
     "--sched",
     "{} traces all OCaml processes without an option"},
    {{"--attach"}, "--pid", "{} -p PID"},
    {{"--comm", "--exe", "--process", "--program"}, "--name", "{} --name NAME"},
    {{"-u", "--user", "--uid", "-C", "--cpu", "-G"},
     "--pid",
     "{} -p PID, or --name NAME, selects processes: rtev-bpf ps lists them"},
    {{"-e", "--event", "--filter", "--trace"}, "--events", "{} --events LIST, e.g. --events 'user,minor*'"},
    {{"-e", "--event", "--trace"}, "", "rtev-bpf --events LIST, e.g. --events 'user,minor*'"},
    {{"--once"}, "--frames", "{} -b -n 1"},
    {{"--once"}, "--duration", "{} -d 1s"},
    {{"--timeout", "--time", "--seconds", "--for", "-t"}, "--duration", "{} -d TIME, e.g. -d 5s"},
    {{"--delay"}, "--interval", "{} --interval TIME, e.g. --interval 5s"},
    {{"--dir"}, "", "OCAML_RUNTIME_EVENTS_DIR=DIR in the environment says where programs make their rings"},
    {{"--log-wsize"}, "", "OCAMLRUNPARAM=e=N in the environment says how large rings are"},
    {{"-ff", "--follow-forks", "--trace-children", "--follow", "f", "--inherit"},
     "",
     "children are traced without an option: rtev-bpf -- CMD, or rtev-bpf -p PID"},
    {{"-c", "--command", "--cmd"},
     "",
     "rtev-bpf -- CMD starts and traces a program, rtev-bpf summary -- CMD sums it up"},
    // Stacks
    {{"--freq"}, "--stacks", "{} --stacks --stack-rate N takes N stacks a second; rings are read as they fill"},
    {{"-F", "--frequency", "--freq"}, "--stacks", "{} --stacks --stack-rate N"},
    {{"-F", "--frequency", "--freq"}, "--stack-rate", "{} --stack-rate N"},
    {{"-g", "--call-graph", "--stack", "--callgraph", "-k"}, "--stacks", "{} --stacks"},
    {{"-g", "--call-graph", "--stack", "--callgraph", "--stacks", "-k"},
     "--stack-rate",
     "{} takes stacks without an option"},
    // What is shown
    {{"-s", "-S", "--sort-key", "--sort"}, "--frames", "{} --sort gc, or another column: --help lists them"},
    {{"-s", "-S", "--sort-key", "--sort"}, "", "rtev-bpf top --sort gc, or another column: --help lists them"},
    {{"-H", "--threads", "--per-thread"},
     "",
     "rtev-bpf stats --full has each domain, rtev-bpf --sched all each switch of threads"},
    {{"-tt", "-ttt", "-T", "-r", "--timestamps", "--timestamp"},
     "",
     "rtev-bpf -f text shows the time and the length of each event"},
    {{"--top"}, "", "rtev-bpf pauses --top N, rtev-bpf stalls --top N; --full shows all rows of other reports"},
    {{"--interval", "-I"}, "", "rtev-bpf top -b --interval TIME, or rtev-bpf latency --interval TIME"},
    {{"--tui", "--live", "--watch", "watch", "monitor", "htop"}, "", "rtev-bpf top"},
    {{"-V"}, "", "rtev-bpf --version"},
    {{"-l", "--list"}, "", "rtev-bpf ps lists processes, rtev-bpf doctor what this host supports"},
    // Other tools and their subcommands
    {{"perf"},
     "",
     "rtev-bpf profile is like perf record and report, rtev-bpf stats like perf stat, rtev-bpf top like perf top"},
    {{"olly"},
     "",
     "rtev-bpf latency --olly -- CMD is like olly gc-stats, rtev-bpf record -o FILE.fxt -- CMD like olly trace"},
    {{"bpftrace", "trace", "strace", "ltrace"},
     "",
     "rtev-bpf record -o FILE.fxt -- CMD, or rtev-bpf -- CMD to see its events now"},
    {{"run", "exec", "launch"}, "", "rtev-bpf -- CMD"},
    {{"start"}, "", "rtev-bpf -- CMD starts a program, rtev-bpf enable -p PID the events of one that runs"},
    {{"stop"}, "", "rtev-bpf disable -p PID"},
    {{"attach"}, "", "rtev-bpf -p PID"},
    {{"gc-stats", "gc", "gcstat"}, "", "rtev-bpf stats, or rtev-bpf latency --olly as olly prints it"},
    {{"script", "print"}, "", "rtev-bpf dump FILE"},
    {{"annotate"}, "", "rtev-bpf profile --by line"},
    {{"--by"}, "", "rtev-bpf profile --by line, or another word: --help lists them"},
    {{"--phase"}, "", "rtev-bpf latency --phase NAME"},
    {{"spans", "requests"}, "", "rtev-bpf latency --span '*' has the spans that programs mark"},
    {{"export"}, "", "rtev-bpf convert FILE -o OTHER"},
    {{"view", "show", "open"}, "", "rtev-bpf dump FILE, or rtev-bpf report -i FILE -o FILE.html"},
    {{"compare"}, "", "rtev-bpf diff A.fxt B.fxt"},
    {{"mem", "memory", "heap", "memtrace", "alloc", "kmem", "massif", "heaptrack"}, "", memory_hint},
    {{"--tool", "valgrind", "memcheck", "--leak-check"}, "", memory_hint},
    {{"callgrind", "cachegrind", "gprof"}, "", "rtev-bpf profile -- CMD"},
    {{"offcpu", "off-cpu", "offcputime", "wait"}, "", "rtev-bpf profile --off-cpu"},
    {{"lock", "locks", "block", "blocked"}, "", "rtev-bpf stalls, or rtev-bpf profile --off-cpu"},
    {{"hist", "histogram", "--hist", "--histogram", "histo", "percentiles", "--percentiles", "dist"},
     "",
     "rtev-bpf latency --full shows percentiles, rtev-bpf agent has histograms"},
    {{"sched", "runqlat", "timehist"}, "", "rtev-bpf latency shows waits for a CPU, rtev-bpf --sched all each switch"},
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
