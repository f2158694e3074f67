#include "server/catalog/prior/shipped_prior.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/log.h"
#include "server/catalog/prior/prior_files.h"
#include "server/space/space.h"

namespace attune::catalog {
namespace {

// Reads one line into the table; what is wrong with it, or empty.
std::string ReadLine(absl::string_view line, PriorTable& table) {
  if (absl::ConsumePrefix(&line, "device ")) {
    table.device_model = std::string(line);
    return "";
  }
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
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
    table.family = words[1];
    table.source_hash = words[2];
    return "";
  }
  PriorTable::Row row;
  if (words.size() != 3) return "a row is PROBLEM MICROSECONDS VARIANT";
  const absl::StatusOr<Problem> problem = ParseProblem(words[0]);
  if (!problem.ok()) return std::string(problem.status().message());
  row.problem = *problem;
  if (!absl::SimpleAtod(words[1], &row.us) || !(row.us > 0 && row.us < 1e12)) return "microseconds are above 0";
  row.variant = words[2];
  table.rows.push_back(std::move(row));
  return "";
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

AnswerPtr AnswerOf(const PriorTable& table, const PriorTable::Row& row, const v1::Device& device, v1::Policy policy,
                   const std::vector<std::shared_ptr<const space::Family>>& families) {
  absl::StatusOr<space::Variant> variant = space::ParseVariant(row.variant, families);
  if (!variant.ok() || variant->family->source_hash != table.source_hash) return nullptr;
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(*variant, row.problem, device);
  const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, row.problem, device);
  if (!recipe.ok() || !spec.ok()) return nullptr;
  auto answer = std::make_shared<Answer>();
  answer->problem = row.problem;
  answer->policy = policy;
  answer->device_class = device.fingerprint();
  answer->compile_key = spec->key;
  v1::GetBestResponse& response = answer->response;
  response.set_provenance_detail(table.device_model);
  response.mutable_timing()->set_median_us(row.us);
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
  if (table.device_model.empty() || table.compute_capability == 0 || table.family.empty()) {
    return absl::InvalidArgumentError("device, compute_capability or family is missing");
  }
  return table;
}

std::string ToText(const PriorTable& table) {
  std::string text = absl::StrCat("# Fastest variants of recorded problems. Written by attune-replay prior.\ndevice ",
                                  table.device_model, "\ncompute_capability ", table.compute_capability, "\npolicy ",
                                  Word(table.policy), "\nfamily ", table.family, " ", table.source_hash, "\n");
  for (const PriorTable::Row& row : table.rows) {
    absl::StrAppendFormat(&text, "%s %.6g %s\n", ToText(row.problem), row.us, row.variant);
  }
  return text;
}

std::vector<AnswerPtr> PriorAnswers(const std::vector<PriorTable>& tables, const v1::Device& device, v1::Policy policy,
                                    const std::vector<std::shared_ptr<const space::Family>>& families) {
  std::vector<AnswerPtr> answers;
  for (const PriorTable& table : tables) {
    if (device.backend() != v1::BACKEND_CUDA || table.policy != policy) continue;
    if (table.compute_capability != device.compute_capability()) continue;
    for (const PriorTable::Row& row : table.rows) {
      AnswerPtr answer = AnswerOf(table, row, device, policy, families);
      if (answer != nullptr) answers.push_back(std::move(answer));
    }
  }
  return answers;
}

bool IsShipped(const Answer& answer) { return answer.response.trial().empty(); }

const std::vector<PriorTable>& ShippedPriors() {
  static const std::vector<PriorTable>* const tables = new std::vector<PriorTable>(ReadShipped());
  return *tables;
}

}  // namespace attune::catalog
