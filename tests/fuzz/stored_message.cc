// A message in a column of the database, of the type that the first byte says: read, cleaned, or damaged.
#include <iterator>
#include <memory>

#include "attune/v1/retiming.pb.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/store/damaged_rows.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

using google::protobuf::Message;

// In the order of docs/store.md; corpora know them by their places.
std::unique_ptr<Message> MessageOf(unsigned char type) {
  const Message* const types[] = {&v1::Trial::default_instance(),
                                  &v1::Incumbent::default_instance(),
                                  &v1::Baseline::default_instance(),
                                  &v1::Operation::default_instance(),
                                  &v1::Retiming::default_instance(),
                                  &v1::TuneRequest::default_instance(),
                                  &v1::EvaluateVariantRequest::default_instance(),
                                  &v1::SweepRequest::default_instance(),
                                  &worker::v1::CompileResponse::Entry::default_instance(),
                                  &v1::LaunchRecipe::default_instance(),
                                  &v1::Variant::default_instance()};
  return std::unique_ptr<Message>(types[type % std::size(types)]->New());
}

ATTUNE_FUZZ_TARGET(stored_message) {
  if (input.empty()) return;
  const std::unique_ptr<Message> message = MessageOf(static_cast<unsigned char>(input[0]));
  const absl::Status status = store::Parse(input.substr(1), "message", *message);
  if (!status.ok()) {
    Expect(message->ByteSizeLong() == 0, "nothing is left of what is damaged");
    return ExpectRefusal(status, absl::StatusCode::kDataLoss, {"message"});
  }
  const std::unique_ptr<Message> again(message->New());
  Expect(again->ParseFromString(message->SerializeAsString()), "what was read can be sent: its texts are UTF-8");
}

}  // namespace
}  // namespace attune::fuzz
