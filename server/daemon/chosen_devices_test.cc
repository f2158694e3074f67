#include "server/daemon/chosen_devices.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

supervisor::HostDescription Host() {
  supervisor::HostDescription host;
  for (const auto& [id, model, fingerprint] :
       {std::tuple("cuda:0", "NVIDIA L4", "1111"), std::tuple("cuda:1", "NVIDIA L4", "1111"),
        std::tuple("cuda:2", "NVIDIA A100", "2222"), std::tuple("cuda:3", "NVIDIA A100", "3333")}) {
    v1::Device& device = host.devices.emplace_back();
    device.set_id(id);
    device.set_uuid(std::string("GPU-") + id);
    device.set_backend(v1::BACKEND_CUDA);
    device.set_model(model);
    device.set_fingerprint(fingerprint);
  }
  return host;
}

std::vector<std::string> Chosen(const std::vector<std::string>& names) {
  std::vector<std::string> ids;
  for (const v1::Device& device : ChooseDevices(names, Host()).host.devices) ids.push_back(device.id());
  return ids;
}

TEST(ChosenDevices, AreAllWithoutAChoice) {
  EXPECT_THAT(Chosen({}), ElementsAre("cuda:0", "cuda:1", "cuda:2", "cuda:3"));
}

TEST(ChosenDevices, AreNamedByIdOrUuidOrClass) {
  EXPECT_THAT(Chosen({"cuda:1"}), ElementsAre("cuda:1"));
  EXPECT_THAT(Chosen({"GPU-cuda:2"}), ElementsAre("cuda:2"));
  EXPECT_THAT(Chosen({"a100-3333", "l4"}), ElementsAre("cuda:0", "cuda:1", "cuda:3"));
}

TEST(ChosenDevices, SayWhichNamesStandForNothing) {
  const ChosenDevices chosen = ChooseDevices({"cuda:0", "h200", "cuda:9"}, Host());
  EXPECT_THAT(chosen.unknown, ElementsAre("h200", "cuda:9"));
  EXPECT_EQ(chosen.here, "cuda:0 (l4), cuda:1 (l4), cuda:2 (a100-2222), cuda:3 (a100-3333)");
  EXPECT_THAT(Chosen({"h200"}), IsEmpty());
}

TEST(ChosenDevices, KeepTheirClassesNamesWhateverElseIsChosen) {
  EXPECT_TRUE(ChooseDevices({"none"}, Host()).host.devices.empty()) << "a gateway";
  EXPECT_TRUE(ChooseDevices({"none"}, Host()).unknown.empty());
  EXPECT_EQ(ChooseDevices({"cuda:2"}, Host()).host.devices.at(0).class_alias(), "a100-2222");
}

}  // namespace
}  // namespace attune
