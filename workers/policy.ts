import { once } from 'node:events';
import { type PolicyServerOptions, startPolicyServer } from '../infra/kits/embedded-policy/index.ts';
import type { Config } from '../infra/settings/config.ts';
import { isLoopback } from '../infra/settings/listen.ts';
import { createLog } from './log.ts';
import { reportStateOnSignal } from './report-state.ts';
import { watchListenTls } from './watch-listen-tls.ts';

/** Runs the embedded policy server, which is both engine and trainer. */
export async function runPolicy(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog(config, 'policy');
  const access = await accessOf(config);
  const server = await startPolicyServer({
    port: config.policyPort,
    listen: config.listen,
    ...access,
    modelDir: config.modelDir,
    root: config.paths.policy,
    modelName: config.pool.model,
  });
  reportStateOnSignal(log, signal);
  if (access.tls !== undefined && config.listenTls !== null) {
    void watchListenTls({ read: config.listenTls, served: access.tls, serve: server.serveTls, log }, signal);
  }
  log.info({ url: server.url }, 'policy server started');
  const crashed = await Promise.race([server.crashed, signal.aborted ? null : once(signal, 'abort').then(() => null)]);
  await server.close();
  log.info('policy server stopped');
  // The supervisor starts a fresh process, which loads the last published version.
  if (crashed !== null) throw crashed;
}

/** Returns what keeps strangers away: nothing on the loopback address, where the users of this machine are trusted. */
async function accessOf({ listen, listenTls, pool }: Config): Promise<Pick<PolicyServerOptions, 'keys' | 'tls'>> {
  if (isLoopback(listen)) return {};
  const { apiKey: engine } = pool;
  const { apiKey: trainer } = pool.trainer;
  if (isKey(engine) && isKey(trainer) && listenTls !== null) {
    return { keys: { engine, trainer }, tls: await listenTls() };
  }
  const lacking = [
    ...(isKey(engine) ? [] : ['TEMPER_ENGINE_API_KEY']),
    ...(isKey(trainer) ? [] : ['TEMPER_TRAINER_API_KEY']),
    ...(listenTls === null ? ['TEMPER_LISTEN_CERT', 'TEMPER_LISTEN_KEY'] : []),
  ].join(', ');
  throw new Error(
    `TEMPER_LISTEN=${listen} serves the policy to a network, which also needs ${lacking}; set them (the keys for all parts ` +
      `of the stack, with at least ${shortestKey} characters each), or listen on 127.0.0.1`,
  );
}

/** The fewest characters of a key that cannot be guessed over a network. */
const shortestKey = 16;
const isKey = (key: string | undefined): key is string => key !== undefined && key.length >= shortestKey;
