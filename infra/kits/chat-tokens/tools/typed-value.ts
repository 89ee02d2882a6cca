import { z } from 'zod';
import { type Arguments, parseJson } from './call.ts';

/** A value that was sampled without quotes, as JSON text of a type that its schema allows. */
export interface TypedValue {
  readonly json: string;
  readonly fits: boolean;
}

/**
 * Converts text to the first of the schema's types that it fits; numbers keep the digits that were sampled. Text that fits
 * none of them stays text. Without a type, only text that begins like a JSON object or array is converted: `true` may well be
 * a command.
 */
function typedValue(text: string, schema: unknown): TypedValue {
  const types = typesOf(schema);
  const asText = JSON.stringify(text);
  if (types.size === 0) return { json: as.object(text) ?? as.array(text) ?? asText, fits: true };
  for (const type of order) {
    const json = types.has(type) ? as[type](text) : null;
    if (json !== null) return { json, fits: true };
  }
  return { json: asText, fits: types.has('string') };
}

/** Converts arguments that were sampled by name to the JSON text of an object. */
export function typedArguments(
  values: ReadonlyMap<string, string>,
  parameters: Readonly<Record<string, unknown>> | null,
): Arguments {
  const properties = shape.safeParse(parameters).data?.properties ?? {};
  const typed = [...values].map(([name, text]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return { name, ...typedValue(text, schema) };
  });
  const text = `{${typed.map(({ name, json }) => `${JSON.stringify(name)}: ${json}`).join(', ')}}`;
  return { status: typed.every(({ fits }) => fits) ? 'ok' : 'mistyped', text };
}

/** The facts about a tool's parameters that help to tell delimiters from text. */
export interface KnownParameters {
  readonly names: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  /** Whether the value of a parameter may be any text. */
  readonly allowsText: (name: string) => boolean;
}

export function knownParameters(parameters: Readonly<Record<string, unknown>> | null): KnownParameters {
  const { properties = {}, required = [] } = shape.safeParse(parameters).data ?? {};
  return {
    names: new Set(Object.keys(properties)),
    required: new Set(required),
    allowsText(name) {
      const types = typesOf(Object.hasOwn(properties, name) ? properties[name] : undefined);
      return types.size === 0 || types.has('string');
    },
  };
}

const variants = z.array(z.unknown()).optional().catch(undefined);
const shape = z.looseObject({
  type: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .catch(undefined),
  nullable: z.boolean().optional().catch(undefined),
  enum: variants,
  anyOf: variants,
  oneOf: variants,
  allOf: variants,
  properties: z.record(z.string(), z.unknown()).optional().catch(undefined),
  required: z.array(z.string()).optional().catch(undefined),
});

/** The depth to which schemas inside a schema are followed. */
const depthLimit = 8;

function typesOf(schema: unknown, depth = 0): Set<string> {
  const parsed = shape.safeParse(schema).data;
  if (parsed === undefined || depth > depthLimit) return new Set();
  const { type, nullable, anyOf = [], oneOf = [], allOf = [] } = parsed;
  const types = new Set(typeof type === 'string' ? [type] : type);
  for (const variant of [...anyOf, ...oneOf, ...allOf]) for (const each of typesOf(variant, depth + 1)) types.add(each);
  if (types.size === 0) for (const value of parsed.enum ?? []) types.add(value === null ? 'null' : typeof value);
  if (nullable && types.size > 0) types.add('null');
  return types;
}

const order = ['null', 'boolean', 'integer', 'number', 'object', 'array'] as const;
const words = (json: string, python: string) => (text: string) => ([json, python].includes(text.trim()) ? json : null);
const isTrue = words('true', 'True');
const isFalse = words('false', 'False');

/** Templates that print values with Python write `True` and `None`. */
const as: Readonly<Record<(typeof order)[number], (text: string) => string | null>> = {
  null: words('null', 'None'),
  boolean: (text) => isTrue(text) ?? isFalse(text),
  integer: (text) => (Number.isInteger(jsonNumber(text)) ? text.trim() : null),
  number: (text) => (jsonNumber(text) === null ? null : text.trim()),
  object: (text) => beginsAndParses(text, '{'),
  array: (text) => beginsAndParses(text, '['),
};

function jsonNumber(text: string): number | null {
  const value = parseJson(text);
  return typeof value === 'number' ? value : null;
}

function beginsAndParses(text: string, bracket: string): string | null {
  const json = text.trim();
  return json.startsWith(bracket) && parseJson(json) !== undefined ? json : null;
}
