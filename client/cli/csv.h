// Comma-separated values (RFC 4180) of what `--format=json` prints, for spreadsheets and data frames.
#ifndef ATTUNE_CLIENT_CLI_CSV_H_
#define ATTUNE_CLIENT_CLI_CSV_H_

#include <string>
#include <vector>

#include "client/cli/json_values.h"

namespace attune::cli {

// One line of names and one for each object: `columns`, keys of what is no list or object, and after them the names in
// the objects' `parameters`. What an object lacks, or has as null, is empty.
std::vector<std::string> CsvLines(const std::vector<std::string>& columns, const std::vector<Json>& objects);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_CSV_H_
