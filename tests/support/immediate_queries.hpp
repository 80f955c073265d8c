// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <utility>

#include "helper/process_queries.hpp"

namespace rtev::test {

/// Looks at a folder that is like /proc at once, and delivers the answers with the next process().
class ImmediateQueries final : public ProcessQueries {
 public:
  explicit ImmediateQueries(const std::filesystem::path& proc) : procfs_(proc) {}

  void ask(ProcessQuery query, std::uint32_t, Answer answer) override {
    answers_.emplace_back(std::move(answer), look_at(procfs_, query));
    asked_.signal();
  }
  int event_fd() const override { return asked_.get(); }
  void process(std::uint64_t) override {
    asked_.clear();
    while (!answers_.empty()) {
      auto [answer, view] = std::move(answers_.front());
      answers_.pop_front();
      answer(std::move(view));
    }
  }
  std::optional<std::uint64_t> next_deadline_ns() const override { return std::nullopt; }
  bool is_idle() const override { return answers_.empty(); }

 private:
  Procfs procfs_;
  EventFd asked_;
  std::deque<std::pair<Answer, ProcessView>> answers_;
};

}  // namespace rtev::test
