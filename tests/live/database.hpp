// SPDX-License-Identifier: MIT
// ClickHouse and DuckDB, with the files of contrib/, for tests that load recordings into them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// A database of its own, empty at first. What it does not understand fails the test.
class Database {
 public:
  virtual ~Database() = default;

  /// Runs contrib/NAME/import.
  void import(const std::vector<std::string>& files, const std::string& label = {}) const;
  /// The rows that a query gives, by column. Integers are numbers, also those beyond 2^53.
  std::vector<Json> rows(const std::string& sql) const;
  /// The same of contrib/NAME/queries/QUERY.sql.
  std::vector<Json> answer(const std::string& query) const;

 protected:
  explicit Database(std::string name);
  /// `import`, with the arguments before its files.
  virtual Command import_command(const std::string& script) const = 0;
  virtual Outcome run_sql(const std::string& sql) const = 0;

 private:
  std::filesystem::path folder_;  ///< contrib/NAME
};

/// Why the database cannot be used here; empty if it can. `name` is "clickhouse" or "duckdb".
std::string database_obstacle(const std::string& name);
/// Keeps its files in `folder`, and ends with the object.
std::unique_ptr<Database> start_database(const std::string& name, const std::filesystem::path& folder);

}  // namespace rtev::test
