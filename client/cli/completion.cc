#include "client/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"

namespace attune::cli {
namespace {

// CLI11 shows the values a check allows as "TEXT:{table,json}".
std::vector<std::string> AllowedValues(const std::string& type) {
  const size_t open = type.find('{');
  const size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

template <typename Items>
std::string Names(const Items& items) {
  return absl::StrJoin(items, " ", [](std::string* out, const auto& item) { absl::StrAppend(out, item.name); });
}

std::string Bash(const std::vector<CompletedCommand>& commands) {
  std::string options;
  std::string values;
  for (const CompletedCommand& command : commands) {
    absl::StrAppend(&options, "    ", command.name, ") words=\"", Names(command.options), "\" ;;\n");
    for (const CompletedOption& option : command.options) {
      if (!option.takes_value) continue;
      // "-o default" completes file names where there is nothing better.
      absl::StrAppend(&values, "    ", command.name, ":", option.name, ") COMPREPLY=($(compgen -W \"",
                      absl::StrJoin(option.values, " "), "\" -- \"$cur\")); return ;;\n");
    }
  }
  return absl::Substitute(R"(_attune() {
  local cur=$${COMP_WORDS[COMP_CWORD]} prev=$${COMP_WORDS[COMP_CWORD-1]} command= words= word
  for word in "$${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $0 " in *" $$word "*) command=$$word; break ;; esac
  done
  case "$$command:$$prev" in
$1  esac
  case "$$command" in
    '') words="$0" ;;
$2  esac
  [[ -z $$command || $$cur == -* ]] && COMPREPLY=($$(compgen -W "$$words" -- "$$cur"))
}
complete -o default -F _attune attune
)",
                          Names(commands), values, options);
}

std::string ZshSpec(const CompletedOption& option) {
  std::string spec =
      absl::StrCat(option.name, option.takes_value ? "=" : "", "[",
                   absl::StrReplaceAll(option.description, {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}}), "]");
  if (option.takes_value) {
    absl::StrAppend(
        &spec, ":value:", option.values.empty() ? "_files" : absl::StrCat("(", absl::StrJoin(option.values, " "), ")"));
  }
  return Quoted(spec);
}

std::string Zsh(const std::vector<CompletedCommand>& commands) {
  std::string list;
  std::string cases;
  for (const CompletedCommand& command : commands) {
    absl::StrAppend(&list, "    ",
                    Quoted(absl::StrCat(command.name, ":", absl::StrReplaceAll(command.summary, {{":", "\\:"}}))),
                    "\n");
    absl::StrAppend(&cases, "    ", command.name, ") _arguments -S");
    for (const CompletedOption& option : command.options) absl::StrAppend(&cases, " \\\n      ", ZshSpec(option));
    absl::StrAppend(&cases, " \\\n      '*::argument:_files' ;;\n");
  }
  return absl::Substitute(R"(#compdef attune
_attune() {
  local -a commands
  commands=(
$0  )
  local context state line
  _arguments -C '1:command:->command' '*::argument:->argument'
  if [[ $$state == command ]]; then
    _describe command commands
    return
  fi
  case $$words[1] in
$1  esac
}
if [[ $$funcstack[1] == _attune ]]; then
  _attune "$$@"
else
  compdef _attune attune
fi
)",
                          list, cases);
}

std::string Fish(const std::vector<CompletedCommand>& commands) {
  std::string script;
  for (const CompletedCommand& command : commands) {
    absl::StrAppend(&script, "complete -c attune -n __fish_use_subcommand -f -a ", command.name, " -d ",
                    Quoted(command.summary), "\n");
    for (const CompletedOption& option : command.options) {
      absl::StrAppend(&script, "complete -c attune -n '__fish_seen_subcommand_from ", command.name, "' -l ",
                      option.name.substr(2), " -d ", Quoted(option.description));
      if (option.takes_value) absl::StrAppend(&script, " -r");
      if (!option.values.empty()) absl::StrAppend(&script, " -f -a ", Quoted(absl::StrJoin(option.values, " ")));
      absl::StrAppend(&script, "\n");
    }
  }
  return script;
}

}  // namespace

std::vector<CompletedCommand> CompletedCommands(const CLI::App& app) {
  std::vector<CompletedCommand> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    CompletedCommand command = {sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        command.options.push_back({absl::StrCat("--", name), option->get_description(),
                                   option->get_items_expected_max() > 0, AllowedValues(option->get_type_name())});
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

absl::StatusOr<std::string> CompletionScript(absl::string_view shell, const CLI::App& app) {
  const std::vector<CompletedCommand> commands = CompletedCommands(app);
  if (shell == "bash") return Bash(commands);
  if (shell == "zsh") return Zsh(commands);
  if (shell == "fish") return Fish(commands);
  return absl::InvalidArgumentError(absl::StrCat("shell is '", shell, "'; allowed: bash, zsh, fish"));
}

}  // namespace attune::cli
