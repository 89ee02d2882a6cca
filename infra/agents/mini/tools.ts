import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { runBash, type Workspace } from './bash.ts';

/** A tool that the model may call, in a place to work. Its failure is reported to the model and never ends the rollout. */
export interface Tool<Place = unknown> {
  readonly name: string;
  readonly description: string;
  /** The JSON schema of its arguments. */
  readonly schema: ArgumentSchema;
  /** Returns the text for the model; null ends the agent's work. */
  run(given: ReadonlyMap<string, unknown>, place: Place): Promise<string | null>;
}

export interface ArgumentSchema {
  readonly [key: string]: unknown;
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** A tool of mini's own. */
interface OwnTool extends Pick<Tool, 'name' | 'description'> {
  /** Descriptions by argument name. All arguments are strings and required. */
  readonly parameters: Readonly<Record<string, string>>;
  run(args: Readonly<Record<string, string>>, workspace: Workspace): Promise<string | null>;
}

const bash: OwnTool = {
  name: 'bash',
  description: 'Run a shell command in the repository.',
  parameters: { command: 'the command' },
  run: ({ command = '' }, workspace) => runBash(command, workspace),
};

const edit: OwnTool = {
  name: 'edit',
  description: 'Replace text in a file; the old text must occur exactly once. With empty old text, make a new file.',
  parameters: { path: 'the file', old: 'the text to replace', new: 'the text to put there' },
  run: async ({ path = '', old = '', new: replacement = '' }, { workdir }) => {
    const file = resolve(workdir, path);
    if (old === '') {
      await writeFile(file, replacement, { flag: 'wx' });
      return 'made';
    }
    const before = await readFile(file, 'utf8');
    const times = before.split(old).length - 1;
    if (times !== 1) return `error: the old text occurs ${times} times in ${path}, expected once`;
    await writeFile(
      file,
      before.replace(old, () => replacement),
    );
    return 'edited';
  },
};

const submit: OwnTool = {
  name: 'submit',
  description: 'Hand in the work and end.',
  parameters: {},
  run: async () => null,
};

export const tools: readonly Tool<Workspace>[] = [bash, edit, submit].map(ownTool);

function ownTool({ name, description, parameters, run }: OwnTool): Tool<Workspace> {
  const properties = Object.entries(parameters).map(([key, text]) => [key, { type: 'string', description: text }]);
  return {
    name,
    description,
    schema: { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(parameters) },
    async run(given, workspace) {
      const args: Record<string, string> = {};
      for (const key of Object.keys(parameters)) {
        const value = given.get(key);
        if (typeof value !== 'string')
          return `error: ${key}: expected a string, got ${JSON.stringify(value) ?? 'nothing'}`;
        args[key] = value;
      }
      return run(args, workspace);
    },
  };
}

/** Describes a tool in the form of the Chat Completions API. */
export const describeTool = ({ name, description, schema }: Pick<Tool, 'name' | 'description' | 'schema'>) => ({
  type: 'function',
  function: { name, description, parameters: schema },
});

/** Runs one tool call. An invalid call or a failing tool becomes the text for the model; null ends the agent's work. */
export async function callTool<Place>(
  offered: readonly Tool<Place>[],
  call: { readonly name: string; readonly arguments: string },
  place: Place,
): Promise<string | null> {
  const tool = offered.find(({ name }) => name === call.name);
  if (tool === undefined) {
    return `error: expected one of ${offered.map(({ name }) => name).join(', ')}, got ${JSON.stringify(call.name)}`;
  }
  const args = readArguments(call.arguments);
  if (typeof args === 'string') return `error: ${args}`;
  return tool.run(args, place).catch((error: unknown) => `error: ${error instanceof Error ? error.message : error}`);
}

function readArguments(text: string): ReadonlyMap<string, unknown> | string {
  let given: unknown;
  try {
    given = JSON.parse(text === '' ? '{}' : text);
  } catch {
    return `expected the arguments as a JSON object, got ${text.slice(0, 200)}`;
  }
  return new Map(typeof given === 'object' && given !== null ? Object.entries(given) : []);
}
