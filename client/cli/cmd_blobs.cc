// attune blobs: what other programs' caches keep on the server.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct BlobsArguments {
  std::string action = "list";
  std::string cache;
  std::string key;
  std::string principal;
  int64_t limit = 50;
  bool all = false;
};

v1::ListBlobsRequest RequestOf(const BlobsArguments& arguments) {
  v1::ListBlobsRequest request;
  request.set_namespace_(arguments.cache);
  request.set_key(arguments.key);
  request.set_principal(arguments.principal);
  return request;
}

void NoteNone(Session& session) { session.Note("No blobs. Triton's and Helion's caches put them: docs/cli.md"); }

absl::StatusOr<ExitCode> List(Session& session, Client& client, const BlobsArguments& arguments) {
  Table table({{"file", kName},
               {"size", kNumber},
               {"namespace"},
               {"key", kFlexible},
               {"by", kText, 1},
               {"shared"},
               {"put", kText, 3},
               {"used", kText, 2}});
  const absl::Status status =
      ForEach(client, &Client::ListBlobs, &v1::ListBlobsResponse::blobs, RequestOf(arguments), arguments.limit,
              [&](const v1::Blob& blob) {
                if (session.json()) {
                  session.Emit(BlobJson(blob));
                  return;
                }
                table.Row({blob.file(), Bytes(blob.bytes()), blob.namespace_(), blob.key(), blob.principal(),
                           blob.shared() ? "yes" : "no", LocalTime(blob.create_time()), LocalTime(blob.use_time())});
              });
  if (!status.ok()) return status;
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    NoteNone(session);
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Totals(Session& session, Client& client, const BlobsArguments& arguments) {
  v1::ListBlobsRequest request = RequestOf(arguments);
  request.set_page_size(1);
  const auto listed = client.ListBlobs(request);
  if (!listed.ok()) return listed.status();
  Table table({{"by", kName}, {"namespace"}, {"blobs", kNumber}, {"size", kNumber}});
  int64_t bytes = 0;
  for (const v1::ListBlobsResponse::Total& total : listed->totals()) {
    bytes += total.bytes();
    if (session.json()) {
      session.Emit(BlobTotalJson(total, listed->limit_bytes()));
    } else {
      table.Row({total.principal(), total.namespace_(), absl::StrCat(total.blobs()), Bytes(total.bytes())});
    }
  }
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    NoteNone(session);
    return ExitCode::kOk;
  }
  session.Print(table);
  session.Note(absl::StrCat(Bytes(bytes), " of these; the server keeps ", Bytes(listed->limit_bytes()),
                            " of everybody's together"));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Delete(Session& session, Client& client, const BlobsArguments& arguments) {
  v1::DeleteBlobsRequest request;
  request.set_principal(arguments.principal);
  request.set_namespace_(arguments.cache);
  request.set_key(arguments.key);
  const auto deleted = client.DeleteBlobs(request);
  if (!deleted.ok()) return deleted.status();
  if (session.json()) {
    session.Emit(DeletedBlobsJson(*deleted));
  } else {
    session.Print(absl::StrCat("deleted: ", Counted(deleted->blobs(), "blob"), ", ", Bytes(deleted->bytes())));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunBlobs(Session& session, const BlobsArguments& arguments) {
  const bool chosen = !arguments.cache.empty() || !arguments.key.empty() || !arguments.principal.empty();
  if (arguments.action == "delete" && chosen == arguments.all) {
    return absl::InvalidArgumentError(
        "delete takes --namespace, --key or --principal, which say what goes, or --all: everything of your own");
  }
  if (arguments.action != "delete" && arguments.all) {
    return absl::InvalidArgumentError("--all goes with delete; to list all: --limit 0");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (arguments.action == "delete") return Delete(session, **client, arguments);
  if (arguments.action == "totals") return Totals(session, **client, arguments);
  return List(session, **client, arguments);
}

}  // namespace

Action AddBlobs(CLI::App& app) {
  auto arguments = std::make_shared<BlobsArguments>();
  app.add_option("action", arguments->action, "What to do; default list")->check(OneOf({"list", "totals", "delete"}));
  app.add_option("--namespace", arguments->cache, "Of this cache alone: triton, helion");
  app.add_option("--key", arguments->key, "Under this key alone");
  app.add_option("--principal", arguments->principal,
                 "Of this one alone, as attune whoami names it; self is you. With delete: another than you is for "
                 "admins; default you");
  AddCount(app, "--limit", &arguments->limit, "With list: at most so many, those put last first; 0: all");
  app.add_flag("--all", arguments->all, "With delete: everything of your own");
  return [arguments](Session& session) { return RunBlobs(session, *arguments); };
}

}  // namespace attune::cli
