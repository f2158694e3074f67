#include "server/store/copy/tables.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace attune::store::copy {
namespace {

Column Int(std::string name) { return {std::move(name), Type::kInt}; }
Column Bool(std::string name) { return {std::move(name), Type::kBool}; }
Column Real(std::string name) { return {std::move(name), Type::kReal}; }
Column Text(std::string name) { return {std::move(name), Type::kText}; }
Column FreeText(std::string name) { return {std::move(name), Type::kFreeText}; }
Column Bytes(std::string name) { return {std::move(name), Type::kBytes}; }

// PostgreSQL keeps a job's problem as text; SQLite needs a row for each. Those of no trial come after all others.
constexpr char kProblems[] =
    "SELECT id, text FROM problems UNION ALL"
    " SELECT (SELECT coalesce(max(id), 0) FROM problems) + row_number() OVER (ORDER BY problem COLLATE \"C\"), problem"
    " FROM (SELECT DISTINCT problem FROM jobs WHERE problem IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM problems WHERE text = problem)) AS named";

std::vector<Table> Names() {
  return {
      {.name = "problems",
       .keys = 1,
       .columns = {Int("id"), Text("text")},
       .postgresql_source = absl::StrCat("(", kProblems, ") AS problems")},
      {.name = "devices", .keys = 1, .columns = {Int("id"), Text("name")}},
      {.name = "device_classes", .keys = 1, .columns = {Int("id"), Text("fingerprint")}},
      {.name = "families", .keys = 1, .columns = {Int("id"), Text("name")}},
      // A variant without a trial is of no use, and PostgreSQL does not say of which family it is.
      {.name = "variants",
       .keys = 1,
       .columns = {Int("id"), {"family_id", Type::kInt, "", "family_id"}, Text("text"), Bytes("message")},
       .postgresql_source = "(SELECT variants.*, (SELECT family_id FROM trials WHERE variant_id = variants.id"
                            " ORDER BY id LIMIT 1) AS family_id FROM variants"
                            " WHERE EXISTS (SELECT 1 FROM trials WHERE variant_id = variants.id)) AS variants"},
      {.name = "dependencies",
       .keys = 1,
       .columns = {Int("id"), Text("toolchain"), Text("driver"), Text("device_fingerprint"), Text("source_hash")},
       .own_columns = {"seen"}},
  };
}

std::vector<Table> Results() {
  return {
      {.name = "trials",
       .keys = 1,
       .columns = {Int("id"),
                   Int("problem_id"),
                   Int("device_id"),
                   Int("uuid_id"),
                   Int("family_id"),
                   Int("variant_id"),
                   Int("dependencies_id"),
                   Int("policy"),
                   Int("verdict"),
                   Real("rank_us"),
                   Int("finish_ns"),
                   Bool("retry"),
                   FreeText("job"),
                   {"bytes", Type::kInt,
                    "coalesce((SELECT length(message) FROM trial_bodies WHERE trial_id = trials.id), 0)"
                    " + coalesce((SELECT length(message) FROM trial_recipes WHERE trial_id = trials.id), 0)",
                    ""}}},
      {.name = "trial_bodies", .keys = 1, .columns = {Int("trial_id"), Bytes("message")}, .numbered = false},
      {.name = "trial_recipes", .keys = 1, .columns = {Int("trial_id"), Bytes("message")}, .numbered = false},
      {.name = "trial_reports",
       .keys = 1,
       .columns = {Int("trial_id"), Bytes("profile"), Bytes("sanitizing")},
       .numbered = false},
      {.name = "trial_uses",
       .keys = 2,
       .columns = {Int("problem_id"), Int("dependencies_id"), Int("used_ns")},
       .numbered = false},
      {.name = "incumbents",
       .keys = 1,
       .columns = {Int("id"), Int("problem_id"), Int("class_id"), Int("device_id"), Int("policy"), Int("trial_id"),
                   Int("promote_ns"), Int("previous_id"), Bool("served"), Bool("pinned"), FreeText("job"),
                   FreeText("why"), FreeText("rolled_back_why"), Bytes("ties"), Bytes("timing")},
       .own_columns = {"changed"}},
      {.name = "retimings",
       .keys = 1,
       .columns = {Int("id"), Int("problem_id"), Int("device_id"), Int("uuid_id"), Int("class_id"), Int("policy"),
                   Int("finish_ns"), Bytes("message")}},
      {.name = "baselines",
       .keys = 1,
       .columns = {Int("id"), Int("problem_id"), Int("device_id"), Int("policy"), Text("contender"), Bytes("message")}},
      {.name = "artifacts",
       .keys = 2,
       .columns = {Text("compile_key"), Text("toolchain"), Int("verdict"), FreeText("log"), Text("sha256"),
                   Bytes("entries"), Real("compile_ms"), Int("put_ns")},
       .numbered = false,  // not by what names them
       .own_columns = {"id"}},
      {.name = "submission_files",
       .keys = 1,
       .columns = {Text("content_hash"), Bytes("message")},
       .numbered = false,
       .rows_at_a_time = 20},
      {.name = "submissions",
       .keys = 1,
       .columns = {Int("id"), Text("content_hash"), Text("principal"), Text("loop"), Int("iteration"), Int("state"),
                   Text("operation"), Bytes("message")}},
  };
}

// Leases are not copied: who held a job is not there. Its next holder has a greater epoch all the same.
std::vector<Table> Jobs(absl::string_view home) {
  return {
      {.name = "jobs",
       .keys = 1,
       .columns = {Int("id"),
                   Text("name"),
                   {"parent", Type::kText, "",
                    "(SELECT whole.name FROM jobs AS whole WHERE whole.id = jobs.parent_id)"},
                   {"parent_id", Type::kInt, "(SELECT whole.id FROM jobs AS whole WHERE whole.name = jobs.parent)", ""},
                   Int("kind"),
                   Bytes("request"),
                   Text("request_id"),
                   FreeText("identity"),
                   {"problem_id", Type::kInt, "", "problem_id"},
                   {"problem", Type::kText, "(SELECT text FROM problems WHERE problems.id = jobs.problem_id)", ""},
                   Bool("done"),
                   Bool("cancelled"),
                   Bytes("operation"),
                   Int("epoch"),
                   Int("end_ns"),
                   {"home", Type::kText, absl::StrCat("'", absl::StrReplaceAll(home, {{"'", "''"}}), "'"), ""}},
       .postgresql_source = absl::StrCat("(SELECT jobs.*, named.id AS problem_id FROM jobs LEFT JOIN (", kProblems,
                                         ") AS named ON named.text = jobs.problem) AS jobs"),
       .own_columns = {"holder", "lease_until_ns", "lease_until", "created", "device_class", "priority", "lost_by"},
       .rows_at_a_time = 50},
      {.name = "job_request_ids",
       .keys = 1,
       .columns = {Text("request_id"), Int("job_id"), FreeText("identity")},
       .numbered = false},
  };
}

Table Blobs() {
  return {.name = "blobs",
          .keys = 1,
          .columns = {Int("id"), Text("principal"), Text("namespace"), Text("key"), Text("file"), Bool("shared"),
                      Text("sha256"), Int("bytes"), Int("put_ns"), Int("used_ns")}};
}

const std::string& ExpressionOf(const Column& column, Database in) {
  const std::string& other = in == Database::kSqlite ? column.sqlite : column.postgresql;
  return other.empty() ? column.name : other;
}

// The rows that `to` gets of those in `from`.
const std::string& SourceOf(const Table& table, Database from, Database to) {
  const bool made = from == Database::kPostgresql && to == Database::kSqlite && !table.postgresql_source.empty();
  return made ? table.postgresql_source : table.name;
}

}  // namespace

