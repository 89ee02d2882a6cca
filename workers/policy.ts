import { once } from 'node:events';
import type { Config } from '../infra/config.ts';
import { startPolicyServer } from '../infra/kits/embedded-policy/index.ts';
import { createLog } from './process.ts';
import { reportStateOnSignal } from './report-state.ts';

/** Runs the embedded policy server, which is both engine and trainer. */
export async function runPolicy(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog(config, 'policy');
  const server = await startPolicyServer({
    port: config.policyPort,
    listen: config.listen,
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
