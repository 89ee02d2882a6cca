import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listHostTools } from '../mini/host-tools.ts';
import { createModel } from '../mini/model.ts';
import { describeTool } from '../mini/tools.ts';
import { work } from './loop.ts';
import { instructionFile, variables } from './settings.ts';
import { openTerminal } from './terminal.ts';
import { createTools } from './tools.ts';

/**
 * terminal: an agent that works by keystrokes in one terminal, as a person does. It runs inside the sandbox, reads its
 * instruction from a file and its settings from its own environment, and depends on no npm package but xterm.js.
 */

const defaultLongestWaitSec = 60;

export async function main(environment: Readonly<Record<string, string | undefined>> = process.env): Promise<number> {
  const read = (name: keyof typeof variables): string => {
    const value = environment[variables[name]];
    if (value !== undefined && value !== '') return value;
    throw new Error(`terminal: expected the variable ${variables[name]}, got none`);
  };
  const home = environment.HOME ?? '/';
  const url = environment[variables.hostTools];
  const remote = url === undefined ? [] : await listHostTools(url, read('secret'));
  const own = new Set<string>(Object.values(variables));
  const terminal = await openTerminal({
    workdir: read('workdir'),
    // What runs in the terminal does not inherit the secret.
    environment: Object.fromEntries(Object.entries(environment).filter(([name]) => !own.has(name))),
    directory: home,
  });
  const asText = read('commands') === 'text';
  const { tools, desk } = createTools({
    terminal,
    longestWaitSec: Number(environment[variables.longestWaitSec] ?? defaultLongestWaitSec),
    submit: remote.find(({ name }) => name === 'submit') ?? null,
  });
  const offered = [...(asText ? [] : tools), ...remote];
  return work({
    instruction: await readFile(join(home, instructionFile), 'utf8'),
    model: createModel({
      baseUrl: read('baseUrl'),
      secret: read('secret'),
      ...(offered.length > 0 && { tools: offered.map(describeTool) }),
    }),
    tools: [...tools, ...remote],
    desk,
    asText,
    maxTurns: Number(read('maxTurns')),
    log: (line) => process.stdout.write(`${line}\n`),
  });
}
