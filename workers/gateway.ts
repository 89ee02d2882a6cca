import { once } from 'node:events';
import { createEnginePools } from '../infra/engine/pools.ts';
import { startGateway } from '../infra/gateway/server.ts';
import { requireSharedJournals } from '../infra/gateway/sessions/journal-directory.ts';
import { loadOwnTools } from '../infra/gateway/tools/own-tools.ts';
import { createToolbox } from '../infra/gateway/tools/toolbox.ts';
import { createPolicyEngines } from '../infra/gateway/turns/policy-engines.ts';
import { createUpstreams } from '../infra/gateway/upstream/upstreams.ts';
import { createBundles } from '../infra/harbor/bundle.ts';
import { leaseMsOf } from '../infra/hosts/lease-times.ts';
import { createEnvironments } from '../infra/openenv/environments/environments.ts';
import { createEnvironmentTool } from '../infra/openenv/environments/tool.ts';
import type { Config } from '../infra/settings/config.ts';
import { openStackKeys } from '../infra/stack.ts';
import { openLease } from './claim-host.ts';
import { keepLease } from './keep-lease.ts';
import { createLog } from './log.ts';
import { openState } from './open-state.ts';
import { reportStateOnSignal } from './report-state.ts';

/**
 * Runs one gateway process, which answers the agents' model calls.
 *
 * @param name Name of this process among the gateways that share the sessions.
 */
export async function runGateway(config: Config, signal: AbortSignal, name: string): Promise<void> {
  const log = createLog(config, name);
  const shared = await openState(config);
  const stackKeys = await openStackKeys(config, shared.objects);
  await requireSharedJournals(config.sharedJournals, config.paths.journals);
  const lease = openLease(config, shared);
  const engineGraceMs = config.engine.graceSec * 1000;
  const policies = createPolicyEngines({
    pools: createEnginePools(config.pools, config.pool, config.env),
    slots: { requestsAtOnce: config.engine.capacity, sharers: config.gateways },
    engineGraceMs,
    onEvent: (event) => {
      if (event.inService) log.info(event, 'engine in service');
      else log.warn(event, 'engine out of service');
    },
  });
  const environment = createEnvironmentTool(createEnvironments(config.environments, config.env));
  const toolbox = createToolbox([environment, ...(await loadOwnTools(config.tools))]);
  const bundles = createBundles(shared.blobs);
  const gateway = await startGateway({
    name,
    sockets: config.paths.gatewaySockets,
    journalDir: config.paths.journals,
    sharedJournals: config.sharedJournals,
    store: shared.blobs,
    lease,
    policies,
    upstreams: createUpstreams(config.upstreams, config.env),
    modelDir: config.modelDir,
    stackKeys,
    toolbox,
    taskFiles: async (bundle) => (await bundles.open(bundle)).toolFiles,
    engineGraceMs,
    seeds: config.engine.seeds,
    log: (event) => (event.kind === 'turn' ? log.debug(event) : log.warn(event)),
  });
  reportStateOnSignal(log, signal);
  const leaseMs = leaseMsOf(config.hostLostAfterMs);
  // A restart of the host worker must not stop the agents' turns.
  const kept = keepLease({ lease, leaseMs, stepsIn: true, log }, signal);
  log.info({ sockets: config.paths.gatewaySockets.agents, engines: config.pool.urls }, 'gateway started');
  if (!signal.aborted) await once(signal, 'abort');
  await kept;
  await gateway.close();
  await policies.close();
  log.info('gateway stopped');
}
