import { z } from 'zod';
import type { Tool, ToolCall } from '../../../kits/chat-tokens/index.ts';
import { jsonObject } from '../shared/json-object.ts';
import { jsonSchema, parse, toolOf } from '../shared/reading.ts';

/**
 * The model knows functions by a name each. Clients also have custom tools, which take free text: a function with the one
 * string parameter `input`; and namespaces of tools: their names go before the functions'.
 */
export interface ToolAddress {
  readonly type: 'function' | 'custom';
  readonly namespace: string | null;
  readonly name: string;
}

export interface ClientTools {
  readonly tools: readonly Tool[];
  /** Of a name that the model has called; what nobody offered is a function. */
  addressOf(modelName: string): ToolAddress;
}

const functionTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: jsonSchema,
});
const customTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  format: z.looseObject({ syntax: z.string().nullish(), definition: z.string().nullish() }).nullish(),
});
const namespaceTool = z.looseObject({
  name: z.string().min(1),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
});
export const wireTools = z.array(z.looseObject({ type: z.string() })).nullish();
type WireTools = z.output<typeof wireTools>;

/** Throws a GatewayError. */
export function readTools(wire: WireTools): ClientTools {
  const offered = [...toolsWithin(wire, null, 'tools')];
  const addresses = new Map(offered.map(({ tool, address }) => [tool.name, address]));
  return {
    tools: offered.map(({ tool }) => tool),
    addressOf: (name) => addresses.get(name) ?? { type: 'function', namespace: null, name },
  };
}

interface Offered {
  readonly tool: Tool;
  readonly address: ToolAddress;
}

/**
 * What only OpenAI can run (web search, image generation, ...) is left out, not refused: Codex offers it in every request,
 * and a model that isn't told of a tool never calls it.
 */
function* toolsWithin(wire: WireTools, namespace: string | null, path: string): Iterable<Offered> {
  for (const [index, tool] of (wire ?? []).entries()) {
    const at = `${path}.${index}`;
    if (tool.type === 'function') {
      const { name, description, parameters } = parse(functionTool, tool, at);
      yield offer({ type: 'function', namespace, name }, description, parameters, at);
    } else if (tool.type === 'custom') {
      const { name, description, format } = parse(customTool, tool, at);
      yield offer({ type: 'custom', namespace, name }, description, freeText(format), at);
    } else if (tool.type === 'namespace' && namespace === null) {
      const { name, tools } = parse(namespaceTool, tool, at);
      yield* toolsWithin(tools, name, `${at}.tools`);
    }
  }
}

function offer(
  address: ToolAddress,
  description: string | null | undefined,
  parameters: z.output<typeof jsonSchema>,
  at: string,
): Offered {
  return { address, tool: toolOf({ name: modelNameOf(address), description, parameters }, `${at}.parameters`) };
}

/** The name that the model knows. */
export function modelNameOf({ namespace, name }: Pick<ToolAddress, 'namespace' | 'name'>): string {
  if (namespace === null) return name;
  return namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
}

function freeText(format: z.output<typeof customTool>['format']) {
  const definition = format?.definition ?? '';
  const description =
    definition === '' ? 'Free text.' : `Free text by this ${format?.syntax ?? ''} grammar:\n${definition}`;
  return { type: 'object', properties: { input: { type: 'string', description } }, required: ['input'] };
}

/** What the model has written for a custom tool. Arguments of another shape go to the client as they are, to be told off. */
export function freeTextOf({ arguments: text }: ToolCall): string {
  return inputOf(jsonObject(text)) ?? text;
}

/** The other way round, so that an echo is known again. A free text that is itself a JSON object is taken for arguments. */
export function argumentsOf(freeText: string): string {
  const value = jsonObject(freeText);
  return value === null || inputOf(value) !== null ? JSON.stringify({ input: freeText }) : freeText;
}

function inputOf(value: Readonly<Record<string, unknown>> | null): string | null {
  if (value === null || Object.keys(value).length !== 1) return null;
  return typeof value.input === 'string' ? value.input : null;
}
