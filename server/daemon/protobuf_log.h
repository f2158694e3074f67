// libprotobuf writes its complaints, of requests that it cannot parse for one, to stderr in a format of its own.
#ifndef ATTUNE_SERVER_DAEMON_PROTOBUF_LOG_H_
#define ATTUNE_SERVER_DAEMON_PROTOBUF_LOG_H_

namespace attune {

// From here on they are lines of the daemon's log, thinned out as all are. Before any thread that parses runs.
void RouteProtobufLog();

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_PROTOBUF_LOG_H_
