#include "server/catalog/prior/shipped_prior.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"
#include "server/catalog/prior/prior_files.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

// Above 0, and a time at all.
bool ReadUs(absl::string_view word, double& us) { return absl::SimpleAtod(word, &us) && us > 0 && us < 1e12; }

// Each reads the words of a line into the table; what is wrong with them, or empty.
std::string ReadProblem(const std::vector<absl::string_view>& words, PriorTable& table) {
  if (words.size() != 3) return "problem is followed by PROBLEM LEVEL_US";
  const absl::StatusOr<Problem> problem = ParseProblem(words[1]);
  if (!problem.ok()) return std::string(problem.status().message());
  PriorTable::Tuned tuned;
  tuned.problem = *problem;
  if (!ReadUs(words[2], tuned.level_us)) return "microseconds are above 0";
  table.tuned.push_back(std::move(tuned));
  return "";
}

std::string ReadRow(const std::vector<absl::string_view>& words, PriorTable& table) {
  if (table.tuned.empty()) return "a row belongs to a problem; none is named yet";
  if (words.size() != table.parameters.size() + 1) {
    return absl::StrCat("a row is MICROSECONDS and ", table.parameters.size(), " values");
  }
  PriorTable::Row row;
  if (!ReadUs(words[0], row.us)) return "microseconds are above 0";
  for (size_t i = 1; i < words.size(); ++i) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(words[i], &value)) return absl::StrCat("values are whole numbers, and not ", words[i]);
    row.values.push_back(value);
  }
  std::vector<PriorTable::Row>& rows = table.tuned.back().rows;
  if (!rows.empty() && row.us < rows.back().us) return "the rows of a problem are in the order of their times";
  rows.push_back(std::move(row));
  return "";
}

// Reads one line into the table; what is wrong with it, or empty.
std::string ReadLine(absl::string_view line, PriorTable& table) {
  if (absl::ConsumePrefix(&line, "device ")) {
    table.device_model = std::string(line);
    return "";
  }
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words[0] == "compute_capability") {
    const bool good = words.size() == 2 && absl::SimpleAtoi(words[1], &table.compute_capability);
    return good ? "" : "compute_capability is a number, 90 for 9.0";
  }
  if (words[0] == "policy") {
    table.policy = words.size() == 2 ? PolicyOf(words[1]) : v1::POLICY_UNSPECIFIED;
    return table.policy == v1::POLICY_UNSPECIFIED ? "policy is hot, l2-warm or cold" : "";
  }
  if (words[0] == "family") {
    if (words.size() != 3) return "family has a name and a source hash";
    table.family = std::string(words[1]);
    table.source_hash = std::string(words[2]);
    return "";
  }
  if (words[0] == "parameters") {
    if (!table.tuned.empty()) return "parameters come before the first problem";
    table.parameters.clear();
    for (size_t i = 1; i < words.size(); ++i) table.parameters.emplace_back(words[i]);
    return "";
  }
  return words[0] == "problem" ? ReadProblem(words, table) : ReadRow(words, table);
}

std::string VariantText(const PriorTable& table, const PriorTable::Row& row) {
  std::string text = absl::StrCat(table.family, ":");
  for (size_t i = 0; i < row.values.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", table.parameters[i], "=", row.values[i]);
  }
  return text;
}

// Of the families' sources as they are today.
std::optional<space::Variant> VariantOf(const PriorTable& table, const PriorTable::Row& row,
                                        const std::vector<std::shared_ptr<const space::Family>>& families) {
  absl::StatusOr<space::Variant> variant = space::ParseVariant(VariantText(table, row), families);
  if (!variant.ok() || variant->family->source_hash != table.source_hash) return std::nullopt;
  return *std::move(variant);
}

std::vector<PriorTable> ReadShipped() {
  std::vector<PriorTable> tables;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    absl::StatusOr<PriorTable> table = ParsePrior(file.bytes);
    if (table.ok()) {
      tables.push_back(*std::move(table));
    } else {
      LogError("a prior that was shipped cannot be read", {{"file", file.name}, {"error", table.status().message()}});
    }
  }
  return tables;
}

