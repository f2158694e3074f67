#include "client/cpp/launch/testing/answers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/sha256.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch::testing {
namespace {

v1::GetBestResponse To(const std::string& problem) {
  v1::GetBestResponse answer;
  *answer.mutable_problem() = ToProto(*ParseProblem(problem));
  answer.set_device_id("cuda:0");
  answer.set_provenance(v1::PROVENANCE_EXACT);
  answer.mutable_variant()->set_family("family");
  answer.mutable_variant()->set_text("family:A=1");
  answer.set_artifact_state(v1::ARTIFACT_STATE_READY);
  return answer;
}

void Set(v1::Dim3* dim3, int64_t x, int64_t y, int64_t z) {
  dim3->set_x(x);
  dim3->set_y(y);
  dim3->set_z(z);
}

v1::KernelLaunch* AddLaunch(v1::GetBestResponse& answer, const std::string& entry) {
  v1::KernelLaunch* launch = answer.mutable_recipe()->add_launches();
  launch->set_entry(entry);
  Set(launch->mutable_grid(), 3, 2, 1);
  Set(launch->mutable_block(), 128, 1, 1);
  return launch;
}

void AddBuffer(v1::KernelLaunch* launch, v1::BufferRole role, int scratch = 0) {
  v1::KernelArg::Buffer* buffer = launch->add_args()->mutable_buffer();
  buffer->set_role(role);
  buffer->set_scratch(scratch);
}

void AddScratch(v1::GetBestResponse& answer, const std::string& name, int64_t bytes, bool zeroed) {
  v1::ScratchBuffer* scratch = answer.mutable_recipe()->add_scratch();
  scratch->set_name(name);
  scratch->set_bytes(bytes);
  scratch->set_zero_before_first_run(zeroed);
}

int64_t BytesOf(const v1::KernelArg& arg) {
  return arg.has_tensor_map() ? 128 : arg.has_i32() || arg.has_f32() ? 4 : 8;
}

}  // namespace

void GiveCode(v1::GetBestResponse& answer) {
  std::string module = device::cuda::testing::kFakeModule;
  for (const v1::KernelLaunch& launch : answer.recipe().launches()) {
    absl::StrAppend(&module, launch.entry());
    for (const v1::KernelArg& arg : launch.args()) absl::StrAppend(&module, " ", BytesOf(arg));
    absl::StrAppend(&module, "\n");
  }
  answer.set_artifact(module);
  answer.set_artifact_sha256(Sha256(module));
}

v1::GetBestResponse OneLaunch(const std::string& problem, int mark) {
  v1::GetBestResponse answer = To(problem);
  v1::KernelLaunch* launch = AddLaunch(answer, "main");
  for (const v1::BufferRole role : {v1::BUFFER_ROLE_Q, v1::BUFFER_ROLE_K, v1::BUFFER_ROLE_V, v1::BUFFER_ROLE_O}) {
    AddBuffer(launch, role);
  }
  launch->add_args()->set_i32(mark);
  GiveCode(answer);
  return answer;
}

v1::GetBestResponse TwoLaunches(const std::string& problem, int64_t bytes, int64_t zeroed) {
  v1::GetBestResponse answer = To(problem);
  for (const char* entry : {"main", "combine"}) {
    v1::KernelLaunch* launch = AddLaunch(answer, entry);
    AddBuffer(launch, v1::BUFFER_ROLE_O);
    AddBuffer(launch, v1::BUFFER_ROLE_SCRATCH, 0);
    AddBuffer(launch, v1::BUFFER_ROLE_SCRATCH, 1);
  }
  AddScratch(answer, "partial", bytes, false);
  AddScratch(answer, "counter", zeroed, true);
  GiveCode(answer);
  return answer;
}

v1::GetBestResponse PlainPaged(const std::string& text) {
  v1::GetBestResponse answer = To(text);
  const Problem problem = *ParseProblem(text);
  v1::KernelLaunch* main = AddLaunch(answer, "plain_paged");
  for (const v1::BufferRole role : {v1::BUFFER_ROLE_Q, v1::BUFFER_ROLE_K, v1::BUFFER_ROLE_V}) AddBuffer(main, role);
  for (const int scratch : {0, 1}) AddBuffer(main, v1::BUFFER_ROLE_SCRATCH, scratch);
  for (const v1::BufferRole role : {v1::BUFFER_ROLE_KV_LENGTHS, v1::BUFFER_ROLE_PAGE_TABLE}) AddBuffer(main, role);
  const int64_t width = (problem.seq_kv + problem.page_size - 1) / problem.page_size;
  for (const int64_t number :
       {problem.batch, problem.heads_q, problem.heads_kv, problem.head_dim, problem.page_size, width}) {
    main->add_args()->set_i32(static_cast<int32_t>(number));
  }
  v1::KernelLaunch* combine = AddLaunch(answer, "plain_combine");
  for (const int scratch : {0, 1}) AddBuffer(combine, v1::BUFFER_ROLE_SCRATCH, scratch);
  AddBuffer(combine, v1::BUFFER_ROLE_O);
  const int64_t elements = problem.batch * problem.heads_q * problem.head_dim;
  combine->add_args()->set_i64(elements);
  AddScratch(answer, "partial", 4 * elements, false);
  AddScratch(answer, "counter", 4, true);
  GiveCode(answer);
  return answer;
}

absl::StatusOr<AnswerPtr> FakeAnswers::Ask(const Problem& problem, bool without_code) {
  std::unique_lock lock(served_->mutex);
  ++served_->waiting;
  served_->changed.wait(lock, [this] { return !served_->blocked; });
  --served_->waiting;
  ++served_->questions;
  served_->with_code += without_code ? 0 : 1;
  served_->changed.notify_all();
  if (!served_->unreachable.ok()) return served_->unreachable;
  const auto it = served_->answers.find(ToText(problem));
  if (it == served_->answers.end()) return absl::NotFoundError("nobody has tuned it");
  if (!it->second.ok()) return it->second.status();
  auto answer = std::make_shared<v1::GetBestResponse>(*it->second);
  if (without_code) answer->clear_artifact();
  return answer;
}

absl::StatusOr<AnswerPtr> FakeAnswers::Kept(const Problem& problem) {
  const std::lock_guard lock(served_->mutex);
  const auto it = served_->kept.find(ToText(problem));
  if (it == served_->kept.end()) return absl::NotFoundError("not in the snapshot");
  return std::make_shared<const v1::GetBestResponse>(it->second);
}

}  // namespace attune::launch::testing
