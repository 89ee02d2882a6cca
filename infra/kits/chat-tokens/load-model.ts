import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { z } from 'zod';
import type { Message, Tool } from './conversation.ts';
import { InvalidModelDirectory, TemplateRejection } from './errors.ts';
import { familyNames, familyOf } from './families.ts';
import type { ArgumentsForm, Model, Takes } from './model.ts';
import { type Renderer, renderText } from './render.ts';
import { anySystem, systemFormOf } from './system-messages.ts';
import { createTokenTable, type TokenTable } from './token-table.ts';

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const tokenizerConfig = z.looseObject({
  bos_token: tokenText.nullish(),
  eos_token: tokenText.nullish(),
  unk_token: tokenText.nullish(),
  pad_token: tokenText.nullish(),
  chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]).nullish(),
});
type TokenizerConfig = z.output<typeof tokenizerConfig>;
const ends = z.looseObject({ eos_token_id: z.union([z.number(), z.array(z.number())]).nullish() });

const argumentProbe = 'temper-argument';

/**
 * Loads a model directory: `tokenizer.json`, `tokenizer_config.json`, the chat template (a file of its own or in the config)
 * and, if present, `generation_config.json`. Throws InvalidModelDirectory, which names the file that is missing or invalid.
 */
export async function loadModel(dir: string): Promise<Model> {
  const tokenizerJson = await readJson(join(dir, 'tokenizer.json'));
  const configJson = (await readJsonIfThere(join(dir, 'tokenizer_config.json'))) ?? {};
  const config = parseFile(join(dir, 'tokenizer_config.json'), tokenizerConfig, configJson);
  // Jinja normalizes line breaks too; otherwise the one after each block would be printed.
  const templateText = (await readTemplate(dir, config)).replaceAll(/\r\n?/g, '\n');
  const tokens = wrapErrors(join(dir, 'tokenizer.json'), () => createTokenTable(tokenizerJson, configJson));
  const template = wrapErrors(`the chat template of ${dir}`, () => new Template(templateText));
  const family = familyOf(templateText);
  if (family === null) {
    throw new InvalidModelDirectory(
      `the chat template of ${dir} has a tool-call syntax that temper does not parse; expected one of ${familyNames.join(', ')}, where plain is a template without tools`,
    );
  }
  const constants: Record<string, string> = {};
  for (const name of ['bos_token', 'eos_token', 'unk_token', 'pad_token'] as const) {
    const value = config[name];
    if (value) constants[name] = value;
  }
  const stopTokenIds = await readStops(dir, tokens, [config.eos_token ?? '', ...family.turnClose]);
  const found = findForms({ template, constants, family });
  return { name: basename(dir), tokens, family, template, constants, stopTokenIds, ...found };
}

async function readTemplate(dir: string, config: TokenizerConfig): Promise<string> {
  const file = await readIfThere(join(dir, 'chat_template.jinja'));
  if (file !== null) return file;
  const inConfig = config.chat_template;
  if (typeof inConfig === 'string') return inConfig;
  const byName = (name: string) => inConfig?.find((entry) => entry.name === name)?.template;
  const template = byName('tool_use') ?? byName('default');
  if (template !== undefined) return template;
  throw new InvalidModelDirectory(
    `${dir} has no chat template; expected chat_template.jinja or chat_template in tokenizer_config.json`,
  );
}

async function readStops(dir: string, tokens: TokenTable, names: readonly string[]): Promise<number[]> {
  const path = join(dir, 'generation_config.json');
  const listed = parseFile(path, ends, (await readJsonIfThere(path)) ?? {}).eos_token_id ?? [];
  const stops = new Set(typeof listed === 'number' ? [listed] : listed);
  for (const name of names) {
    const id = tokens.idOf(name);
    if (id !== null) stops.add(id);
  }
  if (stops.size > 0) return [...stops];
  throw new InvalidModelDirectory(
    `${dir} names no token that ends a turn; expected eos_token in tokenizer_config.json or eos_token_id in generation_config.json`,
  );
}

async function readJson(path: string): Promise<object> {
  const found = await readJsonIfThere(path);
  if (found !== null) return found;
  throw new InvalidModelDirectory(`${path} is missing; expected a model directory with a tokenizer.json`);
}

async function readJsonIfThere(path: string): Promise<object | null> {
  const text = await readIfThere(path);
  return text === null
    ? null
    : parseFile(
        path,
        z.looseObject({}),
        wrapErrors(path, () => JSON.parse(text)),
      );
}

async function readIfThere(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new InvalidModelDirectory(`cannot read ${path}: ${error.message}`, { cause: error });
  });
}

function parseFile<Schema extends z.ZodType>(path: string, schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidModelDirectory(`${path}: ${z.prettifyError(parsed.error)}`);
}

function wrapErrors<Value>(what: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new InvalidModelDirectory(`cannot use ${what}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

type Forms = Pick<Renderer, 'argumentsForm' | 'takes' | 'severalCalls' | 'systemForm'>;

const takesAll: Takes = {
  anyArguments: true,
  nullArguments: true,
  nullInTools: true,
  toolsWithoutDescription: true,
};

/** Finds out by rendering what a template does with calls, tools and system messages, since templates do not declare it. */
function findForms(renderer: Omit<Renderer, keyof Forms>): Forms {
  const any = { ...renderer, argumentsForm: 'none', takes: takesAll, severalCalls: true } as const;
  const systemForm = systemFormOf((messages, tools) =>
    renderOrNull({ ...any, systemForm: anySystem }, messages, tools),
  );
  const prints = (argumentsForm: ArgumentsForm, ...args: readonly string[]): boolean => {
    const toolCalls = args.map((text, at) => ({ id: `call_${at}`, name: 'tool', arguments: text }));
    const text = renderOrNull({ ...any, argumentsForm, systemForm }, [
      user,
      { role: 'assistant', text: '', reasoning: '', toolCalls },
    ]);
    return text !== null && args.every((_, at) => text.includes(`${argumentProbe}-${at}`));
  };
  const takesTool = (tool: Tool): boolean => renderOrNull({ ...any, systemForm }, [user], [tool]) !== null;
  const [first, second] = [0, 1].map((at) => JSON.stringify({ x: `${argumentProbe}-${at}` }));
  const forms = ['object', 'text'] as const;
  const argumentsForm = forms.find((form) => prints(form, first ?? '')) ?? 'none';
  return {
    argumentsForm,
    severalCalls: prints(argumentsForm, first ?? '', second ?? ''),
    takes: {
      anyArguments: prints('object', `${argumentProbe}-0`),
      nullArguments: prints('object', JSON.stringify({ x: `${argumentProbe}-0`, y: null })),
      nullInTools: takesTool({ name: 'tool', description: 'x', parameters: parametersWithNulls }),
      toolsWithoutDescription: takesTool({ name: 'tool', description: null, parameters: null }),
    },
    systemForm,
  };
}

const user: Message = { role: 'user', text: 'x' };
const parametersWithNulls = {
  type: 'object',
  properties: { x: { type: 'string', description: null, default: null } },
  required: null,
};

function renderOrNull(renderer: Renderer, messages: readonly Message[], tools: readonly Tool[] = []): string | null {
  try {
    return renderText(renderer, messages, tools, 'last-message');
  } catch (error) {
    if (error instanceof TemplateRejection) return null;
    throw error;
  }
}
