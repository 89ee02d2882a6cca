import { once } from 'node:events';
import type { Config } from '../infra/config.ts';
import { createReplicatedEngine } from '../infra/engine/index.ts';
import { startGateway } from '../infra/gateway/server.ts';
import { createUpstreams } from '../infra/gateway/upstream/upstreams.ts';
import { openStack } from '../infra/stack.ts';
import { openState } from './open-state.ts';
import { createLog } from './process.ts';
import { reportStateOnSignal } from './report-state.ts';

/**
 * Runs one gateway process, which answers the agents' model calls.
 *
 * @param name Name of this process among the gateways that share the sessions.
 */
export async function runGateway(config: Config, signal: AbortSignal, name: string): Promise<void> {
  const log = createLog(config, name);
  const { key } = await openStack(config.paths);
  const { blobs: store } = await openState(config);
  const engine = createReplicatedEngine({
    ...config.engine,
    method: config.publish,
    gateways: config.gateways,
    onEvent: (event) => {
      if (event.inService) log.info(event, 'engine in service');
      else log.warn(event, 'engine out of service');
    },
  });
  const gateway = await startGateway({
    name,
    sockets: config.paths.gatewaySockets,
    journalDir: config.paths.journals,
    store,
    engine,
    upstreams: createUpstreams(config.upstreams, config.env),
    modelDir: config.modelDir,
    stackKey: key,
    engineGraceMs: config.engine.graceSec * 1000,
    seeds: config.engine.seeds,
    log: (event) => (event.kind === 'turn' ? log.debug(event) : log.warn(event)),
  });
  reportStateOnSignal(log, signal);
  log.info({ sockets: config.paths.gatewaySockets.agents, engine: engine.url }, 'gateway started');
  if (!signal.aborted) await once(signal, 'abort');
  await gateway.close();
  await engine.close();
  log.info('gateway stopped');
}
