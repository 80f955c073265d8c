// SPDX-License-Identifier: MIT
// `rtev-bpf profile` and `rtev-bpf allocs`: counts samples by stack, and by what the domain did.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/profile/domain_activity.hpp"
#include "analysis/profile/profile_report.hpp"
#include "analysis/profile/sample_fold.hpp"
#include "analysis/profile/slow_samples.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct ProfileOptions {
  SampleKind kind = SampleKind::on_cpu;
  ProfileBy by = ProfileBy::function;
  std::optional<SpanCondition> in{};               ///< compare the samples in these spans with the others
  std::uint64_t min_weight = 0;                    ///< samples that stand for less are left out: short sleeps
  bool of_recording = false;                       ///< ProfileReport::of_recording
  std::string input{};                             ///< ProfileReport::input
  bool full = false;                               ///< ProfileReport::full
  bool traces_switches = false;                    ///< of all threads of the processes that are traced
  std::size_t max_keys = std::size_t{1} << 18;     ///< different samples that are counted apart
  std::size_t max_waiting = std::size_t{1} << 17;  ///< samples in spans that have not ended
};

/// Stands for GC pauses in SpanCondition::pattern. A pause stops all domains, and may have to wait for one of them: its
/// samples are those of all threads of its process.
inline constexpr std::string_view pause_pattern = "pause";

/// A fold over the stream. Memory is bounded. One thread.
class Profile final : public Sink, private DomainActivity::Observer {
 public:
  explicit Profile(ProfileOptions options);
  ~Profile() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// After summary(). Its texts are those of the registry's stacks.
  ProfileReport report(const Registry& registry) const;

  static constexpr std::size_t max_labels = 4096, max_processes = std::size_t{1} << 16,
                               max_counted_domains = std::size_t{1} << 16, max_other_names = 20, max_cpus = 4096;

 private:
  struct Known {
    std::int32_t pid = 0;
    std::string comm{};
    std::string program{};
  };
  /// What a domain allocated, by the counters of its ring.
  struct Allocated {
    std::uint64_t minor_bytes = 0, major_bytes = 0;
    std::uint64_t promoted_bytes = 0;  ///< in major_bytes, and before in minor_bytes
    bool has_minor = false, has_major = false;
  };
  using DomainKey = std::pair<ProcessIndex, std::int32_t>;

  void sample(const Event& event, const Batch& batch, const Registry& registry);
  void compare(const SampleKey& key, const SampleValue& value, const Event& event, const Sample& sample,
               const DomainActivity::Domain* domain, const Registry& registry);
  void counter(const Event& event, const Registry& registry);
  void count_cpu_time(const Event& event, const Batch& batch);
  void end_cpu_time(std::int32_t pid, std::uint64_t time_ns);
  std::uint32_t label_of(const DomainActivity::Domain* domain, const Sample& sample, const Registry& registry);
  std::uint32_t label(std::string name);
  void on_span_end(ProcessIndex process, std::uint16_t domain, const OpenSpan& span, std::uint64_t time_ns,
                   bool is_known) override;
  void on_pause_end(ProcessIndex process, std::uint64_t begin_ns, std::uint64_t end_ns, bool is_known) override;
  bool matches(const OpenSpan& span, const Registry& registry);
  /// When the open spans began that the option means, of the domain or of the fiber of the scope.
  std::vector<std::uint64_t> begins_in(const SlowScope& scope, const DomainActivity::Domain* domain,
                                       const Registry& registry);
  bool is_about_pauses() const { return options_.in && options_.in->pattern == pause_pattern; }
  void describe(ProcessIndex index, const Registry& registry);
  void add_entries(ProfileReport& report, const Registry& registry) const;
  LargeBlockNodes large_blocks(CallTree& tree, const StackTable& stacks) const;
  void scale_allocations(ProfileReport& report, const std::vector<ProcessIndex>& indices) const;

  ProfileOptions options_;
  DomainActivity activity_{*this};
  SampleFold fold_;
  SampleFold on_cpu_;  ///< of a report about allocations
  std::optional<SlowSamples> slow_;
  std::map<std::string, std::uint32_t> label_indices_;
  std::vector<std::string> labels_;
  std::unordered_map<ProcessIndex, Known> processes_;
  std::map<DomainKey, Allocated> allocated_;
  std::set<std::string> other_names_;
  std::array<std::uint64_t, 3> samples_of_kind_{};
  struct OnCpu {
    std::uint64_t since_ns;
    std::int32_t pid;
  };
  std::map<std::uint32_t, OnCpu> running_;  ///< traced threads, by CPU
  std::uint64_t cpu_ns_ = 0;
  std::uint64_t unknown_process_ = 0, dropped_ = 0;
  bool switches_seen_ = false;
  bool may_have_run_ = false;  ///< any thread: there are events of it, or some are missing
  bool has_pauses_ = false;
  const Registry* registry_ = nullptr;  ///< while events come
  RunHeader header_{};
  std::uint64_t last_ns_ = 0;
  bool truncated_ = false;
};

}  // namespace rtev
