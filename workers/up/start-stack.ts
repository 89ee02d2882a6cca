import { isHeldBy, watchText } from '../../infra/hosts/claim.ts';
import { readMachineId } from '../../infra/hosts/machine.ts';
import type { Config } from '../../infra/settings/config.ts';
import { openStackKeys } from '../../infra/stack.ts';
import type { SharedState } from '../../infra/store/shared-state.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { registerSearchAttributes } from '../../infra/temporal/search-attributes.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openLease } from '../claim-host.ts';
import { openState } from '../open-state.ts';
import { claimHome } from './claim-home.ts';
import { kindOf, type PartKind, type PartName, type PartStatus } from './part.ts';
import { neededParts, type PartContext, partTable } from './part-table.ts';
import { requireFreePorts } from './ports.ts';
import { type SupervisedPart, supervisePart } from './supervise-part.ts';
import { createUpFileWriter, type StackAddresses, type StackState } from './up-file.ts';

export interface StartStack {
  readonly config: Config;
  /** Default: every part that this machine needs. */
  readonly parts?: readonly PartName[];
  /** Receives a line about each slow operation. */
  readonly progress?: (line: string) => void;
  /** Called whenever a part starts, ends or restarts. */
  readonly onChange?: (parts: readonly PartStatus[]) => void;
}

export interface RunningStack {
  readonly config: Config;
  readonly addresses: StackAddresses;
  parts(): readonly PartStatus[];
  /** Stops the workers, which drain, then gateway and policy server, then the Temporal server. May be called again. */
  close(): Promise<void>;
}

/** Kinds of parts that need a key of the stack, without which they would end at their start. */
const kindsWithKey: readonly PartKind[] = ['gateway', 'host'];

/** Kinds of parts that start together, in order; they stop in the reverse order. */
const phases: readonly (readonly PartKind[])[] = [['temporal'], ['policy', 'gateway'], ['control', 'host', 'trainer']];

/**
 * Starts the processes of one machine and restarts those that end.
 *
 * - There is one stack per home: a second one throws AlreadyUp, which names the process of the first.
 * - Resolves once every part does its work and `up.json` says so. If a part can't start, all others are stopped before
 *   the error is thrown.
 * - No process outlives the caller's process, even if that is killed.
 */
export async function startStack(options: StartStack, signal: AbortSignal): Promise<RunningStack> {
  const { config, progress = () => undefined } = options;
  const names = options.parts ?? neededParts(config);
  const addresses = addressesOf(config, names);
  const namesIn = (phase: readonly PartKind[]): PartName[] => names.filter((name) => phase.includes(kindOf(name)));
  const home = await claimHome(config, progress, signal);
  const connect = () => connectClient(temporalTarget(config));
  const parts = superviseParts({ config, progress, connect }, () => {
    file.changed();
    options.onChange?.(parts.status());
  });
  let state: StackState = 'starting';
  const file = createUpFileWriter({ config, addresses, state: () => state, parts: parts.status });

  function enter(next: StackState): void {
    state = next;
    file.changed();
  }

  async function close(): Promise<void> {
    enter('stopping');
    for (const phase of phases.toReversed()) await parts.stop(namesIn(phase));
    await file.remove().finally(() => home.release());
  }

  try {
    enter('starting');
    const shared = await openState(config);
    if (names.some((name) => kindsWithKey.includes(kindOf(name)))) await openStackKeys(config, shared.objects);
    await requireFreePorts(config, names);
    if (names.includes('host')) await warnOfWatch(config, shared, progress);
    for (const phase of phases) {
      await parts.start(namesIn(phase), signal);
      if (phase.includes('temporal')) await registerAttributes(config, signal);
    }
    enter('running');
    await file.written();
  } catch (error) {
    await close();
    throw error;
  }
  let closing: Promise<void> | null = null;
  return {
    config,
    addresses,
    parts: parts.status,
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** Says that the host worker will wait for its name, whose log says so only there. */
async function warnOfWatch(config: Config, shared: SharedState, say: (line: string) => void) {
  const { host, hostLostAfterMs, paths } = config;
  const record = (await shared.hosts.find(host))?.record ?? null;
  if (record === null || record.lost !== null) return;
  const home = { machine: await readMachineId(paths.machine), lease: openLease(config, shared) };
  if (!(await isHeldBy(home, record))) say(watchText(host, hostLostAfterMs));
}

/** The supervised parts of a stack. */
interface SupervisedParts {
  status(): PartStatus[];
  /** Starts parts together; if one can't start, the other starts are aborted and its error is thrown. */
  start(names: readonly PartName[], signal: AbortSignal): Promise<void>;
  stop(names: readonly PartName[]): Promise<void>;
}

function superviseParts(context: PartContext, onChange: () => void): SupervisedParts {
  const parts = new Map<PartName, SupervisedPart>();

  async function startOne(name: PartName, signal: AbortSignal): Promise<void> {
    context.progress(`starting ${name}`);
    parts.set(name, await supervisePart(partTable[kindOf(name)](context, name), onChange, signal));
    onChange();
  }

  return {
    status: () => [...parts.values()].map((part) => part.status()),
    async start(names, signal) {
      const failed = new AbortController();
      const either = AbortSignal.any([signal, failed.signal]);
      const starts = names.map((name) => startOne(name, either));
      for (const start of starts) start.catch((error: unknown) => failed.abort(error));
      await Promise.allSettled(starts);
      either.throwIfAborted();
    },
    async stop(names) {
      await Promise.all(names.map(async (name) => await parts.get(name)?.stop()));
    },
  };
}

/** Registers the search attributes before any worker starts: a workflow that sets an unknown one hangs. */
async function registerAttributes(config: Config, signal: AbortSignal): Promise<void> {
  const target = temporalTarget(config);
  const { connection, close } = await connectClient(target);
  try {
    await registerSearchAttributes(connection, target.namespace, signal);
  } finally {
    await close();
  }
}

function addressesOf(config: Config, names: readonly PartName[]): StackAddresses {
  const { address, namespace } = temporalTarget(config);
  return {
    temporal: address,
    namespace,
    ui: names.includes('temporal') ? `http://127.0.0.1:${config.uiPort}` : null,
    policy: names.includes('policy') ? config.policyUrl : null,
    gatewayControl: config.paths.gatewaySockets.control,
  };
}
