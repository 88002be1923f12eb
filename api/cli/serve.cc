#include "api/rest/serve.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "api/actions/tokens.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/dashboard/assets.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

constexpr const char* kFooter =
    R"help(Examples:
  tune serve                              http://127.0.0.1:8080, for this machine
  tune serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  tune serve --listen unix:/run/commtune/socket --socket-mode 0660 --socket-owner :www-data --allow-user www-data
  tune token make slurm --scope plan      then: Authorization: Bearer ct_...
On the loopback address and a Unix socket everybody may read and ask for plans; what acts (probes, runs, tokens) needs
a token. Each start makes one that allows all: it is in the address that is printed, for a browser, and until the end
in $XDG_RUNTIME_DIR/commtune/token (without that variable: ~/.local/state/commtune/token), for programs of its user
(in systemd's journal only that file is named):
  printf 'header = "Authorization: Bearer %s"\n' "$(cat "$XDG_RUNTIME_DIR/commtune/token")" |
    curl --config - -X POST localhost:8080/v1/clusters/lab/probes
Everywhere else everything needs a token, and TLS to carry it. /openapi.yaml describes the API.)help";

struct ServeFlags {
  rest::ServeOptions options;
  std::string listen = "127.0.0.1:8080";
  std::string tls_certificate, tls_key;
  Bytes max_body{options.max_body};
  Seconds slow{options.slow_request}, idle{options.idle_time};
  Seconds compute{options.compute_time}, plan{options.plan_time};
  std::string socket_mode, socket_owner;
  std::vector<std::string> socket_users;
  std::string log = "text";
  bool require_token = false, no_start_token = false;
};

std::chrono::milliseconds milliseconds(Seconds time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

void take_socket_flags(rest::ServeOptions& options, const ServeFlags& flags) {
  if (!options.unix_socket) {
    if (!flags.socket_mode.empty() || !flags.socket_owner.empty() || !flags.socket_users.empty())
      throw Error(ErrorCode::kBadInput,
                  "--socket-mode, --socket-owner and --allow-user: only with --listen unix:PATH");
    return;
  }
  if (!flags.socket_mode.empty()) options.unix_socket->mode = rest::socket_mode_of(flags.socket_mode);
  options.unix_socket->owner = flags.socket_owner;
  options.unix_socket->users = flags.socket_users;
}

rest::ServeOptions options_of(const ServeFlags& flags) {
  rest::ServeOptions options = flags.options;
  rest::set_listen_address(options, flags.listen);
  take_socket_flags(options, flags);
  if (flags.require_token) options.authentication = rest::Authentication::kToken;
  options.start_token = !flags.no_start_token;
  options.tls_certificate = flags.tls_certificate;
  options.tls_key = flags.tls_key;
  options.log_json = flags.log == "json";
  options.max_body = flags.max_body.count;
  options.slow_request = milliseconds(flags.slow);
  options.compute_time = milliseconds(flags.compute);
  options.plan_time = milliseconds(flags.plan);
  options.idle_time = milliseconds(flags.idle);
  return options;
}

/// Whether standard output is systemd's journal, which others may read: systemd says which file that is.
bool prints_into_journal(const Environment& environment) {
  struct stat output {};
  return ::fstat(STDOUT_FILENO, &output) == 0 &&
         lookup(environment, "JOURNAL_STREAM") == fmt::format("{}:{}", output.st_dev, output.st_ino);
}

/// As Jupyter does: the token is in the address's fragment, which a browser keeps to itself. All at once, so
/// that who reads it from a pipe has all of it.
std::string greeting(rest::Ready ready, bool into_journal) {
  std::string text = fmt::format("listening on {}\n", ready.url);
  if (into_journal) ready.start_token.clear();
  const bool with_token = !ready.start_token.empty();
  if (!dashboard_assets().empty() && ready.url.starts_with("unix:")) {
    text += fmt::format("dashboard:   behind a proxy{}{}\n",
                        with_token ? ", at its address followed by /#token=" : "", ready.start_token);
  } else if (!dashboard_assets().empty()) {
    text += fmt::format("dashboard:   {}/{}{}\n", ready.url, with_token ? "#token=" : "", ready.start_token);
  } else {
    text += "dashboard:   none; this program was built without it (COMMTUNE_DASHBOARD)\n";
    if (with_token) text += fmt::format("token:       {}\n", ready.start_token);
  }
  if (!ready.token_file.empty())
    text += fmt::format("token file:  {} (all rights, until this service ends)\n", ready.token_file.string());
  return text;
}

void run_serve(const Session& session, const ServeFlags& flags) {
  const ResolvedSettings resolved = session.resolve();
  const rest::ServeOptions options = options_of(flags);
  options.check();
  rest::Log log(options.log_json,
                [](std::string_view line) { std::fwrite(line.data(), 1, line.size(), stderr); });
  const InterruptGuard guard(*session.cancellation);
  const rest::ServiceParts parts{options,
                                 resolved.settings,
                                 session.environment,
                                 session.program,
                                 log,
                                 options.start_token ? make_start_secret() : std::string{}};
  rest::serve(parts, open_store(resolved.settings), *session.cancellation, [&](const rest::Ready& ready) {
    session.print(greeting(ready, prints_into_journal(session.environment)));
  });
}

/// All who have no token share one allowance; so do the tokens that the starts of a service make.
void add_quota_flags(CLI::App& command, rest::QuotaLimits& most) {
  command
      .add_option("--max-profiles-per-token", most.profiles,
                  "stored profiles that one token may have, or all who have none together; 0: none")
      ->capture_default_str();
  command
      .add_option("--max-plans-per-token", most.plans,
                  "stored plans, likewise; an answer that is known already costs nothing")
      ->capture_default_str();
  command.add_option("--max-runs-per-token", most.runs, "stored runs that were handed in, likewise")
      ->capture_default_str();
  command.add_option("--max-waiting-jobs-per-token", most.waiting_jobs, "jobs that wait, likewise")
      ->capture_default_str();
  command
      .add_option("--max-answers-per-token", most.answers,
                  "answers kept for a day under their Idempotency-Key, likewise")
      ->capture_default_str();
}

}  // namespace