std::vector<Table> Tables(absl::string_view home) {
  std::vector<Table> all = Names();
  for (Table& table : Results()) all.push_back(std::move(table));
  for (Table& table : Jobs(home)) all.push_back(std::move(table));
  all.push_back(Blobs());
  return all;
}

bool IsStoredIn(const Column& column, Database database) {
  return (database == Database::kSqlite ? column.sqlite : column.postgresql).empty();
}

std::vector<Column> ColumnsOf(const Table& table, Database to) {
  std::vector<Column> stored;
  for (const Column& column : table.columns) {
    if (IsStoredIn(column, to)) stored.push_back(column);
  }
  return stored;
}

std::string SelectRows(const Table& table, Database from, Database to) {
  std::vector<std::string> values;
  for (const Column& column : ColumnsOf(table, to)) values.push_back(ExpressionOf(column, from));
  std::vector<std::string> order;
  for (size_t i = 0; i < table.keys; ++i) {
    const Column& key = table.columns[i];
    const bool as_bytes = from == Database::kPostgresql && key.type == Type::kText;  // as SQLite orders texts
    order.push_back(absl::StrCat(key.name, as_bytes ? " COLLATE \"C\"" : ""));
  }
  return absl::StrCat("SELECT ", absl::StrJoin(values, ", "), " FROM ", SourceOf(table, from, to), " ORDER BY ",
                      absl::StrJoin(order, ", "));
}

std::string CountRows(const Table& table, Database from, Database to) {
  return absl::StrCat("SELECT count(*) FROM ", SourceOf(table, from, to));
}

}  // namespace attune::store::copy
