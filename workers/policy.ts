import { once } from 'node:events';
import type { Config } from '../infra/config.ts';
import { type PolicyServerOptions, startPolicyServer } from '../infra/kits/embedded-policy/index.ts';
import { createLog } from './log.ts';
import { reportStateOnSignal } from './report-state.ts';

/** Runs the embedded policy server, which is both engine and trainer. */
export async function runPolicy(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog(config, 'policy');
  const server = await startPolicyServer({
    port: config.policyPort,
    listen: config.listen,
    keys: requiredKeys(config),
    modelDir: config.modelDir,
    root: config.paths.policy,
    modelName: config.pool.model,
  });
  reportStateOnSignal(log, signal);
  log.info({ url: server.url }, 'policy server started');
  const crashed = await Promise.race([server.crashed, signal.aborted ? null : once(signal, 'abort').then(() => null)]);
  await server.close();
  log.info('policy server stopped');
  // The supervisor starts a fresh process, which loads the last published version.
  if (crashed !== null) throw crashed;
}

/** Returns the keys that clients need; undefined on the loopback address, where the users of this machine are trusted. */
function requiredKeys({ listen, pool }: Config): PolicyServerOptions['keys'] {
  if (listen.startsWith('127.')) return undefined;
  const { apiKey: engine } = pool;
  const { apiKey: trainer } = pool.trainer;
  // An empty key could be neither sent nor checked.
  if (engine && trainer) return { engine, trainer };
  throw new Error(
    `TEMPER_LISTEN=${listen} serves the policy to a network: expected TEMPER_ENGINE_API_KEY and TEMPER_TRAINER_API_KEY, which ` +
      'its clients then need; set both for all parts of the stack, or listen on 127.0.0.1',
  );
}
