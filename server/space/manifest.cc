#include "server/space/manifest.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/attune/quote.h"
#include "server/space/builtins.h"
#include "server/space/evaluator.h"
#include "server/space/expression.h"
#include "server/space/strides.h"
#include "server/space/tensor_map.h"

namespace attune::space {
namespace {

template <typename... What>
absl::Status Invalid(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

bool IsName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// The names that parameters and lets add to those that every manifest has.
class Names {
 public:
  Names() {
    for (const Builtin& builtin : Builtins()) taken_.insert(std::string(builtin.name));
  }

  absl::Status Add(absl::string_view field, const std::string& name) {
    if (!IsName(name)) return Invalid(field, " is '", name, "'; allowed: letters, digits and _");
    if (IsFunction(name)) return Invalid(field, " is '", name, "', which is a function");
    if (!taken_.insert(name).second) return Invalid(field, " is '", name, "', which is taken");
    return absl::OkStatus();
  }

 private:
  std::set<std::string> taken_;
};

absl::Status CheckParameter(const family::v1::Parameter& parameter) {
  const std::string field = absl::StrCat("parameters '", parameter.name(), "': ");
  constexpr int64_t kMaxExact = int64_t{1} << 53;  // expressions compute in doubles
  if (parameter.values().empty()) return Invalid(field, "values is empty");
  std::set<int64_t> values(parameter.values().begin(), parameter.values().end());
  if (static_cast<int>(values.size()) != parameter.values_size()) return Invalid(field, "values has one twice");
  if (*values.begin() < -kMaxExact || *values.rbegin() > kMaxExact) {
    return Invalid(field, "values has one beyond 2^53");
  }
  if (parameter.binding() == family::v1::Parameter::BINDING_UNSPECIFIED) {
    return Invalid(field, "binding is not given; allowed: BINDING_COMPILE_TIME and BINDING_LAUNCH_TIME");
  }
  if (values.count(parameter.guess()) == 0) {
    return Invalid(field, "guess is ", parameter.guess(), ", which is not among its values");
  }
  if (parameter.has_when_absent() && values.count(parameter.when_absent()) == 0) {
    return Invalid(field, "when_absent is ", parameter.when_absent(), ", which is not among its values");
  }
  return absl::OkStatus();
}

// Points of the space, which are counted one by one where nothing prunes them.
absl::Status CheckProduct(const family::v1::KernelFamily& manifest) {
  constexpr double kMostPoints = 1e12;
  double points = 1;
  for (const family::v1::Parameter& parameter : manifest.parameters()) points *= parameter.values_size();
  if (points > kMostPoints) return Invalid("parameters: ", points, " combinations; allowed: ", kMostPoints);
  return absl::OkStatus();
}

absl::Status CheckReasons(const family::v1::KernelFamily& manifest) {
  for (const auto& [field, rules] :
       {std::pair("problem_limits", &manifest.problem_limits()), std::pair("constraints", &manifest.constraints())}) {
    for (int i = 0; i < rules->size(); ++i) {
      if (rules->Get(i).reason().empty()) return Invalid(field, "[", i, "].reason is empty; people are shown it");
    }
  }
  return absl::OkStatus();
}

// A definition given twice is a compiler's warning at best.
absl::Status CheckDefines(const family::v1::KernelFamily& manifest) {
  std::set<std::string> defined;
  for (const family::v1::Parameter& parameter : manifest.parameters()) defined.insert(parameter.name());
  for (const family::v1::Named& define : manifest.defines()) {
    if (!IsName(define.name())) return Invalid("defines: name is '", define.name(), "'");
    if (!defined.insert(define.name()).second) {
      return Invalid("defines: name is '", define.name(), "', which is a parameter or another define");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRole(const family::v1::KernelFamily& manifest) {
  const bool plain_alone = manifest.parameters_size() == 1 && manifest.parameters(0).name() == "PLAIN";
  if (manifest.role() == family::v1::ROLE_REFERENCE && !plain_alone) {
    return Invalid("parameters: a family of ROLE_REFERENCE has PLAIN, and no other");
  }
  if (manifest.role() == family::v1::ROLE_FLOOR &&
      (!manifest.parameters().empty() || manifest.launches_size() != 1 || !manifest.launches(0).args().empty())) {
    return Invalid("launches: a family of ROLE_FLOOR has one, without args, and no parameters");
  }
  return absl::OkStatus();
}

// Of CUDA alone.
absl::Status CheckBackend(const family::v1::KernelFamily& manifest) {
  if (manifest.backend() == v1::BACKEND_CUDA) return absl::OkStatus();
  for (const family::v1::Launch& launch : manifest.launches()) {
    const std::string field = absl::StrCat("launches '", launch.entry(), "': ");
    constexpr absl::string_view kAllowed = " is given; allowed with BACKEND_CUDA alone";
    for (int i = 0; i < launch.args_size(); ++i) {
      if (launch.args(i).has_tensor_map()) return Invalid(field, "args[", i, "].tensor_map", kAllowed);
    }
    for (const auto& [name, text] :
         {std::pair("cluster_x", &launch.cluster_x()), std::pair("cluster_y", &launch.cluster_y()),
          std::pair("cluster_z", &launch.cluster_z()), std::pair("overlaps_previous", &launch.overlaps_previous())}) {
      if (!text->empty()) return Invalid(field, name, kAllowed);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLaunches(const family::v1::KernelFamily& manifest) {
  std::set<std::string> scratch;
  for (const family::v1::Scratch& buffer : manifest.scratch()) {
    if (!IsName(buffer.name())) return Invalid("scratch: name is '", buffer.name(), "'");
    if (!scratch.insert(buffer.name()).second) return Invalid("scratch '", buffer.name(), "' is given twice");
  }
  int mains = 0;
  for (const family::v1::Launch& launch : manifest.launches()) {
    const std::string field = absl::StrCat("launches '", launch.entry(), "': ");
    if (!IsName(launch.entry())) return Invalid("launches: entry is '", launch.entry(), "'");
    mains += launch.main();
    if (launch.main() && !launch.when().empty())
      return Invalid(field, "when is given, but the main launch always runs");
    for (int i = 0; i < launch.args_size(); ++i) {
      const family::v1::Argument& arg = launch.args(i);
      if (arg.kind_case() == family::v1::Argument::KIND_NOT_SET) return Invalid(field, "args[", i, "] is empty");
      if (arg.has_scratch() && scratch.count(arg.scratch()) == 0) {
        return Invalid(field, "args[", i, "].scratch is '", arg.scratch(), "', which is no scratch buffer");
      }
      if (arg.has_buffer() &&
          (arg.buffer() == v1::BUFFER_ROLE_UNSPECIFIED || arg.buffer() == v1::BUFFER_ROLE_SCRATCH)) {
        return Invalid(field, "args[", i,
                       "].buffer must be a tensor or a table of the problem; scratch buffers go by name");
      }
      if (!arg.max_scale_ratio().empty() && !arg.has_f32()) {
        return Invalid(field, "args[", i, "].max_scale_ratio is given; allowed beside f32 alone");
      }
      if (arg.has_stride()) {
        const std::string at = absl::StrCat(field, "args[", i, "].stride");
        if (absl::Status status = CheckStride(at, arg.stride()); !status.ok()) return status;
      }
      if (arg.has_tensor_map()) {
        const std::string at = absl::StrCat(field, "args[", i, "].tensor_map");
        if (absl::Status status = CheckTensorMapArgument(at, arg.tensor_map(), scratch); !status.ok()) return status;
      }
    }
  }
  if (mains != 1) return Invalid("launches: ", mains, " of them are main; allowed is one");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<family::v1::KernelFamily> ParseManifest(const std::string& text) {
  class FirstError : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
      if (text.empty()) text = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
    }
    std::string text;
  };
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  family::v1::KernelFamily manifest;
  if (!parser.ParseFromString(text, &manifest)) return absl::InvalidArgumentError(errors.text);
  return manifest;
}

std::vector<absl::Status> MistakesIn(const family::v1::KernelFamily& manifest) {
  std::vector<absl::Status> mistakes;
  const auto note = [&mistakes](absl::Status status) {
    if (!status.ok()) mistakes.push_back(std::move(status));
  };
  if (!IsName(manifest.name())) {
    note(Invalid("name is ", Quoted(manifest.name()), "; allowed: letters, digits and _"));
  }
  if (manifest.operation() != v1::OPERATION_KIND_ATTENTION_FORWARD) {
    note(Invalid("operation is not given; allowed is OPERATION_KIND_ATTENTION_FORWARD"));
  }
  if (manifest.backend() == v1::BACKEND_UNSPECIFIED) {
    note(Invalid("backend is not given; allowed: BACKEND_CUDA and BACKEND_OPENCL"));
  }
  if (manifest.sources().empty()) note(Invalid("sources is empty"));
  Names names;
  for (const family::v1::Parameter& parameter : manifest.parameters()) {
    note(names.Add("parameters: name", parameter.name()));
    note(CheckParameter(parameter));
  }
  for (const family::v1::Named& let : manifest.lets()) note(names.Add("lets: name", let.name()));
  for (const auto check : {CheckProduct, CheckReasons, CheckDefines, CheckLaunches, CheckBackend, CheckRole}) {
    note(check(manifest));
  }
  // Expressions are about names, and take them to be right.
  if (mistakes.empty()) return Evaluator::MistakesIn(manifest);
  return mistakes;
}

absl::Status CheckManifest(const family::v1::KernelFamily& manifest) {
  const std::vector<absl::Status> mistakes = MistakesIn(manifest);
  return mistakes.empty() ? absl::OkStatus() : mistakes.front();
}

}  // namespace attune::space