AnswerPtr AnswerOf(const PriorTable& table, const PriorTable::Tuned& tuned, const v1::Device& device, v1::Policy policy,
                   const std::vector<std::shared_ptr<const space::Family>>& families) {
  const PriorTable::Row& fastest = tuned.rows.front();
  std::optional<space::Variant> variant = VariantOf(table, fastest, families);
  if (!variant.has_value()) return nullptr;
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(*variant, tuned.problem, device);
  const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, tuned.problem, device);
  if (!recipe.ok() || !spec.ok()) return nullptr;
  auto answer = std::make_shared<Answer>();
  answer->problem = tuned.problem;
  answer->policy = policy;
  answer->device_class = device.fingerprint();
  answer->compile_key = spec->key;
  v1::GetBestResponse& response = answer->response;
  response.set_provenance_detail(table.device_model);
  response.mutable_timing()->set_median_us(fastest.us);
  *response.mutable_geometry() = space::GeometryOf(*recipe, v1::Resources(), device);
  *response.mutable_recipe() = *std::move(recipe);
  *response.mutable_variant() = variant->ToProto();
  answer->variant = *std::move(variant);
  return answer;
}

}  // namespace

absl::StatusOr<PriorTable> ParsePrior(absl::string_view text) {
  PriorTable table;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::string wrong = ReadLine(line, table);
    if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", wrong));
  }
  for (const PriorTable::Tuned& tuned : table.tuned) {
    if (tuned.rows.empty()) return absl::InvalidArgumentError(absl::StrCat(ToText(tuned.problem), " has no row"));
  }
  if (table.device_model.empty() || table.compute_capability == 0 || table.family.empty()) {
    return absl::InvalidArgumentError("device, compute_capability or family is missing");
  }
  return table;
}

std::string ToText(const PriorTable& table) {
  std::string text = absl::StrCat("# Times of recorded problems' variants. Written by attune-replay prior.\ndevice ",
                                  table.device_model, "\ncompute_capability ", table.compute_capability, "\npolicy ",
                                  Word(table.policy), "\nfamily ", table.family, " ", table.source_hash,
                                  "\nparameters ", absl::StrJoin(table.parameters, " "), "\n");
  for (const PriorTable::Tuned& tuned : table.tuned) {
    absl::StrAppendFormat(&text, "problem %s %.6g\n", ToText(tuned.problem), tuned.level_us);
    for (const PriorTable::Row& row : tuned.rows) {
      absl::StrAppendFormat(&text, "%.6g %s\n", row.us, absl::StrJoin(row.values, " "));
    }
  }
  return text;
}

std::vector<AnswerPtr> PriorAnswers(const std::vector<PriorTable>& tables, const v1::Device& device, v1::Policy policy,
                                    const std::vector<std::shared_ptr<const space::Family>>& families) {
  std::vector<AnswerPtr> answers;
  for (const PriorTable& table : tables) {
    if (device.backend() != v1::BACKEND_CUDA || table.policy != policy) continue;
    if (table.compute_capability != device.compute_capability()) continue;
    for (const PriorTable::Tuned& tuned : table.tuned) {
      AnswerPtr answer = AnswerOf(table, tuned, device, policy, families);
      if (answer != nullptr) answers.push_back(std::move(answer));
    }
  }
  return answers;
}

bool IsShipped(const Answer& answer) { return answer.response.trial().empty(); }

TunedProblem ShippedProblem::Read(const std::vector<std::shared_ptr<const space::Family>>& families) const {
  TunedProblem read;
  read.problem = tuned->problem;
  read.level_us = tuned->level_us;
  for (const PriorTable::Row& row : tuned->rows) {
    std::optional<space::Variant> variant = VariantOf(*table, row, families);
    if (!variant.has_value()) continue;
    read.variants.push_back(*std::move(variant));
    read.us.push_back(row.us);
  }
  return read;
}

std::vector<ShippedProblem> ShippedFor(const std::vector<PriorTable>& tables, const v1::Device& device,
                                       v1::Policy policy) {
  std::vector<ShippedProblem> shipped;
  for (const PriorTable& table : tables) {
    if (table.policy != policy || table.device_model != device.model()) continue;
    for (const PriorTable::Tuned& tuned : table.tuned) shipped.push_back({&table, &tuned});
  }
  return shipped;
}

const std::vector<PriorTable>& ShippedPriors() {
  static const std::vector<PriorTable>* const tables = new std::vector<PriorTable>(ReadShipped());
  return *tables;
}

}  // namespace attune::catalog
