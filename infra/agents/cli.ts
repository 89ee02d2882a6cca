import { sandboxKinds } from '../../workflows/contracts/sandbox-kinds.ts';
import type { FileEntry } from '../sandbox/file-tree.ts';
import type { AgentContext } from './agent.ts';
import type { Packages } from './packages.ts';
import { throughRelay } from './relay.ts';
import type { Runtime } from './runtime.ts';

/** Dependencies of the agents that are third-party command-line programs. */
export interface CliDependencies {
  readonly runtime: Runtime;
  readonly packages: Packages;
}

/** The environment variable that holds the session's secret, for agents whose configuration names such a variable. */
export const secretVariable = 'TEMPER_SESSION_SECRET';
/** The model's name in agent configurations. The gateway serves one model and accepts any name. */
export const modelName = 'policy';

/** The kinds of sandbox for Bun programs. Bun reserves more memory than a local sandbox allows, and crashes at its start. */
export const bunSandboxes = sandboxKinds.filter((kind) => kind !== 'local');

/** The loader of Bun programs, from the image: such a program locates itself by its start path, so temper's loader can't start it. */
export const bunLoader = process.arch === 'arm64' ? '/lib/ld-linux-aarch64.so.1' : '/lib64/ld-linux-x86-64.so.2';

/** Tokens of the context reserved for the reply. Agents' own defaults assume windows that small models don't have. */
export const replyReserve = (contextLength: number): number => Math.min(16_384, Math.floor(contextLength / 4));

const instructionFile = '.temper-instruction.md';

/** Returns the gateway's address and the session's secret. Throws if either is missing. */
export function requireGateway(agent: string, { baseUrl, secret }: AgentContext): GatewayAccess {
  if (baseUrl === null || secret === null) throw new Error(`${agent}: expected the address and secret of a gateway`);
  return { baseUrl, secret };
}

export interface GatewayAccess {
  readonly baseUrl: string;
  readonly secret: string;
}

/**
 * Runs a program through the relay with the instruction on its standard input: as an argument it could be too long, or be
 * mistaken for an option.
 */
export const withInstruction = (baseUrl: string, argv: readonly string[]): readonly string[] =>
  throughRelay(baseUrl, { exec: ['/bin/sh', '-c', `exec "$@" <"$HOME/${instructionFile}"`, 'sh', ...argv] });

/** Files for HOME: the instruction, and configuration files by path. */
export function homeFiles(
  instruction: string,
  configuration: Readonly<Record<string, string>> = {},
): Map<string, FileEntry> {
  const texts = Object.entries({ [instructionFile]: instruction, ...configuration });
  return new Map(texts.map(([path, text]) => [path, { mode: 0o600, bytes: new TextEncoder().encode(text) }]));
}
