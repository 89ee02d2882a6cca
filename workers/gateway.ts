import { once } from 'node:events';
import type { Config } from '../infra/config.ts';
import { createEngines } from '../infra/engine/index.ts';
import { startGateway } from '../infra/gateway/server.ts';
import { openStack } from '../infra/stack.ts';
import { createFileStore } from '../infra/store/files.ts';
import { createLog } from './process.ts';

/** The agents' model calls. */
export async function runGateway(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog(config, 'gateway');
  const { key } = await openStack(config);
  const [engine] = createEngines(config);
  if (engine === undefined) throw new Error('expected at least one engine, got none; set TEMPER_ENGINE_URLS');
  const gateway = await startGateway({
    agentSocketDir: config.paths.gatewaySocketDir,
    controlSocket: config.paths.gatewayControl,
    journalDir: config.paths.journals,
    store: createFileStore(config.paths.store),
    engine,
    modelDir: config.modelDir,
    stackKey: key,
    log: (event) => (event.kind === 'turn' ? log.debug(event) : log.warn(event)),
  });
  log.info({ sockets: config.paths.gatewaySocketDir, engine: engine.url }, 'gateway started');
  if (!signal.aborted) await once(signal, 'abort');
  await gateway.close();
  log.info('gateway stopped');
}
