// Short names for device classes: what a request may say in place of a device's id.
#ifndef ATTUNE_SERVER_CATALOG_CLASS_ALIAS_H_
#define ATTUNE_SERVER_CATALOG_CLASS_ALIAS_H_

#include <vector>

#include "attune/v1/device.pb.h"

namespace attune::catalog {

// Sets class_alias of each: the name of the profile that has the device's model ("l4"), or what the model's name says
// apart from its vendor ("rtx-6000-ada-generation"; of OpenCL devices the first word, PoCL's driver: "pthread").
// Classes that would share one have the beginning of their fingerprints behind it, whichever of them comes first.
void NameClasses(std::vector<v1::Device>& devices);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_CLASS_ALIAS_H_
