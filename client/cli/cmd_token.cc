// attune token: makes, lists and revokes the tokens that callers bring.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct TokenArguments {
  std::string action;
  std::string name;
  std::string role = "reader";
  int64_t days = 90;
};

absl::StatusOr<ExitCode> Create(Session& session, Client& client, const TokenArguments& arguments) {
  v1::CreateTokenRequest request;
  request.set_id(arguments.name);
  request.set_role(arguments.role);
  constexpr int64_t kDay = 24 * 3600;
  request.mutable_lifetime()->set_seconds(arguments.days * kDay);
  const auto created = client.CreateToken(request);
  if (!created.ok()) return created.status();
  if (session.json()) {
    session.Emit(TokenJson(created->token(), created->secret()));
    return ExitCode::kOk;
  }
  session.PrintWhole(created->secret());
  session.Note(absl::StrCat(created->token().name(), " of a ", created->token().role(), ", until ",
                            LocalTime(created->token().expire_time()),
                            ". The server keeps only its hash: this is the one time that it is shown."));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> List(Session& session, Client& client) {
  const auto tokens = client.ListTokens();
  if (!tokens.ok()) return tokens.status();
  Table table({{"token", kName}, {"role"}, {"made"}, {"by", kText, 1}, {"expires"}});
  for (const v1::Token& token : tokens->tokens()) {
    if (session.json()) {
      session.Emit(TokenJson(token, ""));
    } else {
      table.Row({token.name(), token.role(), LocalTime(token.create_time()), token.created_by(),
                 LocalTime(token.expire_time())});
    }
  }
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note("No tokens. To make one: attune token create NAME --role ROLE");
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Revoke(Session& session, Client& client, const std::string& name) {
  v1::RevokeTokenRequest request;
  request.set_name(ResourceName("tokens", name));
  const auto revoked = client.RevokeToken(request);
  if (!revoked.ok()) return revoked.status();
  if (session.json()) {
    session.Emit(TokenJson(*revoked, ""));
  } else {
    session.Print(absl::StrCat("revoked: ", revoked->name()));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunToken(Session& session, const TokenArguments& arguments) {
  if ((arguments.action == "list") != arguments.name.empty()) {
    return absl::InvalidArgumentError("give create NAME, list, or revoke NAME (see attune token --help)");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (arguments.action == "create") return Create(session, **client, arguments);
  if (arguments.action == "revoke") return Revoke(session, **client, arguments.name);
  return List(session, **client);
}

}  // namespace

Action AddToken(CLI::App& app) {
  auto arguments = std::make_shared<TokenArguments>();
  app.add_option("action", arguments->action, "What to do")->check(OneOf({"create", "list", "revoke"}))->required();
  app.add_option("name", arguments->name, "Of the token to make or to revoke");
  app.add_option("--role", arguments->role, "With create: what it allows; default reader")
      ->check(OneOf({"reader", "tuner", "author", "admin"}));
  AddCount(app, "--days", &arguments->days, "With create: how long it is good, at most 3650; default 90");
  return [arguments](Session& session) { return RunToken(session, *arguments); };
}

}  // namespace attune::cli
