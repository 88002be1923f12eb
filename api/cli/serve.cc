#include "api/rest/serve.h"

#include <fmt/format.h>

#include <cstdio>

#include "api/actions/tokens.h"
#include "api/cli/commands.h"
#include "api/dashboard/assets.h"
#include "perfmodel/error.h"
#include "perfmodel/units.h"

namespace commtune::api {
namespace {

struct ServeFlags {
  rest::ServeOptions options;
  std::string listen = "127.0.0.1:8080";
  std::string tls_certificate, tls_key, max_body, slow, idle, compute;
  std::string log = "text";
  bool require_token = false, no_start_token = false;
};

std::chrono::milliseconds milliseconds(Seconds time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

rest::ServeOptions options_of(const ServeFlags& flags) {
  rest::ServeOptions options = flags.options;
  rest::set_listen_address(options, flags.listen);
  if (flags.require_token) options.authentication = rest::Authentication::kToken;
  options.start_token = !flags.no_start_token;
  options.tls_certificate = flags.tls_certificate;
  options.tls_key = flags.tls_key;
  options.log_json = flags.log == "json";
  if (!flags.max_body.empty()) options.max_body = parse_flag("--max-body", flags.max_body, parse_size).count;
  if (!flags.slow.empty())
    options.slow_request = milliseconds(parse_flag("--slow", flags.slow, parse_duration));
  if (!flags.compute.empty())
    options.compute_time = milliseconds(parse_flag("--compute-time", flags.compute, parse_duration));
  if (!flags.idle.empty()) options.idle_time = milliseconds(parse_flag("--idle", flags.idle, parse_duration));
  return options;
}

/// As Jupyter does: the token is in the address's fragment, which a browser keeps to itself. All at once, so
/// that who reads it from a pipe has all of it.
std::string greeting(const rest::Ready& ready) {
  std::string text = fmt::format("listening on {}\n", ready.url);
  const bool with_token = !ready.start_token.empty();
  if (!dashboard_assets().empty()) {
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
  rest::serve(parts, open_store(resolved.settings), *session.cancellation,
              [&](const rest::Ready& ready) { session.print(greeting(ready)); });
}

}  // namespace

void add_serve_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("serve", "REST service for job schedulers, and the dashboard");
  command->footer(
      "Examples:\n"
      "  tune serve                                        http://127.0.0.1:8080, for this machine\n"
      "  curl -H \"Authorization: Bearer $(cat $XDG_RUNTIME_DIR/commtune/token)\" -X POST "
      "localhost:8080/v1/clusters/lab/probes\n"
      "  tune token make slurm --scope plan                then: Authorization: Bearer ct_...\n"
      "  tune serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem\n"
      "On the loopback address everybody may read and ask for plans; what acts (probes, runs, tokens) needs "
      "a "
      "token.\n"
      "Each start makes one, prints it in the dashboard's address, and keeps it until its end in\n"
      "$XDG_RUNTIME_DIR/commtune/token (without that variable: ~/.local/state/commtune/token), for its user "
      "only.\n"
      "Anything but the loopback address asks for tokens, and for TLS to carry them. /openapi.yaml describes "
      "the API.");
  auto flags = std::make_shared<ServeFlags>();
  add_common_flags(*command, session, {});
  command->add_option("--listen", flags->listen, "address; port 0: any free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command->add_flag("--require-token", flags->require_token,
                    "ask for tokens on the loopback address too, also for reading and planning");
  command->add_flag("--no-start-token", flags->no_start_token,
                    "make no token of this start: only those of `tune token make` are taken");
  command->add_option("--tls-cert", flags->tls_certificate, "certificate chain, PEM")->type_name("FILE");
  command->add_option("--tls-key", flags->tls_key, "its key, PEM")->type_name("FILE");
  command->add_flag("--allow-plain-http", flags->options.allow_plain_http,
                    "listen on another than the loopback address without TLS: tokens can then be read on the "
                    "way");
  command->add_option("--max-connections", flags->options.max_connections, "open at a time")
      ->capture_default_str();
  command->add_option("--max-body", flags->max_body, "largest body of a request (8M)")->type_name("SIZE");
  command->add_option("--rate", flags->options.rate_per_token, "requests a second that a token may make")
      ->capture_default_str();
  command
      ->add_option("--planning-threads", flags->options.planning_threads,
                   "questions worked on at a time; 0: as many as processors")
      ->capture_default_str();
  command
      ->add_option(
          "--compute-time", flags->compute,
          "longest computing for one request of curves and maps, and longest wait for its turn (30s)")
      ->type_name("TIME");
  command->add_option("--idle", flags->idle, "longest silence of a connection between requests (60s)")
      ->type_name("TIME");
  command->add_option("--slow", flags->slow, "requests that take longer are logged (500ms)")
      ->type_name("TIME");
  command->add_option("--log", flags->log, "form of the log on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("text|json");
  command->add_flag("--log-requests", flags->options.log_requests, "log every request");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_serve(session, *flags); }; });
}

}  // namespace commtune::api
