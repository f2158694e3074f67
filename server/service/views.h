// The narrow views of long lists.
#ifndef ATTUNE_SERVER_SERVICE_VIEWS_H_
#define ATTUNE_SERVER_SERVICE_VIEWS_H_

#include <optional>

#include "attune/v1/service.pb.h"
#include "server/store/queue.h"

namespace attune::service {

// What OPERATION_VIEW_BASIC and TRIAL_VIEW_BASIC leave of one.
void MakeBasic(v1::Operation& operation);
void MakeBasic(v1::Trial& trial);

// nullopt: every kind.
std::optional<store::JobKind> KindOf(v1::JobKind kind);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_VIEWS_H_
