#include "client/cli/cli.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/arguments.h"
#include "client/cli/json.h"
#include "client/cli/styled_text.h"
#include "client/cli/text.h"
#include "client/cpp/status.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

constexpr char kGroup[] = "Options of every command";

void AddCommonOptions(CLI::App& app, CommonOptions& common) {
  app.add_option(
         "--server", common.server,
         "host:port, unix:/path or a name in ~/.config/attune/servers; default $ATTUNE_SERVER, then the socket of this "
         "host's daemon, then localhost:7411")
      ->group(kGroup);
  app.add_option("--token-file", common.token_file,
                 "A file with the token that calls bring; default a named server's own, else $ATTUNE_TOKEN_FILE")
      ->group(kGroup);
  app.add_option(
         "--tls-ca", common.tls.ca,
         "A PEM file with who signs servers' certificates; default $ATTUNE_TLS_CA, then whom this system trusts")
      ->group(kGroup);
  app.add_option("--tls-cert", common.tls.certificate,
                 "A PEM file with the certificate that the server knows you by; default $ATTUNE_TLS_CERT")
      ->group(kGroup);
  app.add_option("--tls-key", common.tls.key, "A PEM file with its private key; default $ATTUNE_TLS_KEY")
      ->group(kGroup);
  app.add_option("--tls-server-name", common.tls.server_name,
                 "The name in the server's certificate; default $ATTUNE_TLS_SERVER_NAME, then the host of --server")
      ->group(kGroup);
  app.add_flag("--insecure", common.tls.insecure, "Speak to another host in clear, without TLS")->group(kGroup);
  app.add_option("--format", common.format, "Tables for people, or JSON lines for programs")
      ->check(OneOf({"table", "json"}))
      ->group(kGroup);
  app.add_option("--device", common.device,
                 "Its id, UUID or class (l4), as `attune devices` lists them; default the server's first")
      ->group(kGroup);
  app.add_option(
         "--policy", common.policy,
         "Measured back to back, over rotating inputs (hot, the default) or on one copy of them, of which L2 has what "
         "fits (l2-warm), or with L2 flushed before each run (cold)")
      ->check(OneOf({"hot", "l2-warm", "cold"}))
      ->group(kGroup);
  app.add_option("--timeout", common.timeout, "Of each call to the server: 500ms, 10s, 1m; default 10s")->group(kGroup);
  app.add_flag("-q,--quiet", common.quiet, "No progress of operations; results, remarks and errors alone")
      ->group(kGroup);
  app.add_flag("--no-color", common.no_color, "No colours, also on a terminal; so does $NO_COLOR")->group(kGroup);
  app.add_flag("--wide", common.wide, "All columns of tables and their whole text, whatever the terminal's width")
      ->group(kGroup);
}

constexpr size_t kHelpWidth = 80;
constexpr size_t kHelpNames = 28;  // columns of names, left of what they mean

// Long command lines go on as a shell reads them.
std::string Examples(absl::string_view examples) {
  std::string text = "Examples:";
  for (const absl::string_view example : absl::StrSplit(examples, '\n')) {
    absl::StrAppend(&text, "\n  ", absl::StrJoin(Wrap(example, kHelpWidth - 4, 4), " \\\n      "));
  }
  return text;
}

// CLI11's help in lines of at most kHelpWidth columns.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Item(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Item(command->get_display_name(true), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override { return Lines(Formatter::make_description(app)); }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return Lines(Formatter::make_usage(app, std::move(name)));
  }

 private:
  static std::string Item(const std::string& name, const std::string& description) {
    std::string text = absl::StrCat("  ", name);
    const std::string indent(kHelpNames, ' ');
    absl::StrAppend(&text, text.size() < kHelpNames ? indent.substr(text.size()) : absl::StrCat("\n", indent));
    return absl::StrCat(text, absl::StrJoin(Wrap(description, kHelpWidth - kHelpNames), absl::StrCat("\n", indent)),
                        "\n");
  }
  static std::string Lines(const std::string& text) {
    return absl::StrJoin(absl::StrSplit(text, '\n'), "\n", [](std::string* out, absl::string_view line) {
      absl::StrAppend(out, absl::StrJoin(Wrap(line, kHelpWidth), "\n"));
    });
  }
};

// Also where the command line is wrong, so that nothing of it has been parsed.
bool AsksForJson(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--format=json") return true;
    if (arguments[i] == "--format" && i + 1 < arguments.size() && arguments[i + 1] == "json") return true;
  }
  return false;
}

std::string ErrorJson(const absl::Status& status, ExitCode code) {
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"exit_code", static_cast<int>(code)},
                {"message", std::string(status.message())}};
  if (const auto info = GetErrorInfo(status); info.has_value()) {
    error["reason"] = info->reason();
    error["metadata"] = Json::object();
    for (const auto& [key, value] : info->metadata()) error["metadata"][key] = value;
  }
  return JsonText(Json{{"type", "error"}, {"error", std::move(error)}});
}

