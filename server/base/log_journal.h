// Lines for systemd's journal, which reads a line's priority from a "<4>" before it and leaves that out (sd-daemon(3)).
#ifndef ATTUNE_SERVER_BASE_LOG_JOURNAL_H_
#define ATTUNE_SERVER_BASE_LOG_JOURNAL_H_

#include "absl/strings/string_view.h"

namespace attune {

// Whether the file `descriptor` is the stream that `journal_stream` names, "DEVICE:INODE", as systemd sets it in
// JOURNAL_STREAM: whoever has redirected it since does not write to the journal.
bool IsJournal(int descriptor, absl::string_view journal_stream);

// From now on lines of the log begin with their priority.
void PrefixLogWithPriorities(bool prefix);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOG_JOURNAL_H_