void add_serve_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("serve", "Answer job schedulers over REST, and show the dashboard");
  command->footer(kFooter);
  auto flags = std::make_shared<ServeFlags>();
  add_common_flags(*command, session, {"fit_age"});
  command->add_option("--listen", flags->listen, "address (port 0: any free one), or a Unix socket")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  command->add_option("--socket-mode", flags->socket_mode, "who may connect to the Unix socket")
      ->type_name("MODE")
      ->default_str("0600");
  command->add_option("--socket-owner", flags->socket_owner, "whose the Unix socket is")
      ->type_name("USER[:GROUP]")
      ->default_str("as the service");
  command
      ->add_option(
          "--allow-user", flags->socket_users,
          "who may use the Unix socket besides the service's own user, such as a proxy's; repeat it for "
          "each")
      ->type_name("USER")
      ->expected(1)
      ->take_all();
  command->add_flag("--require-token", flags->require_token,
                    "ask for tokens on the loopback address too, also for reading and planning");
  command->add_flag("--no-start-token", flags->no_start_token,
                    "make no token of this start: only those of `tune token make` are taken");
  command->add_option("--tls-cert", flags->tls_certificate, "certificate chain for TLS, PEM")
      ->type_name("FILE");
  command->add_option("--tls-key", flags->tls_key, "key of the certificate, PEM")->type_name("FILE");
  command->add_flag("--allow-plain-http", flags->options.allow_plain_http,
                    "listen on another than the loopback address without TLS: tokens can then be read on the "
                    "way");
  command
      ->add_option("--max-connections", flags->options.max_connections,
                   "connections that may be open at a time")
      ->capture_default_str();
  add_knob(*command, knob_of(Takes::kSize, "", "--max-body", "largest body of a request"), flags->max_body);
  command->add_option("--rate", flags->options.rate_per_token, "requests a second that a token may make")
      ->capture_default_str();
  add_quota_flags(*command, flags->options.quotas);
  command
      ->add_option("--planning-threads", flags->options.planning_threads,
                   "questions worked on at a time; 0: as many as processors")
      ->capture_default_str();
  const auto add_time = [&](std::string_view flag, std::string_view help, Seconds& time) {
    add_knob(*command, knob_of(Takes::kTime, "", flag, help), time);
  };
  add_time("--compute-time",
           "longest computing for one request of curves and maps, and longest wait for its turn",
           flags->compute);
  add_time(
      "--plan-time",
      "longest computing of one request's plans; then the best so far is answered, marked as incomplete and "
      "not kept for the next who asks, or 503 where there is none",
      flags->plan);
  add_time("--idle", "longest silence of a connection between requests", flags->idle);
  add_time("--slow", "requests that take longer are logged", flags->slow);
  command->add_option("--log", flags->log, "form of the log on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("text|json")
      ->capture_default_str();
  command->add_flag("--log-requests", flags->options.log_requests, "log every request");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_serve(session, *flags); }; });
}

}  // namespace commtune::api
