import { z } from 'zod';
import type { Tool, ToolCall } from '../../../kits/chat-tokens/index.ts';
import { jsonObject } from '../shared/json-object.ts';
import { jsonSchema, parse, toolOf } from '../shared/reading.ts';

/**
 * The client's address of a tool. The model knows only functions with plain names. A custom tool, which takes free text,
 * becomes a function with one string parameter `input`; a namespace becomes a prefix of its functions' names; a search for
 * tools, which the client runs, becomes a function too.
 */
export interface ToolAddress {
  readonly type: 'function' | 'custom' | 'search';
  readonly namespace: string | null;
  readonly name: string;
}

export interface ClientTools {
  readonly tools: readonly Tool[];
  /** Returns the address of a name that the model has called. A name that was not offered counts as a function. */
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
const searchTool = z.looseObject({
  execution: z.literal('client'),
  description: z.string().nullish(),
  parameters: jsonSchema,
});
/** The name by which the model knows the client's search for tools. */
export const searchName = 'tool_search';
export const wireTools = z.array(z.looseObject({ type: z.string() })).nullish();
export type WireTools = z.output<typeof wireTools>;

/** Reads the tools that a request offers. Throws a GatewayError. */
export function readTools(wire: WireTools): ClientTools {
  const offered = [...toolsWithin(wire, null, 'tools')];
  const addresses = new Map(offered.map(({ tool, address }) => [tool.name, address]));
  return {
    // A tool that is found twice is offered once.
    tools: [...new Map(offered.map(({ tool }) => [tool.name, tool])).values()],
    addressOf: (name) => addresses.get(name) ?? { type: 'function', namespace: null, name },
  };
}

interface Offered {
  readonly tool: Tool;
  readonly address: ToolAddress;
}

/**
 * Yields the tools of a list and its namespaces. Tools that only OpenAI can run (web search, image generation, …) are left
 * out, not refused: Codex offers them in every request, and a model never calls a tool that it does not see.
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
    } else if (tool.type === 'tool_search') {
      const search = searchTool.safeParse(tool).data;
      if (search === undefined) continue;
      const address: ToolAddress = { type: 'search', namespace: null, name: searchName };
      yield offer(address, search.description, search.parameters, at);
    } else if (tool.type === 'namespace' && namespace === null) {
      const { name, tools } = parse(namespaceTool, tool, at);
      yield* toolsWithin(tools, name, `${at}.tools`);
    }
  }
}

/** Yields the names by which the model knows the tools of a list. */
export function* namesOf(wire: WireTools): Iterable<string> {
  for (const { tool } of toolsWithin(wire, null, 'tools')) yield tool.name;
}

function offer(
  address: ToolAddress,
  description: string | null | undefined,
  parameters: z.output<typeof jsonSchema>,
  at: string,
): Offered {
  return { address, tool: toolOf({ name: modelNameOf(address), description, parameters }, `${at}.parameters`) };
}

/** Returns the name by which the model knows a tool. */
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

/** Returns the free text of a custom tool's call. Arguments of another shape reach the client unchanged, which rejects them. */
export function freeTextOf({ arguments: text }: ToolCall): string {
  return inputOf(jsonObject(text)) ?? text;
}

/** Converts a free text back to arguments, so that an echo is recognized. A text that is a JSON object counts as arguments. */
export function argumentsOf(freeText: string): string {
  const value = jsonObject(freeText);
  return value === null || inputOf(value) !== null ? JSON.stringify({ input: freeText }) : freeText;
}

function inputOf(value: Readonly<Record<string, unknown>> | null): string | null {
  if (value === null || Object.keys(value).length !== 1) return null;
  return typeof value.input === 'string' ? value.input : null;
}
