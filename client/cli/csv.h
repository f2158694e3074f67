// Comma-separated values (RFC 4180) of what `--format=json` prints, for spreadsheets and data frames.
#ifndef ATTUNE_CLIENT_CLI_CSV_H_
#define ATTUNE_CLIENT_CLI_CSV_H_

#include <string>
#include <vector>

#include "client/cli/json_values.h"

namespace attune::cli {

// Lines: one of names and one for each object. The columns are the keys under which no object has a list or an object,
// but for `type`, and after them the names in their `parameters`. What an object lacks, or has as null, is empty.
std::vector<std::string> CsvLines(const std::vector<Json>& objects);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_CSV_H_
