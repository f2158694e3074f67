#include "proto/attune/expand_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune {
namespace {

// Combinations of a product; an unset list that has a default counts as one value.
double SizeOf(const v1::SweepProduct& product) {
  double size = 1;
  for (const int values :
       {product.batch_size(), product.heads_q_size(), product.seq_q_size(), product.head_dim_size()}) {
    size *= values;
  }
  for (const int values : {product.heads_kv_size(), product.seq_kv_size(), product.dtype_size(), product.mask_size()}) {
    size *= std::max(1, values);
  }
  return size;
}

// Before anything is expanded: a plan of a few kilobytes can ask for billions.
absl::Status CheckSize(const v1::SweepPlan& plan) {
  double size = 0;
  for (int i = 0; i < plan.shapes_size(); ++i) {
    size += plan.shapes(i).problem_size();
    if (plan.shapes(i).has_product()) size += SizeOf(plan.shapes(i).product());
    if (size > static_cast<double>(kMostProblems)) {
      return absl::InvalidArgumentError(absl::StrCat("shapes[", i, "]: with it the plan comes to ", size,
                                                     " problems, the same ones counted each time; allowed: at most ",
                                                     kMostProblems));
    }
  }
  return absl::OkStatus();
}

class Expansion {
 public:
  absl::Status AddText(const std::string& text, const std::string& entry) {
    absl::StatusOr<Problem> problem = ParseProblem(text);
    if (!problem.ok()) return absl::InvalidArgumentError(absl::StrCat(entry, ": ", problem.status().message()));
    if (seen_.insert(ToText(*problem)).second) problems_.push_back(*problem);
    return absl::OkStatus();
  }

  absl::Status AddProduct(const v1::SweepProduct& product, const std::string& entry) {
    const std::pair<const char*, int> required[] = {{"batch", product.batch_size()},
                                                    {"heads_q", product.heads_q_size()},
                                                    {"seq_q", product.seq_q_size()},
                                                    {"head_dim", product.head_dim_size()}};
    for (const auto& [field, size] : required) {
      if (size == 0) {
        return absl::InvalidArgumentError(absl::StrCat(entry, ".", field, " is empty; at least one value is needed"));
      }
    }
    // An empty list stands for one value: "" leaves the part out of the text.
    const std::vector<std::string> kv_heads = Parts(product.heads_kv(), ".kvh");
    const std::vector<std::string> kv_lengths = Parts(product.seq_kv(), ".kv");
    std::vector<std::string> dtypes(product.dtype().begin(), product.dtype().end());
    if (dtypes.empty()) dtypes.emplace_back("f16");
    std::vector<std::string> masks;
    for (const std::string& mask : product.mask()) {
      if (mask != "none" && mask != "causal" && mask != "causal-br") {
        return absl::InvalidArgumentError(
            absl::StrCat(entry, ".mask is ", Quoted(mask), "; allowed: none, causal, causal-br"));
      }
      masks.push_back(mask == "none" ? "" : absl::StrCat(".", mask));
    }
    if (masks.empty()) masks.emplace_back();

    std::vector<std::string> texts = {""};
    Multiply(texts, Parts(product.batch(), "b"));
    Multiply(texts, Parts(product.heads_q(), ".h"));
    Multiply(texts, kv_heads);
    Multiply(texts, Parts(product.seq_q(), ".q"));
    Multiply(texts, kv_lengths);
    Multiply(texts, Parts(product.head_dim(), ".d"));
    for (std::string& dtype : dtypes) dtype.insert(0, ".");
    Multiply(texts, dtypes);
    Multiply(texts, masks);
    for (const std::string& text : texts) {
      if (absl::Status status = AddText(text, absl::StrCat(entry, " (", Printable(text), ")")); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  std::vector<Problem> Take() { return std::move(problems_); }

 private:
  static std::vector<std::string> Parts(const google::protobuf::RepeatedField<int64_t>& values, const char* prefix) {
    std::vector<std::string> parts;
    for (int64_t value : values) parts.push_back(absl::StrCat(prefix, value));
    if (parts.empty()) parts.emplace_back();
    return parts;
  }

  static void Multiply(std::vector<std::string>& texts, const std::vector<std::string>& parts) {
    std::vector<std::string> products;
    for (const std::string& text : texts) {
      for (const std::string& part : parts) {
        products.push_back(text + part);
      }
    }
    texts = std::move(products);
  }

  std::set<std::string> seen_;
  std::vector<Problem> problems_;
};

}  // namespace

absl::StatusOr<std::vector<Problem>> ExpandPlan(const v1::SweepPlan& plan) {
  if (!std::isfinite(plan.regression()) || plan.regression() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("regression is ", plan.regression(), "; allowed: positive shares such as 0.02"));
  }
  if (absl::Status status = CheckSize(plan); !status.ok()) return status;
  Expansion expansion;
  for (int i = 0; i < plan.shapes_size(); ++i) {
    const v1::SweepShapes& shapes = plan.shapes(i);
    const std::string entry = absl::StrCat("shapes[", i, "]");
    for (int j = 0; j < shapes.problem_size(); ++j) {
      absl::Status status = expansion.AddText(shapes.problem(j), absl::StrCat(entry, ".problem[", j, "]"));
      if (!status.ok()) return status;
    }
    if (shapes.has_product()) {
      absl::Status status = expansion.AddProduct(shapes.product(), absl::StrCat(entry, ".product"));
      if (!status.ok()) return status;
    }
  }
  std::vector<Problem> problems = expansion.Take();
  if (problems.empty())
    return absl::InvalidArgumentError("shapes: the plan asks for no problem; at least one is needed");
  return problems;
}

}  // namespace attune
