import { Context } from '@temporalio/activity';
import { networkVariablesFor } from '../../infra/agents/network-variables.ts';
import { channelVariable, egressDirectory } from '../../infra/agents/relay/protocol.ts';
import { throughEgress } from '../../infra/agents/relay.ts';
import { grantNetwork } from '../../infra/egress/grant-network.ts';
import { createEgressProxy } from '../../infra/egress/proxy.ts';
import type { EgressRow } from '../../infra/egress/rows.ts';
import type { Held } from '../../infra/gateway/channel/hold.ts';
import { createChannels, type Egress } from '../../infra/gateway/channel/index.ts';
import type { EvaluationHost } from '../../infra/grading/evaluation.ts';
import type { NetworkedCommands } from '../../infra/grading/tests/test-network.ts';
import type { ChannelKind, SandboxMount } from '../../infra/sandbox/sandbox.ts';
import type { Store } from '../../infra/store/store.ts';
import type { NetworkPhase, NetworkPolicy, NetworkUse } from '../../workflows/contracts/network.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Host } from './host.ts';

type NetworkHost = Pick<Host, 'network' | 'store' | 'gatewaySockets' | 'channel'>;

/** Whether a phase has a network. */
export const hasNetwork = (policy: NetworkPolicy | undefined): policy is NetworkPolicy =>
  policy !== undefined && policy.mode !== 'none';

/** The proxy of one phase of a sandbox, whose record outlives this process. */
export interface OpenEgress extends Egress {
  /** Ends all connections, and returns the use that was made of them. Repeatable. */
  end(): Promise<NetworkUse>;
  rows(): readonly EgressRow[];
  /** Ends all connections; the record stays for the next process. */
  close(): void;
  /** Removes the record, once the sandbox is gone. */
  remove(): Promise<void>;
}

/** The interval in which the record is written, and so the most of it that the death of this process costs. */
const recordMs = 1_000;

/** Opens the proxy of a phase, which continues the record of an earlier process of this host. */
export async function openEgress(
  { network, store }: Pick<Host, 'network' | 'store'>,
  {
    sandbox,
    phase,
    policy,
  }: { readonly sandbox: string; readonly phase: NetworkPhase; readonly policy: NetworkPolicy },
): Promise<OpenEgress> {
  const { places, outside } = network;
  const recorded = await places.recorded(sandbox, phase);
  const proxy = createEgressProxy({ policy, phase, network: outside, recorded });
  const { log } = Context.current();
  let written = JSON.stringify(recorded);
  async function record(): Promise<void> {
    const rows = JSON.stringify(proxy.rows());
    if (rows === written) return;
    await places.record(sandbox, phase, proxy.rows());
    written = rows;
  }
  let recording: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    recording = recording.then(record).catch((error: unknown) => {
      log.warn('could not record the connections of a sandbox', { sandbox, error: String(error) });
    });
  }, recordMs).unref();
  function close(): void {
    clearInterval(timer);
    proxy.close();
  }
  return {
    socketPath: places.socketOf(sandbox),
    serve: proxy.serve,
    rows: proxy.rows,
    close,
    async end() {
      close();
      await recording;
      await record();
      return networkUse(store, proxy.rows());
    },
    async remove() {
      close();
      await recording;
      await places.remove(sandbox);
    },
  };
}

/** Returns the mounts by which a sandbox has a network: temper's own programs, and the directory of the proxy's socket. */
export async function networkMounts(
  { network: { places, runtime } }: Pick<Host, 'network'>,
  sandbox: string,
  channel: ChannelKind,
): Promise<readonly SandboxMount[]> {
  const programs = await runtime();
  if (channel === 'stream') return [programs];
  return [programs, { source: await places.make(sandbox), target: egressDirectory, readOnly: true }];
}

/** Chooses the way out of a new sandbox: the host's, if its kind offers it. */
export const channelAmong = (
  { channel }: Pick<Host, 'channel'>,
  channels: readonly [ChannelKind, ...ChannelKind[]],
): ChannelKind => (channels.includes(channel) ? channel : channels[0]);

const networkedBy = (channel: ChannelKind, task: Pick<Task, 'services' | 'hosts'>): NetworkedCommands => ({
  env: { ...networkVariablesFor(task), [channelVariable]: channel },
  through: (argv) => {
    const [program = '', ...args] = throughEgress(argv);
    return [program, ...args];
  },
});

/** Creates what opens the networks of tests on a host. */
export const createTestNetworks =
  (host: NetworkHost): EvaluationHost['testNetwork'] =>
  async (task, { sandbox, channels }) => {
    const { testNetwork: policy } = grantNetwork(task, host.network.cap);
    if (!hasNetwork(policy)) return undefined;
    const channel = channelAmong(host, channels);
    const mounts = await networkMounts(host, sandbox, channel);
    const egress = await openEgress(host, { sandbox, phase: 'tests', policy });
    const { log } = Context.current();
    let held: Held | undefined;
    function close(): void {
      held?.close();
      egress.close();
    }
    return {
      mounts,
      channel,
      commands: networkedBy(channel, task),
      carry(opened, account) {
        held = createChannels(host.gatewaySockets)[channel].hold(opened, {
          session: null,
          account,
          egress,
          onOutage: (cause) =>
            log.warn('the network of tests is broken; it is opened again', { sandbox, error: String(cause) }),
        });
      },
      close,
      end() {
        close();
        return egress.end();
      },
      remove: egress.remove,
    };
  };

/** Sums up what a phase asked of its network, and keeps the rows in the store. */
async function networkUse(store: Store, rows: readonly EgressRow[]): Promise<NetworkUse> {
  const sum = (value: (row: EgressRow) => number): number => rows.reduce((total, row) => total + value(row), 0);
  return {
    requests: sum(({ requests }) => requests),
    refused: sum(({ decision, requests }) => (decision === 'allowed' ? 0 : requests)),
    bytesIn: sum(({ bytesIn }) => bytesIn),
    bytesOut: sum(({ bytesOut }) => bytesOut),
    log: await store.put(Buffer.from(JSON.stringify(rows)), 'application/json'),
  };
}

/** Returns the policies of what runs in an agent's sandbox: those of its agents, and that of tests which run there, too. */
export const policiesInSandbox = ({ network, testNetwork, gradedIn, steps = [] }: Task): readonly NetworkPolicy[] =>
  [network, ...steps.map((step) => step.network), ...(gradedIn === 'same' ? [testNetwork] : [])].filter(hasNetwork);
