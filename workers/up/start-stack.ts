import type { Client } from '@temporalio/client';
import type { Config } from '../../infra/config.ts';
import { openStack } from '../../infra/stack.ts';
import { type ClientConnection, connectClient } from '../../infra/temporal/connection.ts';
import { registerSearchAttributes } from '../../infra/temporal/search-attributes.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { claimHome } from './claim-home.ts';
import { keepParts } from './keep-parts.ts';
import { keepUpFile } from './keep-up-file.ts';
import { kindOf, type PartKind, type PartName, type PartStatus } from './part.ts';
import { neededParts, policyUrl } from './parts.ts';
import { requireFreePorts } from './ports.ts';
import type { StackAddresses } from './up-file.ts';

export interface StartStack {
  readonly config: Config;
  /** Default: all that this machine needs. */
  readonly parts?: readonly PartName[];
  /** Told what takes long. */
  readonly progress?: (line: string) => void;
  /** Told whenever a part starts, dies or stops. */
  readonly onChange?: (parts: readonly PartStatus[]) => void;
}

export interface RunningStack {
  readonly config: Config;
  readonly addresses: StackAddresses;
  parts(): readonly PartStatus[];
  /** Workers first, which drain, then the gateway, the policy server, and the Temporal server last. Repeatable. */
  close(): Promise<void>;
}

/** Who starts together; who stops together, backwards. */
const phases: readonly (readonly PartKind[])[] = [['temporal'], ['policy', 'gateway'], ['control', 'host', 'trainer']];

/**
 * Runs the processes of one machine and keeps them running.
 *
 * - One stack per home: a second one is refused, naming the first one's process.
 * - Resolves once every part does its work and `up.json` says so; rejects, with nothing left running, when one can't.
 * - Nothing outlives the process that called this, however it ends.
 */
export async function startStack(options: StartStack, signal: AbortSignal): Promise<RunningStack> {
  const { config, progress = () => undefined } = options;
  const names = options.parts ?? neededParts(config);
  const addresses = addressesOf(config, names);
  const namesIn = (phase: readonly PartKind[]): PartName[] => names.filter((name) => phase.includes(kindOf(name)));
  const home = await claimHome(config, progress, signal);
  const server = lazyServer(config);
  const parts = keepParts({ config, progress, client: server.client }, () => {
    file.changed();
    options.onChange?.(parts.status());
  });
  const file = keepUpFile(config, addresses, parts.status);

  async function close(): Promise<void> {
    for (const phase of phases.toReversed()) await parts.stop(namesIn(phase));
    await server.close();
    await file.remove().finally(() => home.release());
  }

  try {
    await openStack(config.paths);
    await requireFreePorts(config, names);
    for (const phase of phases) {
      await parts.start(namesIn(phase), signal);
      // Before any worker: a workflow that sets an unknown attribute hangs.
      if (phase.includes('temporal')) await server.open(signal);
    }
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

/** The connection to the stack's Temporal server, once that is up and knows the search attributes. */
function lazyServer(config: Config) {
  let connection: ClientConnection | null = null;
  return {
    async open(signal: AbortSignal): Promise<void> {
      const target = temporalTarget(config);
      connection = await connectClient(target);
      await registerSearchAttributes(connection.connection, target.namespace, signal);
    },
    client(): Client {
      if (connection === null) throw new Error('expected the Temporal server to be up before this part, it is not');
      return connection.client;
    },
    async close(): Promise<void> {
      await connection?.close();
    },
  };
}

function addressesOf(config: Config, names: readonly PartName[]): StackAddresses {
  const { address, namespace } = temporalTarget(config);
  return {
    temporal: address,
    namespace,
    ui: names.includes('temporal') ? `http://127.0.0.1:${config.uiPort}` : null,
    policy: names.includes('policy') ? policyUrl(config) : null,
    gatewayControl: config.paths.gatewaySockets.control,
  };
}
