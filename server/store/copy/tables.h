// What two databases' tables have in common: which rows and columns are copied, and how one database reads what only
// the other stores.
#ifndef ATTUNE_SERVER_STORE_COPY_TABLES_H_
#define ATTUNE_SERVER_STORE_COPY_TABLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attune::store::copy {

enum class Database { kSqlite, kPostgresql };

// kFreeText is text that may hold any byte: TEXT in SQLite, bytea in PostgreSQL.
enum class Type { kInt, kBool, kReal, kText, kFreeText, kBytes };

struct Column {
  std::string name;
  Type type;
  // What gives it in a database that has no such column; empty: that stores it.
  std::string sqlite = {};
  std::string postgresql = {};
};

struct Table {
  std::string name;
  size_t keys;  // the first so many columns tell the rows apart
  std::vector<Column> columns;
  bool numbered = true;  // PostgreSQL numbers the rows, in the column id
  // What SQLite's rows are made of, where that is not PostgreSQL's table as it is.
  std::string postgresql_source = {};
  // Columns that either database keeps for itself, or makes anew.
  std::vector<std::string> own_columns = {};
  int rows_at_a_time = 200;
};

// Each after those that it refers to. `home` is whose the jobs are that come from SQLite: a holder (queue.h).
std::vector<Table> Tables(absl::string_view home);

bool IsStoredIn(const Column& column, Database database);

// The columns of `table` that a store on `to` has: these are copied to it, and compared.
std::vector<Column> ColumnsOf(const Table& table, Database to);

// Reads the rows of `table` in `from` as `to` stores them, in the order of their keys.
std::string SelectRows(const Table& table, Database from, Database to);
std::string CountRows(const Table& table, Database from, Database to);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_TABLES_H_
