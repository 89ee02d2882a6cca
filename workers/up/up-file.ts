import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { isRunning, processIdentity } from '../../infra/process/process-identity.mjs';
import type { Config } from '../../infra/settings/config.ts';
import { storeVariables } from '../../infra/settings/environment.ts';
import { networkModes } from '../../workflows/contracts/network.ts';
import { type PartName, type PartStatus, partKinds, partStates } from './part.ts';

const storedIdentity = z.object({ pid: z.int(), startedAt: z.string() });

const stackStates = ['starting', 'running', 'stopping'] as const;
export type StackState = (typeof stackStates)[number];

const moduleNames = ['TEMPER_AGENTS', 'TEMPER_TOOLS', 'TEMPER_REWARDS'] as const;

const partName = new RegExp(`^(${partKinds.join('|')}|gateway-\\d+)$`);

/** Content of `up.json`, by which `temper status`, the next `temper up` and other tools find the stack of a home. */
const upFile = z.object({
  supervisor: storedIdentity,
  state: z.enum(stackStates),
  addresses: z.object({
    temporal: z.string(),
    namespace: z.string(),
    ui: z.string().nullable(),
    policy: z.string().nullable(),
    gatewayControl: z.string(),
  }),
  /** Ports in use, which may differ from the settings of a client's own environment. */
  ports: z.object({ temporal: z.int(), ui: z.int(), policy: z.int() }),
  /** The variables that name the store, which a client's own environment may lack. */
  store: z.partialRecord(z.enum(storeVariables), z.string()),
  /** The variables that name the operator's own modules. A path is absolute, since a client has another working directory. */
  modules: z.record(z.enum(moduleNames), z.string()),
  /** The network that its tasks may have at most, which a client's own environment need not say. */
  network: z.enum(networkModes),
  /** The name of the host, which a client's own environment may lack, too. */
  host: z.string(),
  parts: z.array(
    z.object({
      name: z.custom<PartName>((name) => typeof name === 'string' && partName.test(name)),
      state: z.enum(partStates),
      process: storedIdentity.nullable(),
      restarts: z.int(),
      lastExit: z.string().nullable(),
      logFile: z.string(),
    }),
  ),
});
export type UpFile = z.output<typeof upFile>;
export type StackAddresses = UpFile['addresses'];

/** Reads which stack was last brought up on a home; null if there is none. It may have ended since: see `isUp`. */
export async function readUpFile(path: string): Promise<UpFile | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) return null;
  const parsed = upFile.safeParse(parseJson(text));
  return parsed.success ? parsed.data : null; // another version of temper wrote it: treat it as missing
}

/** Whether the supervisor named in the file still runs. */
export function isUp({ supervisor }: UpFile): boolean {
  return isRunning(supervisor);
}

export async function removeUpFile(path: string): Promise<void> {
  await rm(path, { force: true });
}

/** Keeps `up.json` in step with the parts of a running stack. */
export interface UpFileWriter {
  /** Writes the file after a change; writes run one after the other, so that the last one wins. */
  changed(): void;
  /** Resolves once the last change is written. */
  written(): Promise<void>;
  remove(): Promise<void>;
}

/** The facts that the writer records of a stack; the functions return what holds at the moment. */
export interface RecordedStack {
  readonly config: Config;
  readonly addresses: StackAddresses;
  state(): StackState;
  parts(): readonly PartStatus[];
}

export function createUpFileWriter(stack: RecordedStack): UpFileWriter {
  const path = stack.config.paths.up;
  let last = Promise.resolve();
  return {
    changed() {
      last = last
        .then(() => write(path, snapshot(stack)))
        // A full disk must not stop the stack: the file is stale until the next change writes it.
        .catch(() => undefined);
    },
    written: () => last,
    async remove() {
      await last;
      await removeUpFile(path);
    },
  };
}

/** Replaces the file in one step, so that a reader never sees half of it. */
async function write(path: string, content: UpFile): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`);
  await rename(draft, path);
}

function snapshot({ config, addresses, state, parts }: RecordedStack): UpFile {
  return {
    supervisor: identityOf(process.pid) ?? { pid: process.pid, startedAt: '' },
    state: state(),
    addresses,
    ports: { temporal: config.temporalPort, ui: config.uiPort, policy: config.policyPort },
    store: storeOf(config),
    modules: {
      TEMPER_AGENTS: config.agents.join(','),
      TEMPER_TOOLS: config.tools.join(','),
      TEMPER_REWARDS: config.rewards.join(','),
    },
    network: config.network,
    host: config.host,
    parts: parts().map(({ pid, ...part }) => ({ ...part, process: pid === null ? null : identityOf(pid) })),
  };
}

function storeOf({ env }: Config): UpFile['store'] {
  return Object.fromEntries(storeVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

function identityOf(pid: number): { readonly pid: number; readonly startedAt: string } | null {
  const { startedAt } = processIdentity(pid);
  return startedAt === undefined ? null : { pid, startedAt };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
