import type { Engine } from '../../../../infra/engine/engine.ts';
import { createEngines } from '../../../../infra/engine/index.ts';
import { controlSockets } from '../../../../infra/gateway/sockets.ts';
import type { Config } from '../../../../infra/settings/config.ts';
import { configuredTarget, connectClient } from '../../../../infra/temporal/connection.ts';
import { pollers, type QueueKind } from '../../../../infra/temporal/pollers.ts';
import { temporalTarget } from '../../../../infra/temporal/temporal-target.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import { controlQueue, hostQueue, trainerQueue } from '../../../../workflows/contracts/queues.ts';
import { kindOf } from '../../../up/part.ts';
import { socketAnswers } from '../../../up/ready.ts';
import { isUp, readUpFile, type UpFile } from '../../../up/up-file.ts';
import { type Check, missing, ok, type RunChecks, warn } from './checks.ts';

/** Even a paused or busy engine answers within this time. */
const engineTimeoutMs = 5_000;

/** Checks the processes of the stack: supervisor, workers, gateways and engines. */
export const checkStack: RunChecks = async function* (config) {
  const up = await readUpFile(config.paths.up);
  const running = up !== null && isUp(up);
  if (running) yield supervisor(up);
  else if (configuredTarget(config.env) === undefined) {
    yield warn('stack', `no stack runs on ${config.home}`, 'start one with `temper up`');
    return;
  }
  const hasHost = await mayHaveHost(config);
  yield* workers(config, hasHost);
  if (hasHost) yield* gateways(config);
  for (const engine of createEngines(config.pool)) yield await engineCheck(engine);
};

/** Whether this machine has a host, or may get one. A fleet's machine for the trainer has neither a host nor a gateway. */
export async function mayHaveHost({ paths }: Config): Promise<boolean> {
  const up = await readUpFile(paths.up);
  return up === null || !isUp(up) || up.parts.some(({ name }) => kindOf(name) === 'host');
}

const engineRemedy = 'start it with `temper policy`, or start the server that TEMPER_ENGINE_URLS names';
/** The remedies for an engine that answers and cannot be used, by what its failure says. */
const engineRemedies: readonly (readonly [RegExp, string])[] = [
  [/got 40[13]\b/, 'set TEMPER_ENGINE_API_KEY to the key that the engine expects'],
  [/certificate/, 'set NODE_EXTRA_CA_CERTS to a file with the authority of its certificate, or correct the address'],
];

async function engineCheck(engine: Engine): Promise<Check> {
  try {
    const { ready, version, paused } = await engine.health(AbortSignal.timeout(engineTimeoutMs));
    if (!ready) return missing('engine', `${engine.url} is not ready`, engineRemedy);
    const weights = version === null ? 'initial weights' : `policy version ${version}`;
    return ok('engine', `${engine.url}, ${weights}${paused ? ', paused' : ''}`);
  } catch (error) {
    const message = errorMessage(error);
    const [, remedy = engineRemedy] = engineRemedies.find(([pattern]) => pattern.test(message)) ?? [];
    return missing('engine', message, remedy);
  }
}

function supervisor({ supervisor: { pid }, parts }: UpFile): Check {
  const down = parts.filter(({ state }) => state !== 'running');
  const restarts = parts.filter((part) => part.restarts > 0).map((part) => `${part.name} ${part.restarts}`);
  const found = `process ${pid} supervises ${parts.length} processes${restarts.length === 0 ? '' : `; restarts: ${restarts.join(', ')}`}`;
  if (down.length === 0) return ok('stack', found);
  const which = down.map(
    ({ name, state, lastExit }) => `${name} (${state}${lastExit === null ? '' : `, ${lastExit}`})`,
  );
  return warn('stack', `${found}; not running: ${which.join(', ')}`, `look at ${down[0]?.logFile ?? 'its log'}`);
}

async function* gateways({ paths, gateways: count }: Config): AsyncIterable<Check> {
  for (const gateway of controlSockets(paths.gatewaySockets, count)) {
    if (await socketAnswers(gateway)) yield ok('gateway', gateway);
    else
      yield missing(
        'gateway',
        `does not answer on ${gateway}`,
        'start it with `temper gateway`, or look at logs/gateway.log',
      );
  }
}

interface WorkerQueue {
  readonly name: string;
  readonly queue: string;
  readonly kind: QueueKind;
  readonly command: string;
}

const hostWorker = { name: 'host worker', kind: 'activity', command: 'temper worker host' } as const;

async function* workers(config: Config, hasHost: boolean): AsyncIterable<Check> {
  const server = await connectClient(temporalTarget(config)).catch(() => null);
  if (server === null) return; // checkTemporal has reported it
  const queues: readonly WorkerQueue[] = [
    { name: 'control worker', queue: controlQueue, kind: 'workflow', command: 'temper worker control' },
    ...(hasHost ? [{ ...hostWorker, queue: hostQueue(config.host) }] : []),
    { name: 'trainer worker', queue: trainerQueue, kind: 'activity', command: 'temper worker trainer' },
  ];
  try {
    for (const { name, queue, kind, command } of queues) {
      const found = await pollers(server.client, queue, kind);
      if (found.length > 0) yield ok(name, `polls ${queue} (${found.join(', ')})`);
      else yield missing(name, `no worker polls ${queue}`, `start one with \`${command}\`, or look at its log`);
    }
  } finally {
    await server.close();
  }
}
