#include "server/space/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/space/builtins.h"
#include "server/space/tensor_map.h"

namespace attune::space {
namespace {

absl::Status At(absl::string_view field, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", status.message()));
}

std::string OrOne(const std::string& text) { return text.empty() ? "1" : absl::StrCat("(", text, ")"); }

std::string Unless(const std::string& when) { return when.empty() ? "" : absl::StrCat("!(", when, ") || "); }

constexpr absl::string_view kHopper = "compute_capability >= 90";

// What a launch asks of thread block clusters, tensor copies and programmatic launches (CUDA C++ Programming Guide,
// "Thread Block Clusters"). `limit` takes an expression and the reason.
template <typename Limit>
void HopperLimits(const family::v1::Launch& launch, const Limit& limit) {
  const std::pair<const std::string*, const std::string*> sides[] = {{&launch.cluster_x(), &launch.grid_x()},
                                                                     {&launch.cluster_y(), &launch.grid_y()},
                                                                     {&launch.cluster_z(), &launch.grid_z()}};
  std::string ctas;
  for (const auto& [cluster, grid] : sides) {
    if (cluster->empty()) continue;
    absl::StrAppend(&ctas, ctas.empty() ? "" : " * ", "(", *cluster, ")");
    limit(absl::StrCat("mod(", OrOne(*grid), ", ", OrOne(*cluster), ") == 0"), "clusters do not divide the grid");
  }
  if (!ctas.empty()) {
    limit(absl::StrCat(ctas, " <= 16"), "a cluster larger than CUDA allows");
    limit(absl::StrCat(ctas, " == 1 || ", kHopper), "the device has no clusters");
  }
  if (!launch.overlaps_previous().empty()) {
    limit(absl::StrCat("!(", launch.overlaps_previous(), ") || ", kHopper), "the device has no programmatic launches");
  }
  for (const family::v1::Argument& arg : launch.args()) {
    if (!arg.has_tensor_map()) continue;
    limit(absl::StrCat(Unless(arg.tensor_map().when()), kHopper), "the device has no tensor copies");
  }
}

}  // namespace

std::vector<family::v1::Constraint> DeviceLimits(const family::v1::KernelFamily& manifest) {
  std::vector<family::v1::Constraint> limits;
  for (const family::v1::Launch& launch : manifest.launches()) {
    const std::string unless = Unless(launch.when());
    const auto limit = [&](absl::string_view expr, absl::string_view reason) {
      family::v1::Constraint& added = limits.emplace_back();
      added.set_expr(absl::StrCat(unless, expr));
      added.set_reason(absl::StrCat(launch.entry(), ": ", reason));
    };
    limit(absl::StrCat(OrOne(launch.block_x()), " * ", OrOne(launch.block_y()), " * ", OrOne(launch.block_z()),
                       " <= max_threads"),
          "more threads than the device allows a block");
    if (manifest.backend() != v1::BACKEND_CUDA) continue;
    if (!launch.dynamic_shared_bytes().empty()) {
      limit(absl::StrCat("(", launch.dynamic_shared_bytes(), ") <= shared_per_block"),
            "more dynamic shared memory than the device allows a block");
    }
    if (!launch.grid_x().empty()) {
      limit(absl::StrCat("(", launch.grid_x(), ") <= 2147483647"), "a grid wider than CUDA allows");
    }
    for (const std::string& grid : {launch.grid_y(), launch.grid_z()}) {
      if (!grid.empty()) limit(absl::StrCat("(", grid, ") <= 65535"), "a grid higher or deeper than CUDA allows");
    }
    HopperLimits(launch, limit);
  }
  return limits;
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Compile(const family::v1::KernelFamily& manifest) {
  std::unique_ptr<Evaluator> evaluator(new Evaluator);
  evaluator->CompileAll(manifest);
  if (!evaluator->mistakes_.empty()) return evaluator->mistakes_.front();
  return evaluator;
}

std::vector<absl::Status> Evaluator::MistakesIn(const family::v1::KernelFamily& manifest) {
  Evaluator evaluator;
  evaluator.CompileAll(manifest);
  return std::move(evaluator.mistakes_);
}

void Evaluator::CompileAll(const family::v1::KernelFamily& manifest) {
  CompileNames(manifest);
  CompileDefines(manifest);
  CompileLaunches(manifest);
  CompileRules(manifest);
}

void Evaluator::CompileNames(const family::v1::KernelFamily& manifest) {
  for (const Builtin& builtin : Builtins()) builtins_.push_back(&symbols_.Add(builtin.name, 0, false).value);
  for (const family::v1::Parameter& parameter : manifest.parameters()) {
    const int depth = static_cast<int>(parameters_.size()) + 1;
    const bool launch_time = parameter.binding() == family::v1::Parameter::BINDING_LAUNCH_TIME;
    parameters_.push_back(&symbols_.Add(parameter.name(), depth, launch_time).value);
  }
  levels_.resize(parameters_.size() + 1);
  for (const family::v1::Named& let : manifest.lets()) {
    absl::StatusOr<Expression> expression = Expression::Parse(let.expr(), symbols_);
    if (!expression.ok()) {
      mistakes_.push_back(At(absl::StrCat("lets '", let.name(), "': expr"), expression.status()));
      symbols_.Add(let.name(), 0, false);  // else every expression that mentions it would be a mistake, too
      continue;
    }
    Symbol& symbol = symbols_.Add(let.name(), expression->depth(), expression->launch_time());
    levels_[symbol.depth].lets.push_back({*std::move(expression), &symbol.value});
  }
}

void Evaluator::AddRule(absl::string_view field, const family::v1::Constraint& constraint) {
  absl::StatusOr<Expression> expression = Expression::Parse(constraint.expr(), symbols_);
  if (!expression.ok()) {
    mistakes_.push_back(At(field, expression.status()));
    return;
  }
  std::vector<Rule>& rules = constraint.guess_only() ? guess_rules_ : levels_[expression->depth()].rules;
  rules.push_back({*std::move(expression), constraint.expr(), constraint.reason(), constraint.advice()});
}

void Evaluator::CompileRules(const family::v1::KernelFamily& manifest) {
  // Made of what launches say: where that is wrong, it has been named.
  const bool limits_are_good = mistakes_.empty();
  for (int i = 0; i < manifest.problem_limits_size(); ++i) {
    const family::v1::Constraint& limit = manifest.problem_limits(i);
    const std::string field = absl::StrCat("problem_limits[", i, "].expr");
    if (limit.advice()) {
      mistakes_.push_back(absl::InvalidArgumentError(
          absl::StrCat("problem_limits[", i, "].advice is true; a family that applies advises in its constraints")));
    }
    absl::StatusOr<Expression> expression = Expression::Parse(limit.expr(), symbols_);
    if (!expression.ok()) {
      mistakes_.push_back(At(field, expression.status()));
    } else if (expression->depth() > 0) {
      mistakes_.push_back(absl::InvalidArgumentError(
          absl::StrCat(field, " is '", limit.expr(), "', which depends on parameters; write it as a constraint")));
    } else {
      problem_limits_.push_back({*std::move(expression), limit.expr(), limit.reason()});
    }
  }
  for (int i = 0; i < manifest.constraints_size(); ++i) {
    AddRule(absl::StrCat("constraints[", i, "].expr"), manifest.constraints(i));
  }
  if (limits_are_good) {
    for (const family::v1::Constraint& limit : DeviceLimits(manifest)) AddRule("launches: device limit", limit);
  }
  for (size_t level = 0; level < levels_.size(); ++level) {
    if (!levels_[level].rules.empty()) settled_ = level;
  }
}

const Expression* Evaluator::Keep(absl::string_view field, const std::string& text) {
  const auto it = kept_.find(text);
  if (it != kept_.end()) return &it->second;
  absl::StatusOr<Expression> expression = Expression::Parse(text, symbols_);
  if (!expression.ok()) {
    mistakes_.push_back(At(field, expression.status()));
    return nullptr;
  }
  return &kept_.emplace(text, *std::move(expression)).first->second;
}

void Evaluator::CompileDefines(const family::v1::KernelFamily& manifest) {
  for (const family::v1::Named& define : manifest.defines()) {
    const std::string field = absl::StrCat("defines '", define.name(), "': expr");
    const Expression* expression = Keep(field, define.expr());
    if (expression != nullptr && expression->launch_time()) {
      mistakes_.push_back(
          absl::InvalidArgumentError(absl::StrCat(field, " is '", define.expr(),
                                                  "', which depends on a launch-time parameter; what changes the "
                                                  "code is compile-time")));
    }
  }
}

void Evaluator::CompileLaunches(const family::v1::KernelFamily& manifest) {
  for (const family::v1::Scratch& scratch : manifest.scratch()) {
    Keep(absl::StrCat("scratch '", scratch.name(), "': bytes"), scratch.bytes());
  }
  for (const family::v1::Launch& launch : manifest.launches()) {
    const auto field = [&](absl::string_view name) { return absl::StrCat("launches '", launch.entry(), "': ", name); };
    const std::pair<std::string, const std::string*> optional[] = {
        {field("when"), &launch.when()},           {field("grid_x"), &launch.grid_x()},
        {field("grid_y"), &launch.grid_y()},       {field("grid_z"), &launch.grid_z()},
        {field("block_x"), &launch.block_x()},     {field("block_y"), &launch.block_y()},
        {field("block_z"), &launch.block_z()},     {field("dynamic_shared_bytes"), &launch.dynamic_shared_bytes()},
        {field("cluster_x"), &launch.cluster_x()}, {field("cluster_y"), &launch.cluster_y()},
        {field("cluster_z"), &launch.cluster_z()}, {field("overlaps_previous"), &launch.overlaps_previous()}};
    for (const auto& [name, text] : optional) {
      if (!text->empty()) Keep(name, *text);
    }
    for (int i = 0; i < launch.args_size(); ++i) {
      const family::v1::Argument& arg = launch.args(i);
      for (const auto& [name, text] : ExpressionsOf(arg.tensor_map())) {
        Keep(field(absl::StrCat("args[", i, "].tensor_map.", name)), *text);
      }
      const std::string* text = arg.has_i32()   ? &arg.i32()
                                : arg.has_i64() ? &arg.i64()
                                : arg.has_f32() ? &arg.f32()
                                                : nullptr;
      if (text != nullptr) Keep(field(absl::StrCat("args[", i, "]")), *text);
      if (!arg.max_scale_ratio().empty()) {
        Keep(field(absl::StrCat("args[", i, "].max_scale_ratio")), arg.max_scale_ratio());
      }
    }
  }
}

void Evaluator::Compute(const Level& level) {
  for (const Let& let : level.lets) *let.value = let.expression.Evaluate();
}

const Rule* Evaluator::FirstBroken(const std::vector<Rule>& rules) const {
  for (const Rule& rule : rules) {
    if (rule.advice && advice_ == Advice::kIgnored) continue;
    if (!rule.expression.Holds()) return &rule;
  }
  return nullptr;
}

const Rule* Evaluator::Bind(const Problem& problem, const v1::Device& device, Advice advice) {
  advice_ = advice;
  required_.clear();
  required_until_ = 0;
  for (size_t i = 0; i < builtins_.size(); ++i) *builtins_[i] = Builtins()[i].value(problem, device);
  Compute(levels_[0]);
  return FirstBroken(problem_limits_);
}

absl::Status Evaluator::Require(const std::vector<std::string>& where) {
  required_.clear();
  required_until_ = 0;
  std::vector<std::vector<Rule>> required(where.empty() ? 0 : levels_.size());
  size_t until = 0;
  for (size_t i = 0; i < where.size(); ++i) {
    absl::StatusOr<Expression> expression = Expression::Parse(where[i], symbols_);
    if (!expression.ok()) return At(absl::StrCat("where[", i, "]"), expression.status());
    const auto level = static_cast<size_t>(expression->depth());
    until = std::max(until, level);
    required[level].push_back({*std::move(expression), where[i], "not asked for"});
  }
  required_ = std::move(required);
  required_until_ = until;
  return absl::OkStatus();
}

bool Evaluator::HasRequired() const {
  return std::all_of(required_.begin(), required_.end(),
                     [&](const std::vector<Rule>& rules) { return FirstBroken(rules) == nullptr; });
}

const Rule* Evaluator::BrokenAt(size_t level) const {
  const Rule* rule = FirstBroken(levels_[level].rules);
  return rule != nullptr || required_.empty() ? rule : FirstBroken(required_[level]);
}

const Rule* Evaluator::Root() const {
  const Rule* limit = FirstBroken(problem_limits_);
  return limit != nullptr ? limit : BrokenAt(0);
}

const Rule* Evaluator::Set(size_t index, int64_t value) {
  *parameters_[index] = static_cast<double>(value);
  Compute(levels_[index + 1]);
  return BrokenAt(index + 1);
}

const Rule* Evaluator::Assign(const Problem& problem, const v1::Device& device, absl::Span<const int64_t> values,
                              Advice advice) {
  Bind(problem, device, advice);
  const Rule* broken = Root();
  for (size_t i = 0; i < values.size(); ++i) {
    const Rule* rule = Set(i, values[i]);
    if (broken == nullptr) broken = rule;
  }
  return broken;
}

double Evaluator::Value(const std::string& text) const { return kept_.at(text).Evaluate(); }

bool Evaluator::Holds(const std::string& text) const { return kept_.at(text).Holds(); }

}  // namespace attune::space
