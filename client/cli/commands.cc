#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "proto/attune/quote.h"

namespace attune::cli {

std::string NoSuchCommand(absl::string_view word) {
  return absl::StrCat(Quoted(word), " is not a command (see attune --help)");
}

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"preflight", "Show what variants of a problem there are to try, or what prevents tuning it; runs nothing",
       "attune preflight b2.h8.q512.d64.f16\n"
       "attune preflight - < shapes.txt\n"
       "attune preflight b1.h32.kvh8.q1.kv8192.d128.bf16 --device profile:l4",
       AddPreflight},
      {"devices", "List the server's devices and backends", "attune devices\nattune --server l4:7411 devices",
       AddDevices},
      {"families", "List the kernel families", "attune families\nattune families attention_wmma", AddFamilies},
      {"space", "Count or list the variants of a problem, constraint by constraint",
       "attune space b2.h8.q512.d64.f16\nattune space b2.h8.q512.d64.f16 --family attention_wmma --list", AddSpace},
      {"tune", "Find the fastest variant of a problem",
       "attune tune b2.h8.q512.d64.f16\n"
       "attune tune b1.h32.kvh8.q1.kv8192.d128.bf16 --effort full --max-time 5m\n"
       "attune tune b2.h8.q512.d64.f16 --strategy exhaustive\n"
       "attune tune b2.h8.q512.d64.f16 b2.h8.q1024.d64.f16 --detach\n"
       "attune tune - < shapes.txt",
       AddTune},
      {"best", "Show the best known variant of a problem, and how to launch it",
       "attune best b2.h8.q512.d64.f16\n"
       "attune best b2.h8.q512.d64.f16.causal --artifact attention.cubin --format=json\n"
       "attune best b2.h8.q512.d64.f16 --wait 5s\n"
       "attune best b2.h8.q512.d64.f16 --offline\n"
       "attune best - < shapes.txt",
       AddBest},
      {"warm", "Have the server compile what answers many problems, tuned or not; needs no device",
       "attune warm b2.h8.q512.d64.f16 b2.h8.q640.d64.f16\n"
       "attune warm shapes.textproto\n"
       "attune warm - < shapes.txt",
       AddWarm},
      {"misses", "List what was asked for and nobody has tuned, most often asked first",
       "attune misses\nattune misses --device l4 --limit 10", AddMisses},
      {"trials", "List trials, or show one",
       "attune trials b2.h8.q512.d64.f16 --fastest\nattune trials --verdict WRONG_RESULT --limit 0\n"
       "attune trials b2.h8.q512.d64.f16 --limit 0 --csv > trials.csv\n"
       "attune trials trials/123",
       AddTrials},
      {"explain", "Explain what bounds a trial, the best variant of a problem, or a submission",
       "attune explain trials/123\nattune explain b1.h1.q128.d64.f16\nattune explain submissions/7", AddExplain},
      {"profile", "Run a variant or a submission under Nsight Compute; its counters are kept with the trial",
       "attune profile b2.h8.q512.d64.f16\n"
       "attune profile b2.h8.q512.d64.f16 --variant attention_mma:BLOCK_M=64,...\n"
       "attune profile submissions/7",
       AddProfile},
      {"sanitize", "Run a variant or a submission under compute-sanitizer; findings are kept with the trial",
       "attune sanitize b2.h8.q512.d64.f16\nattune sanitize trials/123 --tool racecheck --tool memcheck", AddSanitize},
      {"evaluate", "Time one variant against the incumbent: KEEP or REVERT",
       "attune evaluate b2.h8.q512.d64.f16 attention_simt:BLOCK_M=64,BLOCK_N=32", AddEvaluate},
      {"submit", "Try a kernel of your own against what is served, or the one before: KEEP or REVERT",
       "attune submit my_kernel/ --problem b2.h8.q512.d64.f16 --hypothesis \"larger tiles\"\n"
       "attune submit mine.cl --problem b1.h2.q128.d64.f16 --loop tiles --base previous --watch",
       AddSubmit},
      {"submissions", "List the kernels that authors have submitted, or show one and fetch its files",
       "attune submissions --loop tiles\nattune submissions submissions/7 --out best/", AddSubmissions},
      {"adopt", "Make a submission that was kept one of the kernel families; for admins", "attune adopt submissions/7",
       AddAdopt},
      {"withdraw", "Withdraw a submission", "attune withdraw submissions/7", AddWithdraw},
      {"new-kernel", "Write a small correct kernel to start from",
       "attune new-kernel my_kernel/\n"
       "attune new-kernel my_kernel/ --backend cuda\n"
       "attune new-kernel faster/ --backend cuda --step 3",
       AddNewKernel},
      {"sweep", "Tune and re-time a file of problems, and report regressions",
       "attune sweep nightly.textproto --report-md report.md --report-json report.json\n"
       "attune sweep nightly.textproto --dry-run",
       AddSweep},
      {"portfolio", "Choose a few variants for many problems, and say which of them each takes",
       "attune portfolio b1.h32.kvh8.q1.kv1024.d128.f16 b1.h32.kvh8.q1.kv4096.d128.f16=3 --variants 2\n"
       "attune portfolio - --tune < lengths.txt",
       AddPortfolio},
      {"jobs", "List operations; of a waiting one, which goes first",
       "attune jobs\nattune jobs --active\nattune jobs --problem b2.h8.q512.d64.f16", AddJobs},
      {"watch", "Follow an operation", "attune watch operations/7", AddWatch},
      {"cancel", "Cancel an operation, or all of them; finished trials are kept",
       "attune cancel operations/7\nattune cancel --all\nattune cancel --all --problem b2.h8.q512.d64.f16", AddCancel},
      {"retry", "Retry variants whose trials did not end OK",
       "attune retry --verdict CRASHED\n"
       "attune retry --verdict CRASHED --verdict TIMEOUT --problem b2.h8.q512.d64.f16 --family attention_wmma",
       AddRetry},
      {"history", "List the incumbents of a problem, past and present",
       "attune history b2.h8.q512.d64.f16\nattune history b2.h8.q512.d64.f16 --times --since 720h", AddHistory},
      {"trends", "List what has become slower or faster than it was served with, since when, and what changed then",
       "attune trends\nattune trends --all --device l4\nattune trends b2.h8.q512.d64.f16 --since 720h", AddTrends},
      {"compare", "Compare times of two dates, devices, toolchains, drivers or kernel families, problem by problem",
       "attune compare date=2026-10-31\n"
       "attune compare date=2026-10-31 date=2026-11-30 --device l4\n"
       "attune compare device=l4 device=h200 --all\n"
       "attune compare family=attention_simt family=attention_mma",
       AddCompare},
      {"rollback", "Serve the previous incumbent of a problem again, or an earlier one",
       "attune rollback b2.h8.q512.d64.f16 --why \"slower in production\"\n"
       "attune rollback b2.h8.q512.d64.f16 --to incumbents/3",
       AddRollback},
      {"serve", "Pin a variant: serve it even when others are faster",
       "attune serve b2.h8.q512.d64.f16 attention_simt:BLOCK_M=64,BLOCK_N=32 --why \"bitwise as last month\"\n"
       "attune serve b2.h8.q512.d64.f16 --unpin",
       AddServe},
      {"baseline", "Record somebody else's time for a problem, or list what is recorded",
       "attune baseline b2.h8.q512.d64.f16 torch-sdpa-flash 47.0\nattune baseline", AddBaseline},
      {"summary", "List the winner of each problem with its speed-ups over the baselines, or a loop's iterations",
       "attune summary\nattune summary --device cuda:0 --format=json\nattune summary --loop tiles --markdown loop.md",
       AddSummary},
      {"dashboard", "Show what the server knows as pages in a browser on this host",
       "attune dashboard --open\nattune --server l4:7411 dashboard --listen 127.0.0.1:0", AddDashboard},
      {"export", "Save what the server serves as a snapshot file", "attune export l4.snapshot", AddExport},
      {"import", "Check a snapshot file and keep it to answer from without a server", "attune import l4.snapshot",
       AddImport},
      {"backup", "Copy what the server has stored to a new directory on its host, or list such copies",
       "attune backup\nattune backup before-upgrade\nattune backup --list", AddBackup},
      {"blobs", "List, sum up or delete what other programs' caches (Triton's, Helion's) keep on the server",
       "attune blobs --namespace triton --principal self\nattune blobs totals\n"
       "attune blobs delete --principal token:ci --namespace triton",
       AddBlobs},
      {"hosts", "List the hosts that share the server's store, drain one, or forget one that is gone",
       "attune hosts\nattune hosts drain gpu7-1a2b3c4d\nattune hosts undrain gpu7-1a2b3c4d\n"
       "attune hosts forget gpu7-1a2b3c4d",
       AddHosts},
      {"token", "Make, list or revoke the tokens that callers bring; for admins",
       "attune token create nightly --role tuner > ~/.attune-token\nattune token list\nattune token revoke nightly",
       AddToken},
      {"whoami", "Say whom the server takes you to be, what you may do and your quotas",
       "attune whoami\nattune --token-file ~/.attune-token whoami --format=json", AddWhoami},
      {"completion", "Print the completion script of a shell",
       "attune completion bash > ~/.local/share/bash-completion/completions/attune\n"
       "attune completion zsh > ~/.zfunc/_attune\n"
       "attune completion fish > ~/.config/fish/completions/attune.fish",
       AddCompletion},
      {"help", "Explain a command, or list them all", "attune help\nattune help tune", AddHelp},
  };
  return commands;
}

}  // namespace attune::cli
