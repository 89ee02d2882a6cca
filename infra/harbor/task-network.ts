import { isDeepStrictEqual } from 'node:util';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { describeIssue } from '../../workflows/contracts/input.ts';
import { defaultPorts, type NetworkPolicy, networkPolicy } from '../../workflows/contracts/network.ts';
import type { TaskStep } from '../../workflows/contracts/task.ts';

/** The network fields of a table of a task.toml. */
interface NetworkFields {
  readonly network_mode?: 'no-network' | 'public' | 'allowlist' | undefined;
  readonly allowed_hosts?: readonly string[] | undefined;
  readonly allowed_ports?: readonly number[] | undefined;
  readonly allow_internet?: boolean | undefined;
}

type Tables = Readonly<Record<'environment' | 'agent' | 'verifier', NetworkFields>>;

/**
 * Returns the network of a task's agent; undefined if it has none. The agent's own table comes before the environment's, where
 * `public` is Harbor's default, which most tasks do not use: it asks for nothing. Throws TemperFailure MalformedTask.
 */
export function agentNetwork({ environment, agent }: Pick<Tables, 'environment' | 'agent'>): NetworkPolicy | undefined {
  const { table, policy } = askedBy({ environment, agent }, 'agent');
  return table === 'environment' && policy?.mode === 'public' ? undefined : policy;
}

/** The facts of tests on which their network depends where the task does not name it. */
export interface TestsToConnect {
  /** Whether a log says what they found. Their images hold all that they need, so they have no network by default. */
  readonly judgedByLog: boolean;
  /** The command by which they, or the set-up before them, download; null if there is none. */
  readonly download: string | null;
}

/**
 * Returns the network of a task's tests; undefined if they have none. The verifier's own table comes before the environment's.
 * Tests that install what they need count on Harbor's default, `public`, and others run without it. So these get it as far as
 * the operator allows, and those that download need it. Throws TemperFailure MalformedTask.
 */
export function testNetwork(tables: Tables, { judgedByLog, download }: TestsToConnect): NetworkPolicy | undefined {
  const { verifier, environment } = tables;
  const { table, policy } = askedBy({ verifier, environment }, 'verifier');
  if (table === 'verifier') return policy;
  const isDefault =
    environment.network_mode === undefined && environment.allow_internet !== false && policy === undefined;
  if (policy?.mode === 'public') return byDefault(policy, download);
  const isOpen = isDefault && !judgedByLog;
  return isOpen ? byDefault({ mode: 'public', hosts: [], ports: [...defaultPorts] }, download) : policy;
}

/** Returns the network that tests have unless their task says otherwise: needed if they download, else optional. */
const byDefault = (policy: NetworkPolicy, download: string | null): NetworkPolicy => ({
  ...policy,
  ...(download === null ? { optional: true } : { neededFor: download }),
});

/**
 * Returns the network of the build of a task's image: the environment's hosts, if it lists some, or every public address. The
 * mode of the environment concerns what runs later, so `no-network` leaves it; a build itself may ask for none. Throws
 * TemperFailure MalformedTask.
 */
export function buildNetwork(
  { environment }: Pick<Tables, 'environment'>,
  { offline = false }: { readonly offline?: boolean } = {},
): NetworkPolicy {
  if (offline) return noNetwork;
  const { policy } = askedBy({ environment }, 'environment');
  return policy?.mode === 'allowlist' ? policy : { mode: 'public', hosts: [], ports: [...defaultPorts] };
}

const noNetwork: NetworkPolicy = { mode: 'none', hosts: [], ports: [...defaultPorts] };

/**
 * Returns the networks of a step that differ from those of the whole task. A step has one of its own where its tables name one.
 * Throws TemperFailure MalformedTask.
 */
export function stepNetworks(
  step: Pick<Tables, 'agent' | 'verifier'>,
  whole: Pick<TaskStep, 'network' | 'testNetwork'>,
  download: string | null,
): Pick<TaskStep, 'network' | 'testNetwork'> {
  const ownOf = (phase: 'agent' | 'verifier', usual: NetworkPolicy = noNetwork): NetworkPolicy | undefined => {
    const { table, policy = noNetwork } = askedBy({ [phase]: step[phase] }, phase, 'steps: ');
    return table !== phase || isDeepStrictEqual(policy, usual) ? undefined : policy;
  };
  const network = ownOf('agent', whole.network);
  const testNetwork = ownOf('verifier', whole.testNetwork) ?? defaultOfStep(whole.testNetwork, download);
  return { ...(network !== undefined && { network }), ...(testNetwork !== undefined && { testNetwork }) };
}

/** Returns the default network of a step whose tests need it and those of the whole task do not, or the other way round. */
function defaultOfStep(whole: NetworkPolicy | undefined, download: string | null): NetworkPolicy | undefined {
  const { optional, neededFor, ...policy } = whole ?? noNetwork;
  if (optional === undefined && neededFor === undefined) return undefined;
  return (neededFor === undefined) === (download === null) ? undefined : byDefault(policy, download);
}

interface Asked {
  readonly table: string;
  /** Undefined for the mode `no-network`, and for no mode at all. */
  readonly policy: NetworkPolicy | undefined;
}

/** Rejects ports that no hosts belong to: those of another table have ports of their own. */
function requireHosts(
  table: string,
  { network_mode: mode, allowed_hosts: hosts, allowed_ports: ports }: NetworkFields,
  where: string,
): void {
  if (ports === undefined || hosts !== undefined || mode !== undefined) return;
  throw new TemperFailure(
    'MalformedTask',
    `task.toml: ${where}${table}: network: allowed_ports: expected allowed_hosts in the same table, got none`,
  );
}

/** Returns what the table of a phase asks for, or the environment's where that says nothing. */
function askedBy(tables: Readonly<Record<string, NetworkFields>>, phase: string, where = ''): Asked {
  for (const [name, fields] of Object.entries(tables)) requireHosts(name, fields, where);
  const own = tables[phase];
  const table = own?.network_mode === undefined && own?.allowed_hosts === undefined ? 'environment' : phase;
  const { network_mode: mode = 'no-network', allowed_hosts: hosts = [], allowed_ports: ports } = tables[table] ?? {};
  if (hosts.length === 0 && mode === 'no-network') return { table, policy: undefined };
  const asked = { mode: mode === 'no-network' ? 'none' : mode, hosts, ports };
  const parsed = networkPolicy.safeParse(asked);
  if (parsed.success) return { table, policy: parsed.data };
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, asked)).join('; ');
  throw new TemperFailure('MalformedTask', `task.toml: ${where}${table}: network: ${problems}`);
}
