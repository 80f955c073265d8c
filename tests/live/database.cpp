// SPDX-License-Identifier: MIT
#include "live/database.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "live/http.hpp"
#include "support/files.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

/// Where scripts/test unpacked it.
fs::path unpacked(const std::string& name) {
  return fs::path(RTEV_DATABASES) / name;
}

/// Databases write 64-bit integers as strings.
Json with_numbers(Json row) {
  for (Json& value : row) {
    if (!value.is_string()) continue;
    const auto& text = value.get_ref<const std::string&>();
    const bool is_integer = !text.empty() && text.find_first_not_of("0123456789", text[0] == '-') == std::string::npos;
    if (is_integer && text != "-") value = Json(std::stoll(text));
  }
  return row;
}

class ClickHouse final : public Database {
 public:
  explicit ClickHouse(const fs::path& folder) : Database("clickhouse"), port_(free_port()) {
    const fs::path config = folder / "config.xml";
    std::ofstream(config) << fmt::format(R"(<yandex>
  <path>{0}/data/</path><tmp_path>{0}/tmp/</tmp_path>
  <listen_host>127.0.0.1</listen_host><tcp_port>{1}</tcp_port>
  <users_config>{0}/config.xml</users_config><mark_cache_size>16777216</mark_cache_size>
  <logger><level>warning</level><log>{0}/log</log><errorlog>{0}/errors</errorlog></logger>
  <default_profile>default</default_profile><default_database>default</default_database>
  <profiles><default></default></profiles><quotas><default></default></quotas>
  <users><default><password></password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default></users>
</yandex>)",
                                         folder.string(), port_);
    server_.emplace(
        Command{.argv = {unpacked("clickhouse") / "bin/clickhouse-server", "--config-file=" + config.string()},
                .directory = folder});
    const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
    while (run_sql("SELECT 1").status.code() != 0) {
      if (!server_->running() || std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("ClickHouse does not answer: " + read_file(folder / "errors"));
    }
  }

 private:
  Command import_command(const std::string& script) const override {
    std::string client =
        fmt::format("{} --port {}", (unpacked("clickhouse") / "bin/clickhouse-client").string(), port_);
    return {.argv = {script}, .env = {{"CLICKHOUSE", std::move(client)}}};
  }
  Outcome run_sql(const std::string& sql) const override {
    return run({.argv = {unpacked("clickhouse") / "bin/clickhouse-client", "--port", std::to_string(port_), "--query",
                         sql + " FORMAT JSONEachRow"}});
  }

  std::uint16_t port_;
  std::optional<Process> server_;
};

class DuckDb final : public Database {
 public:
  explicit DuckDb(const fs::path& folder) : Database("duckdb"), file_(folder / "fleet.duckdb") {}

 private:
  Command import_command(const std::string& script) const override {
    return {.argv = {script, file_},
            .env = {{"DUCKDB", "node " RTEV_DUCKDB_SHELL}, {"RTEV_DUCKDB", unpacked("duckdb")}}};
  }
  Outcome run_sql(const std::string& sql) const override {
    Process process({.argv = {"node", RTEV_DUCKDB_SHELL, file_}, .env = {{"RTEV_DUCKDB", unpacked("duckdb")}}});
    process.write(sql);
    process.close_stdin();
    return process.wait();
  }

  std::string file_;
};

}  // namespace

Database::Database(std::string name) : folder_(fs::path(RTEV_CONTRIB) / std::move(name)) {}

void Database::import(const std::vector<std::string>& files, const std::string& label) const {
  Command command = import_command(folder_ / "import");
  command.argv.insert(command.argv.end(), files.begin(), files.end());
  command.env["LABEL"] = label;
  command.env["PATH"] = fs::path(tool()).parent_path().string() + ":" + std::getenv("PATH");
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
}

std::vector<Json> Database::rows(const std::string& sql) const {
  const Outcome outcome = run_sql(sql);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err << sql;
  std::vector<Json> rows;
  for (Json& row : json_lines(outcome.out)) rows.push_back(with_numbers(std::move(row)));
  return rows;
}

std::vector<Json> Database::answer(const std::string& query) const {
  std::string sql = read_file(folder_ / "queries" / (query + ".sql"));
  EXPECT_FALSE(sql.empty()) << query;
  while (sql.ends_with('\n') || sql.ends_with(';')) sql.pop_back();
  return rows(sql);
}

std::string database_obstacle(const std::string& name) {
  return fs::exists(unpacked(name) / ".complete") ? "" : "there is no " + name + " in " RTEV_DATABASES;
}

std::unique_ptr<Database> start_database(const std::string& name, const fs::path& folder) {
  fs::create_directories(folder / "data");
  if (name == "duckdb") return std::make_unique<DuckDb>(folder);
  return std::make_unique<ClickHouse>(folder);
}

}  // namespace rtev::test
