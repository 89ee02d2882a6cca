import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listHostTools } from './host-tools.ts';
import { work } from './loop.ts';
import { createModel } from './model.ts';
import { describeTool, tools } from './tools.ts';

/**
 * mini: a small coding agent that runs inside the sandbox, as any CLI agent would. It reads its instruction from a file and
 * its settings from its own environment. Nothing here runs in a worker, and nothing may depend on an npm package: the sandbox
 * has none.
 */

/** Names of the environment variables set by the host. */
export const variables = {
  baseUrl: 'OPENAI_BASE_URL',
  secret: 'OPENAI_API_KEY',
  workdir: 'TEMPER_WORKDIR',
  maxTurns: 'TEMPER_MAX_TURNS',
  tools: 'TEMPER_TOOLS',
  /** Optional: the address of the host tools. */
  hostTools: 'TEMPER_HOST_TOOLS',
  /** Optional. */
  toolTimeoutSec: 'TEMPER_TOOL_TIMEOUT_SEC',
} as const;

export const instructionFile = '.temper-instruction.md';
const defaultToolTimeoutSec = 60;

export async function main(environment: Readonly<Record<string, string | undefined>> = process.env): Promise<number> {
  const read = (name: keyof typeof variables): string => {
    const value = environment[variables[name]];
    if (value !== undefined && value !== '') return value;
    throw new Error(`mini: expected the variable ${variables[name]}, got none`);
  };
  const names = new Set(read('tools').split(','));
  const url = environment[variables.hostTools];
  const remote = url === undefined ? [] : await listHostTools(url, read('secret'));
  const own = tools.filter(({ name }) => names.has(name) && remote.every((tool) => tool.name !== name));
  const offered = [...own, ...remote];
  return work({
    instruction: await readFile(join(environment.HOME ?? '/', instructionFile), 'utf8'),
    model: createModel({ baseUrl: read('baseUrl'), secret: read('secret'), tools: offered.map(describeTool) }),
    tools: offered,
    workspace: {
      workdir: read('workdir'),
      environment: { ...environment, [variables.secret]: undefined },
      commandTimeoutMs: Number(environment[variables.toolTimeoutSec] ?? defaultToolTimeoutSec) * 1000,
    },
    maxTurns: Number(read('maxTurns')),
    log: (line) => process.stdout.write(`${line}\n`),
  });
}