// One line on stderr: an object where JSON was asked for.
int Fail(Environment& env, bool json, const absl::Status& status, absl::string_view message, ExitCode code) {
  if (json) {
    env.err << ErrorJson(status, code) << "\n" << std::flush;
    return static_cast<int>(code);
  }
  const size_t width = env.err_is_terminal ? static_cast<size_t>(env.width) : 0;
  env.err << WrappedLine(absl::StrCat("attune: ", OneLine(message)), width) << "\n" << std::flush;
  return static_cast<int>(code);
}

// The server's version goes with the command line's, where one answers soon.
int PrintVersions(CommonOptions common, Environment& env, absl::string_view own) {
  env.out << own << "\n" << std::flush;
  common.timeout = "1s";
  Session session(std::move(common), &env);
  const auto client = session.client();
  const auto host = client.ok() ? (*client)->ListDevices() : client.status();
  if (host.ok()) {
    session.Print(absl::StrCat("attuned ", host->server_version(), " at ", session.server()));
  } else {
    session.Note(absl::StrCat("attune: no server answers at ", session.server()));
  }
  return static_cast<int>(ExitCode::kOk);
}

// What is wrong with a command line whose first word is no command.
std::optional<std::string> NotACommand(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining();
  const auto word = std::find_if(unknown.begin(), unknown.end(),
                                 [](const std::string& rest) { return !rest.empty() && rest[0] != '-'; });
  if (word == unknown.end() || !app.get_subcommands().empty()) return std::nullopt;
  return NoSuchCommand(*word);
}

// What CLI11 says of a wrong command line, and where to read more.
std::string UsageError(const CLI::App& app, const CLI::Error& error) {
  // CLI11 has "--max-trials: is -5"; the rest of attune "max_trials is -5".
  const std::string what =
      absl::StrReplaceAll(error.what(), {{": is ", " is "},
                                         {"A subcommand is required", "a command is missing"},
                                         {"The following argument was not expected", "not expected"},
                                         {"The following arguments were not expected", "not expected"}});
  const std::vector<CLI::App*> command = app.get_subcommands();
  if (!command.empty()) {
    // CLI11 looks for what is missing before it looks at what it does not know: a misspelt option may be the reason.
    const std::vector<std::string> unknown = command.front()->remaining();
    const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const std::string more = is_missing && !unknown.empty() ? absl::StrCat("; not expected: ", unknown.front()) : "";
    return absl::StrCat(what, more, " (see attune ", command.front()->get_name(), " --help)");
  }
  return NotACommand(app).value_or(absl::StrCat(what, " (see attune --help)"));
}

}  // namespace

CommandLine::CommandLine()
    : app_("attune finds, proves and serves the fastest attention kernel for a shape on the device at hand.",
           "attune") {
  app_.formatter(std::make_shared<HelpFormatter>());
  app_.require_subcommand(1);
  app_.footer(
      Examples("attune devices\nattune --server l4:7411 tune b2.h8.q512.d64.f16\n"
               "attune best b2.h8.q512.d64.f16 --format=json\nattune help tune"));
  AddCommonOptions(app_, common_);
  // Behind --server, which it heeds: CLI11 calls back in this order.
  app_.set_version_flag("--version", absl::StrCat("attune ", ATTUNE_VERSION),
                        "The versions of attune and of its server");
  for (const Command& command : Commands()) {
    CLI::App* sub = app_.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(Examples(command.examples));
    actions_.emplace_back(sub, command.add(*sub));
    AddCommonOptions(*sub, common_);
  }
}

const Action& CommandLine::chosen() const {
  return std::find_if(actions_.begin(), actions_.end(), [](const auto& entry) { return entry.first->parsed(); })
      ->second;
}

int RunCli(const std::vector<std::string>& arguments, Environment& env) {
  CommandLine line;
  try {
    line.app().parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    if (const std::optional<std::string> wrong = NotACommand(line.app()); wrong.has_value()) {
      return Fail(env, AsksForJson(arguments), absl::InvalidArgumentError(*wrong), *wrong, ExitCode::kUsage);
    }
    env.out << line.app().help() << std::flush;
    return static_cast<int>(ExitCode::kOk);
  } catch (const CLI::CallForVersion& version) {
    return PrintVersions(line.common(), env, version.what());
  } catch (const CLI::Error& error) {
    const absl::Status wrong = absl::InvalidArgumentError(UsageError(line.app(), error));
    return Fail(env, AsksForJson(arguments), wrong, wrong.message(), ExitCode::kUsage);
  }
  Session session(line.common(), &env);
  const absl::StatusOr<ExitCode> code = line.chosen()(session);
  if (!code.ok()) {
    // With an ErrorInfo it was a server that said so.
    const bool nobody = absl::IsUnavailable(code.status()) && !GetErrorInfo(code.status()).has_value();
    return Fail(env, session.json(), code.status(),
                absl::StrCat(code.status().message(),
                             nobody ? " (is attuned running there? --server or ATTUNE_SERVER says where)" : ""),
                ExitCodeOf(code.status()));
  }
  return static_cast<int>(*code);
}

}  // namespace attune::cli
