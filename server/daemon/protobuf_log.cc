#include "server/daemon/protobuf_log.h"

#include <string>

#include "google/protobuf/stubs/logging.h"
#include "server/base/log.h"

namespace attune {
namespace {

LogLevel LevelOf(google::protobuf::LogLevel level) {
  switch (level) {
    case google::protobuf::LOGLEVEL_INFO:
      return LogLevel::kInfo;
    case google::protobuf::LOGLEVEL_WARNING:
      return LogLevel::kWarning;
    default:
      return LogLevel::kError;
  }
}

void Write(google::protobuf::LogLevel level, const char* file, int line, const std::string& message) {
  const LogField fields[] = {{"message", message}, {"source", absl::StrCat(file, ":", line)}};
  Log(LevelOf(level), "protobuf", fields);
}

}  // namespace

void RouteProtobufLog() { google::protobuf::SetLogHandler(Write); }

}  // namespace attune
